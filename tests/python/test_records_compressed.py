"""Compressed lines, TFRecord and WebDataset have the records of the files that were compressed, and
are read from restart points."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import random
import sys
import tarfile
import warnings
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader, compressed, restart_points
from pario.records.kept_arrays import load_arrays, save_arrays

#: Decompressed bytes of a group in these tests, instead of 4 MiB, and of one within a frame of
#: zstd, instead of 64 MiB.
SMALL, WITHIN = 64 << 10, 128 << 10


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("indexed_gzip", reason="indexed_gzip is not installed")
    pytest.importorskip("zstandard", reason="zstandard is not installed")
    monkeypatch.setattr(restart_points, "GROUP", SMALL)
    monkeypatch.setattr(restart_points, "WITHIN", WITHIN)
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))


def make_lines(path: Path) -> Path:
    chance = random.Random(1)
    lines = [chance.randbytes(chance.randint(0, 300)).hex() for _ in range(3000)]
    path.write_bytes("\n".join(lines).encode() + b"\r\n\nlast")
    return path


def make_tfrecord(path: Path) -> Path:
    make_lines(path.with_suffix(".txt"))
    command = ["records", "convert", path.with_suffix(".txt"), "--to", "tfrecord", "-o", path]
    assert main(list(map(str, command))) == 0
    return path


def make_tar(path: Path) -> Path:
    chance = random.Random(1)
    with tarfile.open(path, "w") as archive:
        for number in range(400):
            for name in (f"d/{number}.bin", f"d/{number}.{'x' * 120}.cls"):
                content = chance.randbytes(number) if name.endswith("bin") else b"%d" % number
                header = tarfile.TarInfo(name)
                header.size = len(content)
                archive.addfile(header, io.BytesIO(content))
    return path


FILES = {"a.jsonl": make_lines, "a.tfrecord": make_tfrecord, "a.tar": make_tar}


def compress(path: Path, suffix: str, frame: int = 50_000) -> Path:
    data, out = path.read_bytes(), path.with_name(path.name + suffix)
    if suffix == ".gz":
        out.write_bytes(gzip.compress(data))
        return out
    import zstandard

    parts = [data[at : at + frame] for at in range(0, len(data), frame)]
    out.write_bytes(b"".join(map(zstandard.ZstdCompressor().compress, parts)))
    return out


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.system
def test_records_are_those_of_the_file(name: str, suffix: str, tmp_path: Path) -> None:
    path = FILES[name](tmp_path / name)
    plain, dataset = Dataset(path), Dataset(compress(path, suffix))
    assert (dataset.format, len(dataset)) == (plain.format, len(plain))
    if name == "a.tar":  # without the padding at the end of the file
        numbers = range(len(plain))
        assert [dataset.sample(n) for n in numbers] == [plain.sample(n) for n in numbers]
    else:
        assert list(map(bytes, dataset)) == list(map(bytes, plain))
    groups = dataset.file.groups.begins
    assert len(groups) > 4
    assert np.diff(groups[:-1]).min() >= SMALL


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_loader_decodes_each_group_once(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compress(make_lines(tmp_path / "a.txt"), suffix)
    expected = sorted(map(bytes, Dataset(path)))
    reads = []
    read = compressed.CompressedFile.decode
    monkeypatch.setattr(
        compressed.CompressedFile,
        "decode",
        lambda self, *place: reads.append(place[0]) or read(self, *place),
    )
    dataset = Dataset(path)
    loader = Loader(dataset, 100, shuffle=True, seed=3, groups=2)
    batches = [list(map(bytes, batch)) for batch in loader]
    assert sorted(chain(*batches)) == expected
    assert batches[0] != [bytes(record) for record in dataset[:100]]
    assert sorted(reads[: len(dataset.file.groups.begins) - 1]) == sorted(set(reads))
    again = pickle.loads(pickle.dumps(Loader(dataset, 100, shuffle=True, seed=3, groups=2)))
    assert [list(map(bytes, batch)) for batch in again] == batches


def test_groups_are_decoded_by_no_more_threads_than_processors_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = Loader(Dataset(compress(make_lines(tmp_path / "a.txt"), ".gz")), 100)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    list(loader)
    assert loader.stats.threads == 1


def test_a_long_frame_of_zstd_is_decompressed_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun = make_lines(tmp_path / "a.txt"), []
    expected, frame = list(map(bytes, Dataset(path))), compress(path, ".zst", 1 << 30)
    begin = restart_points.ZstdStream._decompressor
    monkeypatch.setattr(
        restart_points.ZstdStream, "_decompressor", lambda self: begun.append(1) or begin(self)
    )
    dataset = Dataset(frame)
    assert np.diff(dataset.file.groups.begins).max() < WITHIN + 1000
    assert len(begun) == 2  # for the search, and for the checksums
    # One thread, so that groups are decoded in the order of the requests.
    ordered = Loader(dataset, 100, prefetch=1)
    assert ([bytes(one) for batch in ordered for one in batch], len(begun)) == (expected, 3)
    shuffled = Loader(dataset, 100, shuffle=True, seed=3, groups=3, prefetch=1)
    assert sorted(bytes(one) for batch in shuffled for one in batch) == sorted(expected)
    # At most once for each turn of three groups, which are read in the order of the file.
    assert len(begun) - 3 <= -(-(len(dataset.file.groups.begins) - 1) // 3)
    assert [bytes(dataset[number]) for number in (2999, 0)] == [expected[2999], expected[0]]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_is_searched_once(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, searches = compress(make_lines(tmp_path / "a.txt"), suffix), []
    find = compressed.find_groups
    monkeypatch.setattr(
        compressed, "find_groups", lambda *facts: searches.append(1) or find(*facts)
    )
    count = len(Dataset(path))
    assert bytes(Dataset(path)[count - 1]) == b"last"
    assert len(searches) == 1
    path.write_bytes(path.read_bytes() * 2)
    assert len(Dataset(path)) == 2 * count - 1
    assert len(searches) == 2


def test_index_writes_restart_points_beside_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compress(make_lines(tmp_path / "a.txt"), ".gz")
    assert main(["records", "index", str(path)]) == 0
    assert "3,002 records (lines)" in capsys.readouterr().err
    assert Path(f"{path}.restarts").is_file()
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "empty"))
    assert len(Dataset(path)) == 3002
    assert not (tmp_path / "empty").exists()
    for command in (["stat", path], ["verify", path], ["get", path, "3001"]):
        assert main(["records", *map(str, command)]) == 0
    assert main(["records", "shuffle", str(path), "-o", str(tmp_path / "out")]) == 2


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_an_error(name: str, suffix: str, tmp_path: Path) -> None:
    path = compress(FILES[name](tmp_path / name), suffix)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(ParioError, match=r"not read as (gzip|zstd)"):
        Dataset(path)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["changed", "truncated"])
def test_a_damaged_header_of_a_tar_file_is_no_end_of_it(
    damage: str, suffix: str, tmp_path: Path
) -> None:
    path = make_tar(tmp_path / "a.tar")
    content = bytearray(path.read_bytes())
    at = content.index(b"d/200.bin")
    content[at] ^= 1
    path.write_bytes(content if damage == "changed" else content[: at + 100])
    with pytest.raises(ParioError, match="the header of a member is damaged"):
        Dataset(compress(path, suffix))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damage_after_the_search_is_found_by_checksums(suffix: str, tmp_path: Path) -> None:
    path = compress(make_lines(tmp_path / "a.txt"), suffix)
    count, before = len(Dataset(path)), path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ParioError, match=r"wrong checksum|not read as"):
        list(Dataset(path))
    dataset = Dataset(path, errors="skip")
    assert 0 < len(dataset[:]) < count
    assert dataset.stats.skipped == count - len(dataset[:])


def test_damaged_restart_points_are_found_anew(tmp_path: Path) -> None:
    path = compress(make_lines(tmp_path / "a.txt"), ".gz")
    Path(f"{path}.restarts").write_bytes(b"PK damaged")
    assert len(Dataset(path)) == 3002


def test_kept_arrays_with_any_damage_are_whole_or_none(tmp_path: Path) -> None:
    path, facts, chance = tmp_path / "kept", ["1", "2"], random.Random(1)
    save_arrays(path, facts, numbers=np.arange(5))
    content = path.read_bytes()
    found = []
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        with warnings.catch_warnings(action="ignore"):
            found.append(load_arrays(path, facts, "numbers"))
    assert {len(one["numbers"]) for one in found if one} == {5}
    assert None in found


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_grows_while_it_is_searched_is_searched_again(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes(b"1\n2\n")
    path = compress(tmp_path / "a.txt", suffix)
    whole = path.read_bytes()
    find_checksums = compressed.CompressedFile._find_checksums

    def append_after_search(file: compressed.CompressedFile) -> object:
        found = find_checksums(file)
        path.write_bytes(whole + whole)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(compressed.CompressedFile, "_find_checksums", append_after_search)
        with pytest.raises(OSError, match="modified since it was opened"):
            list(Dataset(path))
    assert [bytes(one) for one in Dataset(path)] == [b"1", b"2", b"1", b"2"]


def test_compressed_empty_files_have_no_records(tmp_path: Path) -> None:
    import zstandard

    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "a.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(b""))
    for suffix in (".gz", ".zst"):
        assert len(Dataset(tmp_path / f"a.txt{suffix}")) == 0


def test_compressed_bytes_are_not_read_as_lines(tmp_path: Path) -> None:
    import zstandard

    text, how = b"one\ntwo\n", {"format": "lines"}
    zstd = zstandard.ZstdCompressor().compress
    for name, compress_text, expected in (
        ("a.txt", gzip.compress, "by gzip: expected a name with .gz"),
        ("b.txt", zstd, "by zstd: expected a name with .zst"),
        ("c.xz", lzma.compress, "by xz: expected .gz or .zst, or the decompressed file"),
        ("d.bz2", bz2.compress, "by bzip2: expected .gz or .zst, or the decompressed file"),
    ):
        (tmp_path / name).write_bytes(compress_text(text))
        for options in ({}, how):
            with pytest.raises(ParioError, match=f"{name}: is compressed {expected}"):
                Dataset(tmp_path / name, **options)
    (tmp_path / "e.txt").write_bytes(b"BZhou\n")
    assert len(Dataset(tmp_path / "e.txt")) == 1


@pytest.mark.parametrize("format", [[], ["--format", "lines"]])
def test_commands_do_not_read_compressed_bytes_as_lines(
    format: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"one\ntwo\n"))
    for action in (["index"], ["shuffle", "-o", tmp_path / "out.txt"]):
        assert main(["records", *map(str, [*action, tmp_path / "a.txt", *format])]) == 2
        assert "a.txt: is compressed by gzip: expected a name with .gz" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.system
def test_compressed_objects_are_not_read_as_lines() -> None:
    memory = pytest.importorskip("fsspec", reason="fsspec is not installed").filesystem("memory")
    for name, content in (("a.txt", gzip.compress(b"one\n")), ("b.txt", b"one\n"), ("c.txt", b"")):
        memory.pipe_file(f"/compressed/{name}", content)
    with pytest.raises(ParioError, match=r"compressed/a\.txt: is compressed by gzip"):
        Dataset("memory://compressed/a.txt", format="lines")
    assert bytes(Dataset("memory://compressed/b.txt", format="lines")[0]) == b"one"
    assert len(Dataset("memory://compressed/c.txt", format="lines")) == 0


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.tfrecord.gz", "a.tgz", "a.jsonl.zst"])
def test_an_empty_file_is_not_compressed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """As for gzip and zstd: a writer that was interrupted leaves it."""
    path = tmp_path / name
    path.touch()
    with pytest.raises(ParioError, match=rf"{path}: not read as (gzip|zstd): the file is empty"):
        Loader(path)
    assert main(["records", "index", str(path)]) == 2
    assert "the file is empty" in capsys.readouterr().err


def test_formats_and_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    with pytest.raises(ParioError, match="its format is not known: expected lines, tfrecord"):
        Dataset(path)
    assert len(Dataset(path, format="lines")) == 2
    with pytest.raises(ParioError, match="only records of Parquet have columns"):
        Dataset(path, format="lines", column="a")
    monkeypatch.setitem(sys.modules, "indexed_gzip", None)
    with pytest.raises(ParioError, match="reading gzip needs the package indexed_gzip: pip"):
        Dataset(path, format="lines")
