"""The file format of checkpoints: records, the manifest, chunks, older versions."""

import errno
import fcntl
import itertools
import os
import shutil
import tarfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario.checkpoint import CheckpointError, Writer, block, identity, load, manifest, transfer
from pario.checkpoint.checksum import (
    Tally,
    checksum,
    checksum_bytes,
    checksum_joined,
    chunk_shape,
    grid_of,
    unproven,
)
from pario.checkpoint.draining import judge
from pario.checkpoint.examine import damages
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.header import read_header
from pario.checkpoint.identity import Identity, read_identity
from pario.checkpoint.manifest import Listed, Manifest
from pario.checkpoint.merge import merge
from pario.checkpoint.stage import Staged
from pario.checkpoint.store import Store
from pario.cli import main
from pario.ranks import OneRank
from tests.python.support import threads
from tests.python.test_checkpoint_geometry import tilings

SAVES = ("5f0c1d6a3b1e4c55a4f1c3d2e7b80912", "0d9be4f1a7c2431b8c6e5a902f4d7e31")
GRID = np.arange(6 * 8 * 10, dtype="f8").reshape(6, 8, 10)


def test_examples_equal_those_of_the_document():
    document = (Path(__file__).parents[2] / "docs" / "checkpoint-format.md").read_text(
        encoding="utf-8"
    )
    own = Identity(17, 120, SAVES[1])
    record = identity.encode_record(own)
    assert record.hex() in "".join(document.split()) and identity.decode_record(record) == own
    example = document[document.index("    pario-manifest 1") :].split("\n\n")[0]
    text = "".join(f"{line.strip()}\n" for line in example.splitlines())
    assert manifest.encode_manifest(manifest.decode_manifest(text.encode())).decode() == text


def test_a_damaged_record_is_an_error():
    record = identity.encode_record(Identity(17, 120, SAVES[1]))
    for bit in range(8 * 8, 8 * len(record)):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="its identity record is damaged"):
            identity.decode_record(bytes(damaged))
    assert identity.decode_record(b"x" + record[1:]) is None


def test_a_damaged_record_is_named_where_the_order_depends_on_it(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:
        paths = [writer.save(step, {"T": step}) for step in (3, 1)]
    with paths[1].open("r+b") as file:
        file.seek(4096 - 64 + 20)
        file.write(b"\1")
    assert load(None, tmp_path).step == 1
    (tmp_path / "MANIFEST").unlink()
    with pytest.warns(
        UserWarning,
        match=r"step-00000001\.h5: its identity record is damaged; its order is unknown",
    ):
        assert load(None, tmp_path).step == 3


@pytest.fixture
def unreadable(monkeypatch):
    """Lets the file system answer EIO to questions about paths of this name."""

    def fail(name, times=None):
        left = itertools.repeat(0) if times is None else iter(range(times))
        known = Path.stat

        def stat(path, **options):
            if path.name == name and next(left, None) is not None:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return known(path, **options)

        monkeypatch.setattr(Path, "stat", stat)

    return fail


def test_a_checkpoint_that_the_file_system_cannot_read_is_skipped(tmp_path, unreadable):
    with Writer(None, tmp_path, durable=False) as writer:
        for step in (1, 2):
            writer.save(step, {"T": step})
    unreadable("step-00000002.h5")
    with pytest.warns(UserWarning, match=r"step-00000002\.h5: Input/output error; it is skipped"):
        assert load(None, tmp_path).step == 1
    with pytest.raises(CheckpointError, match=r"step-00000002\.h5: Input/output error"):
        load(None, tmp_path / "step-00000002.h5")


def test_an_error_that_passes_changes_nothing(tmp_path, unreadable):
    with Writer(None, tmp_path, durable=False) as writer:
        for step in (1, 2):
            writer.save(step, {"T": step})
    unreadable("step-00000002.h5", times=1)
    assert load(None, tmp_path).step == 2


def test_a_directory_that_cannot_be_read_is_an_error(tmp_path, unreadable):
    with Writer(None, tmp_path / "saves", durable=False) as writer:
        writer.save(1, {"T": 1})
    unreadable("saves")
    with pytest.raises(CheckpointError, match=r"saves: Input/output error"):
        load(None, tmp_path / "saves")


@pytest.mark.parametrize(("error", "works"), [(errno.EIO, False), (errno.ENOLCK, True)])
def test_only_file_systems_without_locks_are_used_without(tmp_path, monkeypatch, error, works):
    def refuse(descriptor, operation):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", refuse)
    if works:
        with Writer(None, tmp_path, durable=False) as writer:
            writer.save(1, {"T": 1})
        return
    with pytest.raises(CheckpointError, match="Input/output error"):
        Writer(None, tmp_path, durable=False).save(1, {"T": 1})


def test_a_manifest_is_read_as_written_unless_it_is_damaged():
    known = Manifest(17, (Listed(0, "step-00000099.h5", ""), Listed(17, "step-00000120", SAVES[1])))
    text = manifest.encode_manifest(known)
    assert manifest.decode_manifest(text) == known
    for place in range(len(text)):
        with pytest.raises(ValueError, match=r"."):
            manifest.decode_manifest(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        with pytest.raises(ValueError, match=r"."):
            manifest.decode_manifest(text[:place])


@pytest.mark.parametrize(
    ("shape", "element", "chunk"),
    [
        ((), 8, ()),
        ((0, 3), 8, (1, 3)),
        ((600, 1000), 8, (131, 1000)),
        ((4, 3, 1 << 20), 8, (1, 1, 1 << 17)),
        ((4, 3, 100), 1, (4, 3, 100)),
        ((3,), 1 << 21, (1,)),
    ],
)
def test_chunks_have_a_mebibyte_at_most(shape, element, chunk):
    assert chunk_shape(shape, element, 1 << 20) == chunk
    assert chunk_shape(shape, element, 0) == tuple(max(1, length) for length in shape)


@given(st.lists(st.binary(max_size=30)), st.sampled_from((1, 4, 8)))
def test_the_checksum_of_parts_is_that_of_their_bytes(parts, element):
    assert checksum_joined(parts, element) == checksum_bytes(b"".join(parts), element)


SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)


@given(SHAPES, st.integers(1, 60), st.data())
@settings(max_examples=25)
def test_sums_of_chunks_add_up_from_any_parts(shape, chunk_bytes, data):
    array = np.random.default_rng(1).integers(0, 99, shape).astype("u4")
    within = data.draw(st.sampled_from(data.draw(tilings(shape))))
    grid = grid_of(within, 4, chunk_bytes)
    expected = []
    for index in np.ndindex(*grid.counts):
        box = grid.box(index)
        expected.append(checksum(array[box.within(whole(shape))], box, shape) if box.size else 0)
    tally = Tally(within, shape, 4)
    tally._grid, tally._sums = grid, np.zeros(grid.count, np.uint64)
    for part in data.draw(tilings(within.shape)):
        begin = tuple(map(sum, zip(part.begin, within.begin, strict=True)))
        box = Box(begin, part.shape)
        tally.add(array[box.within(whole(shape))], box)
    assert tally.of(array[within.within(whole(shape))]).tolist() == expected


@given(SHAPES, st.integers(1, 60), st.data())
@settings(max_examples=25)
def test_chunks_that_were_not_read_as_a_whole_are_unverified(shape, chunk_bytes, data):
    grid = grid_of(whole(shape), 4, chunk_bytes)
    boxes = data.draw(st.lists(tilings(shape).flatmap(st.sampled_from), max_size=4))
    chunks = [grid.box(index) for index in np.ndindex(*grid.counts)]
    expected = [
        (number, chunk)
        for number, chunk in enumerate(chunks)
        if any(box.meet(chunk).size for box in boxes)
        and not any(box.meet(chunk) == chunk for box in boxes)
    ]
    assert list(unproven(grid, boxes)) == expected


def test_files_have_generations(tmp_path):
    with Writer(None, tmp_path, durable=False, files=2) as writer:
        paths = [
            writer.save(step, {"T": block(np.full((2, 1 << 17), step), (2, 1 << 17), (0, 0))})
            for step in (5, 2, 9)
        ]
    with Writer(None, tmp_path, durable=False) as writer:
        paths.append(writer.save(7, {"T": 1}))
    master, part = (read_identity(paths[2] / name) for name in ("master.h5", "part-00000.h5"))
    assert (master.generation, master.step, master.part) == (3, 9, -1)
    assert part == Identity(3, 9, master.save, 0)
    assert read_identity(paths[3]).generation == 4
    found, problem = Store(tmp_path).manifest.read()
    assert not problem and [(one.generation, one.name) for one in found.listed] == [
        (1, "step-00000005"),
        (2, "step-00000002"),
        (3, "step-00000009"),
        (4, "step-00000007.h5"),
    ]


def test_generations_go_on_after_the_newest_was_removed(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:
        paths = [writer.save(step, {"T": 1}) for step in (1, 2)]
    paths[1].unlink()
    with pytest.warns(UserWarning, match=r"step-00000002\.h5: listed, but not there"):
        assert load(None, tmp_path).step == 1
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"T": 2})
    assert read_identity(paths[0]).generation == 3 and load(None, tmp_path)["T"] == 2


def test_a_damaged_manifest_is_named_and_written_again(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:
        for step in (3, 1):
            writer.save(step, {"T": step})
    text = (tmp_path / "MANIFEST").read_bytes()
    (tmp_path / "MANIFEST").write_bytes(text.replace(b"last 2", b"last 9"))
    with pytest.warns(UserWarning, match="MANIFEST: its checksum does not match"):
        assert load(None, tmp_path).step == 1
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(2, {"T": 1})
    assert Store(tmp_path).manifest.read()[0].last == 3


def test_the_manifest_gives_the_order_of_damaged_files(tmp_path):
    """The newest checkpoint is named although its file cannot be read."""
    with Writer(None, tmp_path, durable=False) as writer:
        paths = [writer.save(step, {"T": step}) for step in (3, 1)]
    paths[1].write_bytes(b"\0" * 100)
    with pytest.warns(UserWarning, match=r"step-00000001\.h5: .*it is skipped"):
        assert load(None, tmp_path).step == 3


def test_each_manifest_is_read_once(tmp_path, monkeypatch):
    read, decode = [], manifest.decode_manifest
    monkeypatch.setattr(
        manifest, "decode_manifest", lambda content: read.append(content) or decode(content)
    )
    with Writer(None, tmp_path, durable=False, keep=2) as writer:
        for step in range(5):
            writer.save(step, {"T": step})
    assert len(read) == len(set(read)) == 4  # the last one is not needed any more
    file = Store(tmp_path).manifest
    assert file.read() == file.read()
    with Writer(None, tmp_path, durable=False) as other:
        other.save(9, {"T": 9})
    assert file.read()[0].generation_of("step-00000009.h5") == 6


def test_a_manifest_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"T": 1})
        with monkeypatch.context() as patch:
            patch.setattr("pario.checkpoint.manifest.write_all", fail)
            with pytest.raises(CheckpointError, match="/MANIFEST: No space left on device"):
                writer.save(2, {"T": 2})
        assert not list(tmp_path.glob(".MANIFEST*"))
        assert [path.name for path in tmp_path.glob("step*")] == ["step-00000001.h5"]
        assert load(None, tmp_path).step == 1
        writer.save(2, {"T": 2})
    assert load(None, tmp_path).step == 2


@pytest.fixture
def version_1(tmp_path):
    """Unpacks a directory with checkpoints of format version 1: one in a single file, one in
    parts."""
    with tarfile.open(Path(__file__).parent / "fixtures" / "checkpoint-v1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def check_version_1(path: Path, step: int) -> None:
    state = load(None, path, step=step)
    assert (state.step, state.attrs, state.dims("T")) == (step, {"time": step / 2}, ("z", "y", "x"))
    assert (
        (state["T"] == GRID + step).all()
        and (state["big"] == step).all()
        and state["big"].nbytes == 1 << 21
    )
    assert (str(state["label"]), int(state["seed"])) == ("été", 7)
    assert (state.read("T", (1, 2, 3), (2, 2, 2)) == GRID[1:3, 2:4, 3:5] + step).all()


@pytest.mark.parametrize("form", ["one", "parts"])
def test_version_1_is_read(version_1, form):
    for step in (10, 20):
        check_version_1(version_1 / form, step)
    assert load(None, version_1 / form).step == 20
    for found in Store(version_1 / form).complete():
        header = read_header(found.path)
        assert (header.format, list(damages(header))) == (1, [])


@pytest.mark.parametrize("form", ["one", "parts"])
def test_version_1_is_older_than_all_that_is_saved(version_1, form):
    with Writer(None, version_1 / form, keep=2, durable=False) as writer:
        writer.save(5, {"T": 5})
    assert [found.step for found in Store(version_1 / form).complete()] == [20, 5]


@pytest.mark.parametrize("form", ["one", "parts"])
def test_version_1_is_converted(version_1, form, capsys):
    place = version_1 / form
    assert main(["checkpoint", "merge", str(place), "--step", "10"]) == 0
    assert capsys.readouterr().out == f"{place / 'step-00000010.h5'}\n"
    header = read_header(place / "step-00000010.h5")
    assert (header.format, list(damages(header))) == (2, []) and len(
        header.entries["big"].sums
    ) == 2
    check_version_1(place, 10)
    assert load(None, place).step == 20
    with pytest.raises(CheckpointError, match="is one file of format 2 already"):
        merge(OneRank(), lambda: header)


def test_damage_in_version_1_stops_its_conversion(version_1):
    path = version_1 / "one" / "step-00000010.h5"
    with h5py.File(path, "r+") as file:
        file["big"][1, 5] = 3
    with pytest.raises(
        CheckpointError,
        match=r"array 'big': \[0:2, 0:131072\], saved by rank 0, is not what was saved",
    ):
        merge(OneRank(), lambda: read_header(path))
    assert read_header(path).format == 1


@pytest.mark.parametrize("halo", [1, 3])
@pytest.mark.parametrize(("saving", "loading"), [(4, 4), (3, 2), (1, 5)])
def test_overlapping_parts_of_ranks_are_checked(tmp_path, saving, loading, halo):
    shape = (60, 50, 100)
    array = np.arange(300_000.0).reshape(shape)

    def share(ranks, size, widen=0):
        begin, end = (
            max(0, min(60, 60 * at // size + by))
            for at, by in ((ranks.rank, -widen), (ranks.rank + 1, widen))
        )
        return Box((begin, 0, 0), (end - begin, 50, 100))

    def store(ranks):
        box = share(ranks, saving)
        with Writer(ranks, tmp_path, durable=False) as writer:
            writer.save(1, {"T": block(array[box.within(whole(shape))], shape, box.begin)})

    def restore(ranks):
        box = share(ranks, loading, halo)
        return (
            load(ranks, tmp_path).read("T", box.begin, box.shape) == array[box.within(whole(shape))]
        ).all()

    threads.run(saving, store)
    assert threads.run(loading, restore) == [True] * loading
    with h5py.File(tmp_path / "step-00000001.h5", "r+") as file:
        file["T"][31, 7, 9] = -1
    assert all(
        "array 'T': [" in str(error) and "is not what was saved" in str(error)
        for error in threads.run(loading, restore)
    )


LFS_QUOTA = "  /lustre/a-name-that-is-very-long\n   {used}  900 1000 - 12 0 0 -\n"


def test_quotas_of_lustre_are_parsed():
    assert transfer.parse_lfs_quota(LFS_QUOTA.format(used="996*")) == (996 << 10, 1000 << 10)
    assert transfer.parse_lfs_quota("/lustre 996 0 0 - 12 0 0 -\n") == (996 << 10, 0)
    with pytest.raises(ValueError, match=r"."):
        transfer.parse_lfs_quota("some quotas are disabled\n")


@pytest.mark.parametrize(
    ("kind", "user", "owner"),
    [
        ("kernel", 1000, "user 1000"),
        ("lustre", 1000, "user 1000"),
        ("directory", 1000, "directory /ceph/project"),
        ("directory", 0, "directory /ceph/project"),
    ],
)
def test_a_quota_is_an_error_before_anything_is_written(tmp_path, monkeypatch, kind, user, owner):
    from pario import _native

    lfs = tmp_path / "bin" / "lfs"
    lfs.parent.mkdir()
    lfs.write_text("#!/bin/sh\ncat <<.\n" + LFS_QUOTA.format(used=996) + ".\n")
    lfs.chmod(0o755)
    monkeypatch.setenv("PATH", str(lfs.parent), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: user)
    if kind == "lustre":
        monkeypatch.setattr(_native, "stripes_of", lambda path: ("lustre", False, 0, b"", [], 0))
    else:
        monkeypatch.setattr(
            _native, "quotas_of", lambda path: [(owner, 996 << 10, 1000 << 10, 1, 0)]
        )
    with (
        Writer(None, tmp_path / "ckpt", durable=False) as writer,
        pytest.raises(CheckpointError) as told,
    ):
        writer.save(1, {"T": np.zeros(1000)})
    assert f"4096 are free within the quota of {owner}" in str(told.value)
    assert not list((tmp_path / "ckpt").iterdir())


def test_a_quota_of_a_user_does_not_limit_root(tmp_path, monkeypatch):
    from pario import _native

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(
        _native, "quotas_of", lambda path: [("user 0", 996 << 10, 1000 << 10, 1, 0)]
    )
    with Writer(None, tmp_path / "ckpt", durable=False) as writer:
        writer.save(1, {"T": np.zeros(1000)})
    assert load(None, tmp_path / "ckpt").step == 1


def test_a_copy_without_the_manifest_is_ordered_by_the_files(tmp_path):
    with Writer(None, tmp_path / "saved", durable=False, files=2) as writer:
        for step in (3, 4, 1):
            writer.save(step, {"T": step})
    shutil.copytree(
        tmp_path / "saved", tmp_path / "copied", ignore=shutil.ignore_patterns("MANIFEST")
    )
    assert [found.step for found in Store(tmp_path / "copied").complete()] == [3, 4, 1]


def test_leftovers_of_a_stage_are_judged_by_generation():
    def left(step, generation, save):
        return Staged(step, save, 0, 1, {"": []}, generation)

    leftovers = [[left(9, 5, "e"), left(2, 4, "d"), left(7, 3, "c"), left(6, 0, "old")]]
    drained, said = judge(leftovers, 3, {"c"})
    assert [one.step for one in drained] == [2, 9]
    assert said == [
        "step 6 was left in the stage, and a newer one was saved since; it is removed",
        "step 2 was left in the stage; it is drained",
        "step 9 was left in the stage; it is drained",
    ]
    assert [one.step for one in judge(leftovers, 0, set())[0]] == [6, 7, 2, 9]
