"""Reading a damaged process log always ends with a job or with a ReadError."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario.see.tables import Job, ReadError, read
from pario.see.tables.own.blocks import EVENTS, HEADER_SIZE
from tests.python.plog import FUNCTIONS, PAGE, ProcessLog, events, ticks

NOTES = [
    {"note": "communicator", "number": 0, "id": 1, "size": 4, "ranks": "0-3"},
    {"note": "filesystem", "id": 1, "type": "ext4", "mount": "/", "block": 4096, "network": False},
    {
        "note": "layout",
        "record": 0,
        "kind": "ceph.file.layout",
        "value": b"stripe_unit=65536 stripe_count=4 object_size=1".hex(),
    },
    {"note": "hint", "record": 1, "when": "requested", "hints": {"cb_nodes": "2"}},
    {"note": "clock", "kind": "barrier", "mono_ns": 60_000_000_000},
]
LOG = ProcessLog(
    rank=0,
    size=4,
    records=[{"path": f"/data/{i}", "filesystem": 1, "writes": i} for i in range(20)],
    functions=[(i, ticks(1), 512, ticks(0.1), 0) for i in range(len(FUNCTIONS))],
    chunks=[events(500), events(500, first=1.0, function=5), events(500, first=0.5, file=3)],
    tail=events(10, first=2.0),
    notes=NOTES,
    unwritten_pages=2,
).to_bytes()
HEADERS = [at for at in range(0, len(LOG), PAGE) if LOG[at : at + 4] == b"PBLK"]


def read_bytes(directory: Path, data: bytes) -> Job | None:
    path = directory / "node0.1000.1.plog"
    path.write_bytes(data)
    try:
        return read([path])
    except ReadError as error:
        assert str(path) in str(error)
        return None


def is_sound(job: Job) -> bool:
    return bool(
        np.all(job.events["process"] == 0)
        and np.all(job.records["file"] < len(job.files))
        and np.isfinite(job.wall)
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("damage")


def test_the_log_of_these_tests_reads_without_a_message_but_for_unwritten_pages_and_absent_ranks(
    directory,
):
    job = read_bytes(directory, LOG)
    assert job is not None
    assert len(job.events) == 1510
    assert [
        text
        for text in job.messages
        if "never written" not in text and "no logs of 3 of 4 ranks" not in text
    ] == []


@pytest.mark.parametrize(
    "end", [*range(0, len(LOG), PAGE), *range(1, len(LOG), PAGE), *range(PAGE - 1, len(LOG), PAGE)]
)
def test_a_log_cut_off_anywhere_reads_or_is_an_error(directory, end):
    job = read_bytes(directory, LOG[:end])
    assert job is None or is_sound(job)


@pytest.mark.parametrize("block", range(2, 8))
def test_a_log_cut_off_at_or_after_the_start_of_a_block_is_reported(directory, block):
    """Except blocks 0 and 1, without which the file is not a log, and the last block, which holds
    only notes."""
    made = ProcessLog(
        rank=-1,
        records=[{"path": f"/data/{i}"} for i in range(20)],
        chunks=[events(500)] * 3,
        process={"events": 1500},
    )
    whole = made.to_bytes()
    headers = [at for at in range(0, len(whole), PAGE) if whole[at : at + 4] == b"PBLK"]
    assert not any("cut off" in message for message in read_bytes(directory, whole).messages)
    for end in (headers[block], headers[block] + HEADER_SIZE + 8):
        job = read_bytes(directory, whole[:end])
        assert job is not None and any("cut off" in message for message in job.messages)


damages = st.lists(
    st.tuples(st.integers(0, len(LOG) - 1), st.binary(min_size=1, max_size=8)),
    min_size=1,
    max_size=6,
)
header_damages = st.lists(
    st.tuples(
        st.sampled_from(HEADERS).flatmap(lambda at: st.integers(at, at + 63)),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=4,
)


def damage_log(places: list[tuple[int, bytes]]) -> bytes:
    data = bytearray(LOG)
    for at, content in places:
        data[at : at + len(content)] = content
    return bytes(data[: len(LOG)])


@pytest.mark.system
@settings(max_examples=300)
@given(places=damages)
def test_random_damage_never_breaks_the_reader(directory, places):
    read_bytes(directory, damage_log(places))


@pytest.mark.system
@settings(max_examples=300)
@given(places=header_damages)
def test_damaged_block_headers_never_break_the_reader(directory, places):
    read_bytes(directory, damage_log(places))


@pytest.mark.system
@settings(max_examples=50)
@given(order=st.permutations(range(2, len(HEADERS))))
def test_blocks_are_found_in_any_order(directory, order):
    ends = [*HEADERS[1:], len(LOG)]
    blocks = [LOG[start:end] for start, end in zip(HEADERS, ends, strict=True)]
    job = read_bytes(directory, b"".join([*blocks[:2], *(blocks[i] for i in order)]))
    assert job is not None
    assert (len(job.events), len(job.records)) == (1510, 20)


def test_messages_that_differ_in_numbers_alone_are_one(directory):
    chunks = [at for at in HEADERS if LOG[at + 4] == EVENTS]
    job = read_bytes(directory, damage_log([(at + HEADER_SIZE, b"\xff" * 8) for at in chunks]))
    assert job is not None
    told = [text for text in job.messages if "events block" in text]
    assert len(told) == 1, job.messages
    assert told[0].endswith(f"(and {len(chunks) - 1} more like it)")


def test_a_log_that_cannot_be_mapped_is_named(directory, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    monkeypatch.setattr(mmap, "mmap", fail)
    path = directory / "node0.1000.1.plog"
    path.write_bytes(LOG)
    with pytest.raises(ReadError, match=r"plog: no such device; expected a readable file"):
        read([path])
