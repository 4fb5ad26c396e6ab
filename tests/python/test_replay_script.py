"""The script of a replay: the calls that are made of the events of a run."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario._native import ReplayPlayer
from pario.prove.replay import Script, collective
from pario.prove.replay.order import find_barriers, waits
from pario.prove.replay.perform import prepare_scratch
from pario.prove.replay.prepared import find_existing_files
from pario.prove.replay.script import OPERATION
from pario.prove.replay.slots import Calls, assign
from pario.prove.replay.verbs import numbers, verb_of
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT, IN_VIEW, Job
from pario.see.tables.rows import new_processes
from tests.python.jobs import add_events, add_record, make_job

MIB = 1 << 20


def test_a_file_that_ranks_create_together_is_not_made(tmp_path: Path) -> None:
    """The first rank to call MPI_File_open asks for the size after the other one's first write."""
    made, path = make_job(2), "/scratch/new"
    add_record(made, 0, path, "mpiio", opens=1, writes=1, size_at_open=3072, first_open=0.0)
    add_record(made, 1, path, "mpiio", opens=1, writes=1, size_at_open=0, first_open=0.1)
    add_events(made, [0, 1], path, "open", layer="mpiio", start=[0.0, 0.1], offset=1 | 4)
    assert find_existing_files(made, np.arange(2), {0: 0}) == ([], [])


def test_of_large_files_only_the_touched_blocks_are_made(tmp_path: Path) -> None:
    made, size, path = make_job(1), 1 << 30, "/scratch/large"
    add_record(made, 0, path, reads=3, size_at_open=size, first_read=0.0)
    offset = [512 * MIB + 5, 10, size - 4096]
    add_events(made, 0, path, "read", start=[0.0, 1.0, 2.0], offset=offset, length=4096)
    (found,), _ = find_existing_files(made, np.arange(3), {0: 0})
    whole = 8 * MIB
    assert found.pieces == ((0, 2 * whole), (64 * whole, 66 * whole), (size - whole, size))
    with prepare_scratch(Script([], [path], [found], 0), tmp_path) as root:
        status = (root / "scratch/large").stat()
        assert (status.st_size, status.st_blocks * 512) == (size, found.stored)


@pytest.mark.parametrize(
    "fields",
    [
        {"offset": -1},
        {"offset": 0, "count": 2},
        {"kind": "map"},
        {"flags": IN_VIEW},
        {"layer": "mpiio"},
    ],
)
def test_a_large_file_is_made_whole_if_the_touched_ranges_are_not_known(
    fields: dict[str, Any],
) -> None:
    made, size = make_job(1), 1 << 30
    add_record(made, 0, "/scratch/large", reads=1, size_at_open=size, first_read=0.0)
    add_events(made, 0, "/scratch/large", **{"kind": "read", "offset": 0, "length": 1} | fields)
    (found,), _ = find_existing_files(made, np.arange(1), {0: 0})
    assert found.pieces is None and found.stored == size


def test_of_barriers_without_io_in_between_the_first_and_the_last_are_played() -> None:
    job = make_job(2)
    job.function_names = ["MPI_Barrier"]
    for number, start in enumerate((1.0, 2.0, 3.0, 7.0)):
        events = np.zeros(2, EVENT)
        events["process"], events["layer"], events["flags"], events["count"] = (
            (0, 1),
            COMMUNICATION,
            8,
            1,
        )
        events["offset"], events["start"] = number, (start, start + 0.5)
        job.events = np.concatenate([job.events, events])
    found = find_barriers(job, job.events["process"].astype(np.int64), 2, np.array([0.5, 5.0]))
    assert sorted((float(job.events["start"][rows[0]]), ranks) for ranks, rows in found) == [
        (1.0, (0, 1)),
        (3.0, (0, 1)),
        (7.0, (0, 1)),
    ]


def of_one_file(*calls: tuple[str, str, int]) -> Job:
    """Makes MPI-IO calls of one process in this order: function, kind and offset."""
    job = make_job(1, mpi=True)
    for number, (function, kind, offset) in enumerate((("open", "open", 1), *calls)):
        add_events(
            job,
            0,
            "/data",
            kind,
            start=number,
            offset=offset,
            layer="mpiio",
            function=f"MPI_File_{function}",
        )
    return job


@pytest.mark.parametrize(
    ("function", "offset", "known"),
    [("write", 8, True), ("write", -1, False), ("write_shared", -1, True)],
)
def test_the_offset_of_a_call_has_to_be_known_unless_ranks_share_the_pointer(
    function: str, offset: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: "found")
    job = of_one_file((function, "write", offset))
    why = collective.why_not(job, np.arange(2))
    assert why == ("" if known else "the log lacks the offsets of some calls")


def test_a_seek_goes_to_the_next_call_with_a_pointer_of_ones_own() -> None:
    job = of_one_file(
        ("seek", "seek", -1),
        ("write_shared", "write", -1),
        ("write_at", "write", 5),
        ("write", "write", 77),
    )
    script = Script([], ["/data"], [], ranks=1)
    made, _ = collective.operations(job, np.arange(5), np.zeros(5, int), script)
    assert made["offset"].tolist()[1] == 77


def test_waits_between_processes() -> None:
    job = Job("x", "pario", processes=new_processes(3))
    job.processes["start"], job.processes["end"] = [0, 0, 5], [4, 6, 9]
    assert waits(job, np.arange(3), np.array([0, 1, 2])) == {2: [0]}
    assert waits(job, np.arange(3), np.array([0, 1, 0])) == {}


@pytest.mark.parametrize(
    ("function", "verb"),
    [
        ("openat64", "open"),
        ("__pread64_chk", "pread"),
        ("fgets_unlocked", "fread"),
        ("__vfprintf_chk", "fprintf"),
        ("rename", ""),
    ],
)
def test_verbs_of_functions(function: str, verb: str) -> None:
    assert verb_of(function) == verb


def make_calls(steps: list[tuple[str, int, int]]) -> Calls:
    """Calls of one process on one file: verbs, offsets (of opens: flags) and lengths."""
    known, count = numbers(), len(steps)
    verb, offset, length = (
        np.array(column)
        for column in zip(*((known[verb], at, size) for verb, at, size in steps), strict=True)
    )
    return Calls(verb, np.zeros(count, np.int64), np.zeros(count, bool), offset, length)


def test_of_a_file_that_is_open_twice_each_call_goes_where_it_begins() -> None:
    steps = [
        ("open", 0, 0),
        ("open", 0, 0),
        ("read", 0, 10),
        ("read", 0, 10),
        ("read", 10, 5),
        ("pread", 3, 4),
        ("read", 10, 5),
        ("close", 0, 0),
    ]
    calls = make_calls(steps)
    found = assign(calls)
    first, second = found.slot[0], found.slot[1]
    assert first != second
    assert sorted([found.slot[2], found.slot[3]]) == sorted([first, second])
    assert sorted([found.slot[4], found.slot[6]]) == sorted([first, second])
    assert (found.verb == calls.verb).all() and not found.attach and not found.dropped


def test_writes_belong_to_the_descriptor_that_permits_them() -> None:
    """A program that follows its own log has two descriptors of it, both at the beginning."""
    steps = [
        ("open", os.O_WRONLY | os.O_CREAT, 0),
        ("open", os.O_RDONLY, 0),
        ("write", 0, 45),
        ("read", 0, 45),
        ("write", 45, 45),
        ("lseek", 0, 0),
    ]
    calls = make_calls(steps)
    found = assign(calls)
    out, read = found.slot[0], found.slot[1]
    assert out != read and found.slot[2:5].tolist() == [out, read, out]
    assert (found.verb == calls.verb).all() and not found.attach and not found.dropped


def test_a_descriptor_from_elsewhere_is_attached_and_used_at_offsets() -> None:
    known = numbers()
    verb = np.array([known["write"], known["write"], known["close"]])
    found = assign(
        Calls(
            verb, np.zeros(3, np.int64), np.zeros(3, bool), np.array([5, 9, 0]), np.array([4, 4, 0])
        )
    )
    assert found.attach == [0]
    assert found.verb.tolist() == [known["pwrite"], known["pwrite"], known["close"]]


def test_a_stream_from_elsewhere_is_attached_and_keeps_its_position() -> None:
    known = numbers()
    verb = np.array([known["fprintf"], known["fwrite"], known["fclose"]])
    offsets, lengths = np.array([0, 4, 0]), np.array([4, 4, 0])
    found = assign(Calls(verb, np.zeros(3, np.int64), np.ones(3, bool), offsets, lengths))
    assert found.attach == [0] and not found.dropped
    assert (found.verb == verb).all()


@pytest.mark.parametrize(
    ("function", "verb"),
    [("printf", "fprintf"), ("__printf_chk", "fprintf"), ("wprintf", "fprintf"), ("puts", "fwrite"),
     ("vprintf", "fprintf"), ("scanf", "fread"), ("__isoc99_scanf", "fread"), ("dprintf", "write")],
)  # fmt: skip
def test_functions_of_the_standard_streams_are_played(function: str, verb: str) -> None:
    assert verb_of(function) == verb


def test_mpi_transfers_get_the_arguments_of_their_functions() -> None:
    seen: list[tuple[int, ...]] = []
    word = ctypes.c_size_t
    kinds = [word, ctypes.c_int64, word, ctypes.c_int, word, word]

    def call_at(file: int, offset: int, buffer: int, count: int, kind: int, status: int) -> int:
        seen.append((file, offset, count, kind))
        return 0

    def call(file: int, buffer: int, count: int, kind: int, status: int) -> int:
        seen.append((file, count, kind))
        return 5

    at, plain = (
        ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(call_at),
        ctypes.CFUNCTYPE(ctypes.c_int, word, *kinds[2:])(call),
    )
    player = ReplayPlayer([b"/data"], 2, 100)
    player.use([ctypes.cast(one, ctypes.c_void_p).value or 0 for one in (at, plain)], 77)
    player.use_file(1, 42)
    calls = np.zeros(2, OPERATION)
    calls["verb"], calls["other"], calls["slot"] = (
        [numbers()["mpi_transfer_at"], numbers()["mpi_transfer"]],
        (0, 1),
        1,
    )
    calls["offset"], calls["length"] = 1 << 40, (100, 50)
    with pytest.raises(OSError, match=r"mpi_transfer.*EIO"):
        player.play(calls.view(np.uint8).reshape(2, OPERATION.itemsize), False)
    assert seen == [(42, 1 << 40, 100, 77), (42, 50, 77)]
    calls["may_fail"] = 1
    player.play(calls.view(np.uint8).reshape(2, OPERATION.itemsize), False)
    assert len(seen) == 4
