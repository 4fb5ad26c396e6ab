"""Checkpoints with compressed arrays."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zstandard

from pario import checkpoint
from pario._native import Compressor
from pario.checkpoint import (
    CheckpointError,
    Writer,
    block,
    compression,
    container,
    header,
    transfer,
)
from pario.checkpoint.geometry import whole
from pario.checkpoint.header import read_header
from pario.checkpoint.merge import merge
from pario.cli import main
from pario.ranks import OneRank, Ranks
from tests.python.support.threads import run
from tests.support.commands import run_command

#: Six chunks in one block: rows of 8000 bytes, 131 of them in a chunk.
FULL = (np.arange(700_000) % 1000).astype("f8").reshape(700, 1000)


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compresses arrays of any size."""
    monkeypatch.setattr(container, "LARGE", 0)


def writer(ranks: Any, path: Path, **options: Any) -> Writer:
    return Writer(ranks, path, durable=False, compress="zstd", **options)


def save(path: Path, arrays: dict[str, Any], step: int = 1, **options: Any) -> Path:
    with writer(None, path, **options) as own:
        return own.save(step, arrays)


def flip(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def is_equal(one: Any, other: np.ndarray[Any, Any]) -> bool:
    return bool(one.dtype == other.dtype and one.shape == other.shape and (one == other).all())


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.system
def test_saved_on_some_ranks_and_loaded_on_others(tmp_path: Path, size: int) -> None:
    """By ``save`` and in the background; ranks have blocks of other numbers of chunks, or none."""

    def program(ranks: Ranks) -> None:
        box = checkpoint.divide(FULL.shape, ranks.size, ranks.rank)
        mine = FULL[box.within(whole(FULL.shape))]
        first = whole(FULL.shape) if ranks.rank == 0 else whole((0, 0))
        arrays = {
            "divided": block(mine, FULL.shape, box.begin, dims=("y", "x")),
            "equal": FULL * 2,
            "of rank 0": block(FULL[first.within(first)], FULL.shape, (0, 0)),
            "group/each": checkpoint.per_rank(FULL[:200] + ranks.rank),
            "small": ranks.size,
        }
        with writer(ranks, tmp_path) as own:
            own.save(1, arrays, {"time": 0.5})
            pending = own.save_async(2, arrays)
            mine = mine * 0
            pending.result()

    def load(ranks: Ranks, step: int) -> None:
        state = checkpoint.load(ranks, tmp_path, step=step)
        box = checkpoint.divide(FULL.shape, ranks.size, ranks.rank)
        for name, factor in (("divided", 1), ("equal", 2), ("of rank 0", 1)):
            part = state.read(name, box.begin, box.shape)
            assert is_equal(part, FULL[box.within(whole(FULL.shape))] * factor)
        assert is_equal(state["divided"], FULL)
        each = state["group/each"]
        assert all(is_equal(each[rank], FULL[:200] + rank) for rank in range(size))
        ghost = np.zeros((3, 4))
        state.read("divided", (130, 7), (3, 4), out=ghost)
        assert is_equal(ghost, FULL[130:133, 7:11])
        assert state["small"] == size and state.dims("divided") == ("y", "x")

    assert run(size, program) == [None] * size
    for readers in (1, 2, 3, 4):
        for step in (1, 2):
            assert run(readers, partial(load, step=step)) == [None] * readers
    assert (tmp_path / "step-00000001.h5").stat().st_size < FULL.nbytes / 5


def arrays_of_all_kinds() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    from ml_dtypes import bfloat16

    for kind in ("i1", "<u2", ">i4", "<f2", ">f8", "<c8", ">c16", "?", "<M8[s]", ">m8[ms]"):
        yield kind, np.arange(6000).astype("i8").astype(kind).reshape(60, 100)
    yield "text", np.array(["été", "no", ""] * 1000)
    yield "bytes", np.array([b"abc", b""] * 1000)
    yield "fields", np.array([(1, 2.5)] * 1000, [("a", "i4"), ("b", ">f8")])
    yield "bfloat16", np.arange(3000).astype(bfloat16)
    yield "without elements", np.zeros((0, 3))
    yield "without axes", np.array(2.5)


@pytest.mark.usefixtures("all_large")
def test_elements_of_all_types_are_restored(tmp_path: Path) -> None:
    arrays = dict(arrays_of_all_kinds())
    path = save(tmp_path, arrays)
    state = checkpoint.load(None, path)
    for name, array in arrays.items():
        assert is_equal(state[name], array), name
    compressed = {name for name, one in read_header(path).entries.items() if one.frames is not None}
    assert compressed == arrays.keys() - {"without elements", "without axes"}


def test_bytes_that_cannot_be_compressed_take_hardly_more_space(tmp_path: Path) -> None:
    noise = np.frombuffer(os.urandom(8_000_001), np.uint8)
    path = save(tmp_path, {"noise": noise, "same": np.frombuffer(noise[:8_000_000], "f8")})
    assert path.stat().st_size < 16_000_001 * 1.01
    assert is_equal(checkpoint.load(None, path)["noise"], noise)


def read_chunks(dataset: Any) -> np.ndarray[Any, Any]:
    """The elements of a dataset of numbers, by the index of HDF5 and another zstd."""
    found = np.zeros(dataset.shape, dataset.dtype)
    for number in range(dataset.id.get_num_chunks()):
        begin = dataset.id.get_chunk_info(number).chunk_offset
        mask, frame = dataset.id.read_direct_chunk(begin)
        assert mask == 0
        shuffled = np.frombuffer(zstandard.decompress(frame), np.uint8)
        plain = shuffled.reshape(dataset.dtype.itemsize, -1).T.tobytes()
        where = tuple(slice(at, at + size) for at, size in zip(begin, dataset.chunks, strict=True))
        part = found[where]
        chunk = np.frombuffer(plain, dataset.dtype).reshape(dataset.chunks)
        part[...] = chunk[tuple(map(slice, part.shape))]
    return found


def test_hdf5_finds_the_frames_and_their_filters(tmp_path: Path) -> None:
    """Each block is a dataset of its own, with the filters shuffle (2) and zstd (32015)."""

    def program(ranks: Ranks) -> None:
        box = checkpoint.divide(FULL.shape, ranks.size, ranks.rank)
        mine = FULL[box.within(whole(FULL.shape))]
        with writer(ranks, tmp_path) as own:
            own.save(1, {"a/T": block(mine, FULL.shape, box.begin, units="K")})

    assert run(3, program) == [None] * 3
    with h5py.File(tmp_path / "step-00000001.h5") as file:
        assert file["a/T"].attrs["units"] == "K" and file["a/T"].shape == FULL.shape
        sources = file["a/T"].virtual_sources()
        assert [one.file_name for one in sources] == ["."] * 3
        rows = []
        for source in sources:
            stored = file[source.dset_name].id.get_create_plist()
            assert [stored.get_filter(number)[0] for number in range(2)] == [2, 32015]
            rows.append(read_chunks(file[source.dset_name]))
    assert is_equal(np.concatenate(rows, axis=1), FULL)


@pytest.mark.system
def test_h5py_reads_the_values_by_the_plug_in_of_hdf5(tmp_path: Path) -> None:
    pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed")
    noise = np.frombuffer(os.urandom(3_000_000), np.uint8)
    words = np.array(["ab", "c"] * 200_000)
    path = save(tmp_path, {"50%b T": FULL, "noise": noise, "words": words})
    program = """
import sys, h5py, hdf5plugin, numpy
with h5py.File(sys.argv[1]) as file:
    names = "50%b T", "noise", "words"
    numpy.savez(sys.argv[2], **{name: file[name][...] for name in names})
"""
    there = tmp_path / "found.npz"
    run_command([sys.executable, "-c", program, path, there], status=0)
    found = np.load(there)
    assert is_equal(found["50%b T"], FULL) and is_equal(found["noise"], noise)
    assert found["words"][:2].tolist() == [b"ab", b"c"]


def test_a_damaged_block_is_named_by_every_way_to_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path, {"T": FULL, "other": FULL + 1})
    frames = read_header(path).entries["T"].frames
    assert frames is not None and len(frames) == 6
    flip(path, int(frames[2, 0] + frames[2, 1] // 2))
    flip(path, int(frames[4, 0]))
    text = r"array 'T': \[262:393, 0:1000\], saved by rank 0, is not what was saved"
    state = checkpoint.load(None, path)
    with pytest.raises(CheckpointError, match=text):
        state.read("T")
    with pytest.raises(CheckpointError, match=text):
        state.read("T", (300, 3), (1, 1))
    assert is_equal(state.read("T", (0, 0), (262, 1000)), FULL[:262])
    assert is_equal(state["other"], FULL + 1)

    def read_part(ranks: Ranks) -> None:
        own = checkpoint.load(ranks, path)
        own.read("T", (350 * ranks.rank, 0), (350, 1000))

    assert all("saved by rank 0, is not what was saved" in str(one) for one in run(2, read_part))
    assert main(["checkpoint", "verify", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(", saved")[0] for line in lines] == [
        f"{path}: array 'T': [262:393, 0:1000]",
        f"{path}: array 'T': [524:655, 0:1000]",
    ]


def test_a_frame_of_other_elements_is_refused(tmp_path: Path) -> None:
    """zstd finds no error in it; the checksum of the chunk does."""
    path = save(tmp_path, {"T": FULL, "U": FULL * 1.0})
    frames = read_header(path).entries["T"].frames
    assert frames is not None
    whole_file = bytearray(path.read_bytes())
    place, size = frames[1].tolist()
    other = Compressor(3).compress((FULL[:131] + 7).reshape(-1).view(np.uint8), 8)
    assert len(other) <= size
    whole_file[place : place + size] = other + zstandard_skippable(size - len(other))
    path.write_bytes(whole_file)
    with pytest.raises(CheckpointError, match=r"'T': \[131:262, 0:1000\]"):
        checkpoint.load(None, path).read("T")
    assert checkpoint.load(None, path, verify=False).read("T")[131, 0] == FULL[0, 0] + 7


def zstandard_skippable(size: int) -> bytes:
    """A frame that decompressors skip."""
    if not size:
        return b""
    return b"\x50\x2a\x4d\x18" + (size - 8).to_bytes(4, "little") + bytes(size - 8)


def test_a_damaged_table_of_frames_is_detected_before_it_is_used(tmp_path: Path) -> None:
    path = save(tmp_path, {"T": FULL})
    with h5py.File(path) as file:
        place = file["pario/frames"].id.get_offset()
    flip(path, place + 8)
    with pytest.raises(CheckpointError, match="its HDF5 metadata is not what was saved"):
        checkpoint.load(None, path)
    with h5py.File(path, "r+") as file:
        del file["pario/frames"]
        file["pario/frames"] = [[1 << 62, 5], [-1, 5]] * 3
    state = checkpoint.load(None, path, verify=False)
    for row, text in ((0, "ends at byte"), (131, "is not what was saved")):
        with pytest.raises(CheckpointError, match=text):
            state.read("T", (row, 0), (1, 1))
    with h5py.File(path, "r+") as file:
        del file["pario/frames"]
        file["pario/frames"] = [[4096, 5]]
    with pytest.raises(CheckpointError, match=r"6 checksums; its table of frames has shape \[1"):
        checkpoint.load(None, path, verify=False)


def test_a_part_needs_only_its_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, {"T": FULL})
    read, sizes = transfer.read_all, list[int]()

    def count(file: int, into: memoryview, at: int, name: str) -> None:
        sizes.append(len(into))
        read(file, into, at, name)

    monkeypatch.setattr(compression, "read_all", count)
    checkpoint.load(None, path).read("T", (250, 0), (20, 5))
    frames = read_header(path).entries["T"].frames
    assert frames is not None and sizes == frames[1:3, 1].tolist()


@pytest.mark.system
def test_a_killed_save_leaves_the_earlier_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, {"T": FULL})
    program = """
import os, signal, sys, numpy
from pario import checkpoint
from pario.checkpoint import transfer
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
transfer._write_together = die
T = numpy.arange(700_000.0)
with checkpoint.Writer(None, sys.argv[1], compress="zstd") as writer:
    writer.save(2, {"T": T})
"""
    done = run_command([sys.executable, "-c", program, tmp_path])
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "step-00000002.h5.part").exists()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        state = checkpoint.load(None, tmp_path)
    assert state.step == 1 and is_equal(state["T"], FULL)
    assert "step-00000002.h5.part: not finished" in str(warned[0].message)
    save(tmp_path, {"T": FULL + 1}, 2)
    assert not (tmp_path / "step-00000002.h5.part").exists()
    assert is_equal(checkpoint.load(None, tmp_path)["T"], FULL + 1)


def test_earlier_versions_refuse_the_file_by_its_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path, {"T": FULL})
    plain = save(tmp_path, {"n": 3}, 2)  # it has no compressed array
    monkeypatch.setattr(header, "COMPRESSED", 2)
    with pytest.raises(CheckpointError, match="has format 3; this pario knows formats up to 2"):
        checkpoint.load(None, path)
    assert checkpoint.load(None, plain)["n"] == 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compress": "gzip"}, "compress='gzip'; expected 'zstd' or None"),
        ({"files": "rank"}, "compress='zstd', files='rank'; expected files=1"),
        ({"safetensors": True}, "compress='zstd', safetensors=True; expected one of them"),
    ],
)
def test_other_options_are_refused(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(CheckpointError, match=text):
        Writer(None, tmp_path, **{"compress": "zstd", **options})


def test_the_space_needed_is_that_of_the_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = FULL.nbytes // 2
    facts = os.statvfs(tmp_path)
    small = os.statvfs_result([1, 1, *list(facts)[2:3], free, free, *list(facts)[5:]])
    monkeypatch.setattr("pario.checkpoint.transfer.os.statvfs", lambda _: small)
    save(tmp_path, {"T": FULL})
    noise = np.frombuffer(os.urandom(FULL.nbytes), np.uint8)
    with pytest.raises(CheckpointError, match="no space"):
        save(tmp_path, {"noise": noise}, 2)
    assert checkpoint.load(None, tmp_path).step == 1


def test_merge_makes_a_plain_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "run", {"T": FULL})
    with pytest.raises(CheckpointError, match="is one file of format 3 already"):
        merge(OneRank(), lambda: read_header(path))
    assert main(["checkpoint", "merge", str(path), "-o", str(tmp_path / "plain.h5")]) == 0
    with h5py.File(tmp_path / "plain.h5") as file:
        assert is_equal(file["T"][...], FULL)
    assert read_header(tmp_path / "plain.h5").format == 2
    capsys.readouterr()


def test_the_commands_show_the_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "plain"
    with Writer(None, source, durable=False) as plain:
        checkpoint.save_state_dict(plain, 1, {"model": {"w": FULL}, "epoch": 3})
    command = ["checkpoint", "convert", str(source), str(tmp_path / "run")]
    assert main([*command, "--compress", "zstd"]) == 0
    assert main(["checkpoint", "show", "--quick", str(tmp_path / "run")]) == 0
    _, total, *_, row, tree = capsys.readouterr().out.splitlines()
    assert "compressed" not in tree
    path = tmp_path / "run" / "step-00000001.h5"
    stored = read_header(path).entries["state/model/w"].stored_bytes
    ratio = f"compressed, ratio {FULL.nbytes / stored:,.0f}"
    assert "step 1, 5.60 MB (" in total and ratio in row, (total, row)
    assert main(["checkpoint", "verify", str(tmp_path / "run")]) == 0
    loaded = checkpoint.load_state_dict(None, tmp_path / "run")
    assert loaded["epoch"] == 3 and is_equal(loaded["model"]["w"], FULL)
    assert main([*command, "--compress", "zstd", "--to", "safetensors"]) == 2
    assert "compress='zstd' to safetensors; expected to pario" in capsys.readouterr().err
