"""Arguments and files of records that are refused by name, and small parts of the interface."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader, Mixture, sample_lengths, tfexample
from pario.records.lengths import read_lengths
from pario.records.samples import split_name


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


@pytest.fixture
def lines(tmp_path: Path) -> Dataset:
    path = tmp_path / "a.txt"
    path.write_bytes(b"".join(b"x" * number + b"\n" for number in range(10)))
    assert records("index", path) == 0
    return Dataset(path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.txt", None, "none.txt: No such file or directory; expected a file of lengths"),
        ("a.txt", b"1\ntwo\n", "a.txt: lengths are no numbers: "),
        ("a.npy", b"no array", "a.npy: lengths are no numbers: "),
        ("a.csv", b"1 -2", "a.csv: lengths must be a list of whole numbers that are not negative"),
    ],
)
def test_a_file_without_lengths_is_named(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ParioError) as error:
        read_lengths(str(tmp_path / name))
    assert str(error.value).startswith(f"{tmp_path}/{reason}")


@pytest.mark.parametrize("array", [np.zeros((2, 2), "i8"), np.zeros(2)])
def test_an_array_that_is_no_list_of_lengths_is_named(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ParioError, match=r"a\.npy: lengths must be a list of whole numbers"):
        read_lengths(str(tmp_path / "a.npy"))


@pytest.mark.parametrize(
    ("name", "array", "save"),
    [
        ("a.npy", np.array([3, 0, 7], "i2"), np.save),
        ("a.bin", np.array([3, 0, 7], "<u8"), lambda path, array: array.tofile(path)),
        ("a.csv", np.array([3, 0, 7]), lambda path, array: np.savetxt(path, array, "%d")),
    ],
)
def test_lengths_are_read_from_each_kind_of_file(
    tmp_path: Path, name: str, array: Any, save: Callable[[Path, Any], None]
) -> None:
    save(tmp_path / name, array)
    found = read_lengths(str(tmp_path / name))
    assert (found.tolist(), found.dtype) == ([3, 0, 7], np.uint64)


@pytest.mark.parametrize("value", [-1, np.int64(-1), np.array(-1)])
def test_a_negative_length_of_a_record_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^-1: expected at least 0$"):
        sample_lengths.length_of(value)


def test_lengths_of_records_that_cannot_be_read_are_an_error_or_missing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_text(f"content {number}")
    assert records("convert", tmp_path / "in", "--to", "prec", "-o", tmp_path / "a.prec") == 0
    packed = (tmp_path / "a.prec").read_bytes()
    (tmp_path / "a.prec").write_bytes(packed.replace(b"content 1", b"damaged 1"))
    dataset = Dataset(tmp_path / "a.prec")
    with pytest.raises(ParioError, match=r"record 1: .*checksum"):
        dataset.lengths("txt")
    assert Dataset(tmp_path / "a.prec", errors="skip").lengths("txt").tolist() == [9, -1, 9]


def test_a_batch_that_is_pickled_keeps_its_records_alone(lines: Dataset) -> None:
    batch = list(Loader(lines, 4))[1]
    assert batch._memory.nbytes >= 4 + 5 + 6 + 7
    again = pickle.loads(pickle.dumps(batch))
    assert list(map(bytes, again)) == [b"x" * number for number in (4, 5, 6, 7)]
    assert again.numbers.tolist() == [4, 5, 6, 7]
    assert again._memory.nbytes == 4 + 5 + 6 + 7


@pytest.mark.parametrize("size", [5, 14])
def test_a_compressed_file_with_half_a_record_is_refused(
    lines: Dataset, tmp_path: Path, size: int
) -> None:
    pytest.importorskip("indexed_gzip")
    assert records("convert", lines.path, "--to", "tfrecord", "-o", tmp_path / "a.tfrecord") == 0
    whole = (tmp_path / "a.tfrecord").read_bytes()
    with gzip.open(tmp_path / "b.tfrecord.gz", "wb") as file:
        file.write(whole + whole[-25:][:size])
    with pytest.raises(ParioError, match=r"b\.tfrecord\.gz: .*its last record is incomplete"):
        len(Dataset(tmp_path / "b.tfrecord.gz"))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda data: Dataset(data.path, errors="ignore"), "errors='ignore': expected 'raise' or"),
        (lambda data: data.sample(0), "a.txt: only records of tar files have members, these are"),
        (lambda data: Loader(data, 2).batch(2, length=len, lengths=[1] * 10), "not both"),
        (lambda data: Loader(Mixture([(data, 1)]), 2, blocks=(4, 2)), "expected neither blocks"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    lines: Dataset, make: Callable[[Dataset], Any], reason: str
) -> None:
    with pytest.raises(ParioError, match=reason):
        make(lines)


def field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer that consists of bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def example(feature: bytes) -> bytes:
    return field(1, field(1, field(1, b"name") + field(2, feature)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x08\x01", "field 1 has wire type 0"),
        (b"\x0b", "wire type 3"),
        (b"\x8a", "it ends within a number"),
        (b"\xff" * 11, "it ends within a number"),
        (example(field(3, field(1, b"\x01\x80"))), "it ends within a number"),
        (example(field(3, field(1, b"\x80" * 10 + b"\x01"))), "it ends within a number"),
        (example(field(3, b""))[:-1], "it ends within a field"),
    ],
)
def test_bytes_that_are_no_example_of_tensorflow_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^no TF Example: {reason}$"):
        tfexample.parse_example(data)


def test_an_example_of_tensorflow_has_arrays_by_name() -> None:
    packed = tfexample.parse_example(example(field(3, field(1, b"\x05\x80\x01"))))
    assert (packed["name"].tolist(), packed["name"].dtype) == ([5, 128], np.int64)
    single = tfexample.parse_example(example(field(1, field(1, b"one"))))
    assert single == {"name": b"one"}


def test_a_mixture_of_an_empty_file_is_refused(lines: Dataset, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    empty = Dataset(tmp_path / "empty", format="fixed", size=1)
    with pytest.raises(ParioError, match=f"Mixture: {tmp_path}/empty has no records"):
        Mixture([(lines, 1), (empty, 1)])


def test_a_dataset_shows_its_file_records_and_format(lines: Dataset) -> None:
    assert repr(lines) == f"Dataset({lines.path!r}: 10 records, lines)"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a/b.Tar.GZ", ("a/b", "tar.gz")),
        ("a.b/c", ("a.b/c", None)),
        ("a.", ("a", "")),
        ("a/.hidden", ("a/.hidden", None)),
        ("./a.txt", ("./a", "txt")),
    ],
)
def test_a_name_is_split_before_the_first_dot_of_its_last_part(
    name: str, parts: tuple[str, str | None]
) -> None:
    assert split_name(name) == parts
