"""Record files and libraries of other projects: each side reads the files of the other, and Parquet
and ArrayRecord files are converted."""

from __future__ import annotations

import json
import random
import struct
import sys
import tarfile
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, foreign
from tests.support.commands import run_command

RECORDS = [random.Random(number).randbytes(number * 37 % 5000) for number in range(200)]


#: The program gets SIGTERM, as at the end of a job's time, when some records are copied.
TERMINATED = """
import os, signal, sys
from pario.cli import main
from pario.records.groups import GroupedFile
list_pieces = GroupedFile.all_pieces
def list_pieces_and_end(*arguments):
    yield next(list_pieces(*arguments))
    os.kill(os.getpid(), signal.SIGTERM)
GroupedFile.all_pieces = list_pieces_and_end
main(sys.argv[1:])
"""


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Makes packed samples of two files each."""
    directory = tmp_path / "tree"
    directory.mkdir()
    for number, record in enumerate(RECORDS):
        (directory / f"{number:04d}.jpg").write_bytes(record)
        (directory / f"{number:04d}.cls").write_text(str(number % 7))
    assert records("pack", directory, "-o", tmp_path / "a.prec") == 0
    return tmp_path / "a.prec"


class TestTar:
    def test_packed_files_become_samples(self, packed: Path, tmp_path: Path) -> None:
        assert records("convert", packed, "-o", tmp_path / "a.tar", "--to", "tar") == 0
        dataset = Dataset(tmp_path / "a.tar")
        assert [dataset.sample(number) for number in range(len(dataset))] == [
            {"__key__": f"{number:04d}".encode(), "jpg": record, "cls": str(number % 7).encode()}
            for number, record in enumerate(RECORDS)
        ]
        with tarfile.open(tmp_path / "a.tar") as archive:
            assert {member.name: member.size for member in archive}["0010.jpg"] == len(RECORDS[10])

    @pytest.mark.parametrize("name", ["x" * 99 + ".b", "d/" * 60 + "x.bin", "ä" * 60 + ".bin"])
    def test_names_of_any_length(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"content")
        path.chmod(0o600)
        assert records("convert", tmp_path / "tree", "-o", tmp_path / "a.tar", "--to", "tar") == 0
        with tarfile.open(tmp_path / "a.tar") as archive:
            (member,) = archive
            assert (member.name, member.mode, archive.extractfile(member).read()) == (
                name,
                0o600,
                b"content",
            )  # type: ignore[union-attr]
        assert records("verify", tmp_path / "a.tar") == 0

    def test_records_without_names_are_numbered(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
        assert records("convert", tmp_path / "a.txt", "-o", tmp_path / "a.tar", "--to", "tar") == 0
        dataset = Dataset(tmp_path / "a.tar")
        assert [dataset.sample(number) for number in range(2)] == [
            {"__key__": b"000000000", "txt": b"one"},
            {"__key__": b"000000001", "txt": b"two"},
        ]


class TestParquet:
    ROWS = (
        {"id": 1, "text": "one", "image": b"\x00\xff"},
        {"id": 2, "text": "zwölf", "image": b""},
    )

    @pytest.fixture
    def parquet(self, tmp_path: Path) -> Path:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(list(self.ROWS)), tmp_path / "a.parquet"
        )
        return tmp_path / "a.parquet"

    def test_rows_become_json(self, parquet: Path, tmp_path: Path) -> None:
        assert records("convert", parquet, "-o", tmp_path / "a.jsonl", "--to", "lines") == 0
        assert [json.loads(bytes(line)) for line in Dataset(tmp_path / "a.jsonl")] == [
            {"id": 1, "text": "one", "image": "AP8="},
            {"id": 2, "text": "zwölf", "image": ""},
        ]
        assert {path.name for path in tmp_path.iterdir()} == {"a.parquet", "a.jsonl"}

    def test_a_column_becomes_records(self, parquet: Path, tmp_path: Path) -> None:
        for column in ("image", "text"):
            assert (
                records(
                    "convert", parquet, "-o", tmp_path / column, "--to", "prec", "--column", column
                )
                == 0
            )
        assert list(map(bytes, Dataset(tmp_path / "image"))) == [b"\x00\xff", b""]
        assert list(map(bytes, Dataset(tmp_path / "text"))) == [b"one", "zwölf".encode()]

    def test_a_terminated_conversion_leaves_no_copy(self, parquet: Path, tmp_path: Path) -> None:
        before = sorted(tmp_path.iterdir())
        words = ["records", "convert", parquet, "-o", tmp_path / "a.prec", "--to", "prec"]
        run_command([sys.executable, "-c", TERMINATED, *words], status=143)
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.parametrize(
        ("column", "words"),
        [("id", "column id holds int"), ("none", "expected one of id, text, image")],
    )
    def test_columns_that_are_no_records_are_named(
        self,
        column: str,
        words: str,
        parquet: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert (
            records("convert", parquet, "-o", tmp_path / "out", "--to", "prec", "--column", column)
            == 2
        )
        assert words in capsys.readouterr().err and not (tmp_path / "out").exists()

    def test_a_damaged_file_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        (tmp_path / "b.parquet").write_bytes(b"PAR1 not really")
        assert (
            records("convert", tmp_path / "b.parquet", "-o", tmp_path / "out", "--to", "prec") == 2
        )
        assert "b.parquet: not read as Parquet" in capsys.readouterr().err

    def test_a_package_that_is_missing_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.arrayrecord").write_bytes(b"")
        monkeypatch.setitem(sys.modules, "array_record.python.array_record_module", None)
        assert (
            records("convert", tmp_path / "a.arrayrecord", "-o", tmp_path / "out", "--to", "prec")
            == 2
        )
        assert "pip install array_record" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_array_records_become_records(tmp_path: Path) -> None:
    module = pytest.importorskip(
        "array_record.python.array_record_module", reason="array_record is not installed"
    )
    writer = module.ArrayRecordWriter(str(tmp_path / "a.arrayrecord"), "group_size:1")
    for record in RECORDS:
        writer.write(record)
    writer.close()
    assert (
        records("convert", tmp_path / "a.arrayrecord", "-o", tmp_path / "a.prec", "--to", "prec")
        == 0
    )
    assert list(map(bytes, Dataset(tmp_path / "a.prec"))) == RECORDS


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", [0, 1, 23, 24, 25])
def test_padding_of_array_records_ends_at_the_header_of_a_block(tmp_path: Path, end: int) -> None:
    """A chunk of empty records has a byte for each; the first such chunk begins at byte 64."""
    module = pytest.importorskip(
        "array_record.python.array_record_module", reason="array_record is not installed"
    )
    count = (1 << 16) - 64 + end
    writer = module.ArrayRecordWriter(str(tmp_path / "a.arrayrecord"), f"group_size:{count}")
    for _ in range(2 * count):
        writer.write(b"")
    writer.close()
    assert len(Dataset(tmp_path / "a.arrayrecord")) == 2 * count
    assert records("verify", tmp_path / "a.arrayrecord") == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("left", [0, 100, 1 << 16, 200_000, -1])
def test_array_records_that_are_cut_off_are_refused(tmp_path: Path, left: int) -> None:
    module = pytest.importorskip(
        "array_record.python.array_record_module", reason="array_record is not installed"
    )
    path = tmp_path / "a.arrayrecord"
    writer = module.ArrayRecordWriter(str(path), "group_size:1,uncompressed")
    for _ in range(1000):
        writer.write(bytes(300))
    writer.close()
    assert len(Dataset(path)) == 1000
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ParioError, match=r"a\.arrayrecord: not read as ArrayRecord: "):
        Dataset(path)


class ArrayFile:
    """A file of ArrayRecord, in blocks with headers as its format describes, that a reader in place
    of the package's own gives back."""

    BLOCK, HEADER = 1 << 16, b"\xff" * 24

    def __init__(self, path: Path) -> None:
        self.path, self.records, self.begins = path, list[bytes](), list[int]()
        self.damage = ""
        self._bytes = bytearray()

    def add_chunk(self, records: list[bytes], length: int) -> None:
        """Adds a chunk with so many bytes of data, and padding: it has a byte for each record, and
        does not end within or immediately behind the header of a block."""
        begin = len(self._bytes)
        self.begins.append(begin)
        kind = len(records) << 8 | ord("r")
        for byte in struct.pack("<5Q", 1, length, 2, kind, 3) + b"\xee" * length:
            if len(self._bytes) % self.BLOCK == 0:
                self._bytes += self.HEADER
            self._bytes.append(byte)
        while len(self._bytes) < begin + len(records):
            self._bytes += b"\0" if len(self._bytes) % self.BLOCK else self.HEADER + b"\0"
        self.records += records
        self.path.write_bytes(self._bytes)

    def open(self, path: str, options: str) -> ArrayFile:
        assert (path, options) == (
            str(self.path),
            "readahead_buffer_size:0,max_parallelism:0",
        )
        return self

    def ok(self) -> bool:
        return not self.damage

    def close(self) -> None:
        raise RuntimeError(self.damage)

    def num_records(self) -> int:
        return len(self.records)

    def read(self, first: int, last: int) -> list[bytes]:
        return self.records[first:last]


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArrayFile:
    """An ArrayRecord file with the first chunk, which has no records."""
    file = ArrayFile(tmp_path / "a.arrayrecord")
    file.add_chunk([], 0)
    module: Any = ModuleType("array_record_module")
    module.ArrayRecordReader = file.open
    for name in ("array_record", "array_record.python"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "array_record.python.array_record_module", module)
    return file


@pytest.mark.parametrize("seed", range(3))
def test_chunks_of_array_records_are_found_between_headers_of_blocks(
    arrays: ArrayFile, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Headers of blocks interrupt data, padding and headers of chunks, and lie between chunks."""
    source = random.Random(seed)
    counts = []
    for number in range(8):
        to_block = -arrays.path.stat().st_size % ArrayFile.BLOCK
        near = max(0, to_block - 40 - source.choice([0, 1, 30]))
        length = source.choice([0, 10, 70_000, near, near])
        count = source.choice([1, 2, 50, (to_block or 1) + source.choice([0, 1, 24])])
        counts.append(count)
        arrays.add_chunk([b"%d %d" % (number, one) for one in range(count)], length)
    arrays.add_chunk([], 100)  # the tables of the format
    dataset = Dataset(arrays.path)
    assert dataset.file.groups.begins.tolist() == arrays.begins[1:]
    assert dataset.file.groups.firsts.tolist() == [0, *accumulate(counts)]
    wanted = [len(dataset) - 1, 0, counts[0]]
    assert list(map(bytes, dataset[wanted])) == [arrays.records[number] for number in wanted]
    assert records("verify", arrays.path) == 0 and "are well" in capsys.readouterr().out


def test_array_records_without_records_or_columns(arrays: ArrayFile) -> None:
    assert len(Dataset(arrays.path)) == 0
    with pytest.raises(ParioError, match="records of ArrayRecord have no columns"):
        Dataset(arrays.path, column="a")


def test_damaged_array_records_are_refused(arrays: ArrayFile) -> None:
    arrays.add_chunk([b"one", b"two"], 100)
    arrays.records.append(b"three")
    with pytest.raises(ParioError, match=r"not read as ArrayRecord: .* have 2 of 3 records"):
        Dataset(arrays.path)
    arrays.path.write_bytes(arrays.path.read_bytes() + b"\1" * 39)
    with pytest.raises(ParioError, match=r"a\.arrayrecord: .* last chunk is incomplete"):
        Dataset(arrays.path)
    arrays.damage = "no postscript"
    with pytest.raises(ParioError, match=r"a\.arrayrecord: not read as ArrayRecord: no postscript"):
        Dataset(arrays.path)


@pytest.mark.exhaustive
class TestTfrecord:
    def test_written_by_tfrecord(self, tmp_path: Path) -> None:
        writing = pytest.importorskip("tfrecord.writer", reason="tfrecord is not installed")
        writer = writing.TFRecordWriter(str(tmp_path / "a.tfrecord"))
        for number, record in enumerate(RECORDS):
            writer.write({"data": (record, "byte"), "number": (number, "int")})
        writer.close()
        assert records("verify", tmp_path / "a.tfrecord") == 0
        example = pytest.importorskip(
            "tfrecord.example_pb2", reason="tfrecord is not installed"
        ).Example
        found = [
            example.FromString(bytes(record)).features.feature
            for record in Dataset(tmp_path / "a.tfrecord")
        ]
        assert [one["data"].bytes_list.value[0] for one in found] == RECORDS
        assert [one["number"].int64_list.value[0] for one in found] == list(range(len(RECORDS)))

    def test_read_by_tfrecord(self, packed: Path, tmp_path: Path) -> None:
        reading = pytest.importorskip("tfrecord.reader", reason="tfrecord is not installed")
        assert records("convert", packed, "-o", tmp_path / "b.tfrecord", "--to", "tfrecord") == 0
        found = [
            bytes(record) for record in reading.tfrecord_iterator(str(tmp_path / "b.tfrecord"))
        ]
        assert found == list(map(bytes, Dataset(packed)))


@pytest.mark.exhaustive
class TestWebDataset:
    def test_written_by_webdataset(self, tmp_path: Path) -> None:
        webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
        with webdataset.TarWriter(str(tmp_path / "a.tar")) as writer:
            for number, record in enumerate(RECORDS):
                writer.write({"__key__": f"{number:04d}", "bin": record, "cls": number % 7})
        dataset = Dataset(tmp_path / "a.tar")
        assert [dataset.sample(number) for number in range(len(dataset))] == [
            {"__key__": f"{number:04d}".encode(), "bin": record, "cls": str(number % 7).encode()}
            for number, record in enumerate(RECORDS)
        ]

    def test_read_by_webdataset(self, packed: Path, tmp_path: Path) -> None:
        webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
        assert records("convert", packed, "-o", tmp_path / "b.tar", "--to", "tar") == 0
        found = list(webdataset.WebDataset(str(tmp_path / "b.tar"), shardshuffle=False))
        assert [(one["__key__"], one["jpg"], one["cls"]) for one in found] == [
            (f"{number:04d}", record, str(number % 7).encode())
            for number, record in enumerate(RECORDS)
        ]


def test_a_file_that_is_replaced_while_it_is_indexed_gets_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    path, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for one, rows in ((path, 10), (other, 15)):
        parquet.write_table(pyarrow.table({"x": range(rows)}), one, row_group_size=5)
    find_groups = foreign._Parquet.groups

    def replace_after_search(file: foreign._Parquet) -> foreign.Groups:
        found = find_groups(file)
        other.replace(path)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(foreign._Parquet, "groups", replace_after_search)
        assert main(["records", "index", str(path)]) == 2
    assert "it was changed while it was indexed" in capsys.readouterr().err
    assert len(Dataset(path)) == 15
