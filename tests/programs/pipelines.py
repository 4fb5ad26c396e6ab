"""Pipelines of a Loader by specification, and the batches that a process without pario computes for
it (tests.support.training_oracle)."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.cli import main
from pario.records import Dataset, Loader, Mixture
from tests.support import training_oracle

SIZES, SEED, EPOCHS, END = (61, 40), 5, 3, 999
RULES: dict[str, list[Any] | None] = {
    "records": None,
    "full": ["batch", 4, 0, 0],
    "tokens": ["batch", 0, 24, 0],
    "lengths": ["batch", 5, 0, 32],
    "lengths-tokens": ["batch", 0, 24, 40],
    "pack": ["pack", 16, 2, END],
}


#: The rules with lengths that are known before samples are read.
KNOWN = ["tokens, known", "lengths, known", "lengths-tokens, known", "pack, known"]


def make_spec(rule: str, mixed: bool, keep: int, shuffle: bool = True) -> dict[str, Any]:
    rule, _, known = rule.partition(", ")
    return {
        "known": bool(known),
        "sizes": SIZES,
        "weights": [3, 1] if mixed else None,
        "length": 90 if mixed else 0,
        "shuffle": shuffle,
        "seed": SEED,
        "epochs": EPOCHS,
        "keep": keep,
        "rule": RULES[rule],
    }


@cache
def compute(spec: str) -> list[list[Any]]:
    """The batches of each epoch, by a process that cannot import pario."""
    command = [sys.executable, "-I", "-S", training_oracle.__file__]
    done = subprocess.run(command, input=spec, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def make_sample(number: int) -> dict[str, Any]:
    return {"n": number, "tokens": [number] * training_oracle.length_of(number)}


def write_lines(path: Path, numbers: range) -> Dataset:
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(make_sample(number)) + "\n" for number in numbers))
    return Dataset(path)


def write_tar(path: Path, numbers: range) -> Dataset:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for number in numbers:
            content = json.dumps(make_sample(number)).encode()
            header = tarfile.TarInfo(f"{number:06}.json")
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return Dataset(path.with_suffix(".tar"))


def write_packed(path: Path, numbers: range) -> Dataset:
    path.mkdir()
    for number in numbers:
        (path / f"{number:06}.json").write_text(json.dumps(make_sample(number)))
    assert main(["records", "pack", str(path), "-o", str(path.with_suffix(".prec"))]) == 0
    return Dataset(path.with_suffix(".prec"))


def write_parquet(path: Path, numbers: range) -> Dataset:
    """Groups of one row, which a Loader shuffles record by record."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.Table.from_pylist([make_sample(n) | {"unused": "x"} for n in numbers])
    parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=1)
    return Dataset(path.with_suffix(".parquet"), column=["n", "tokens"])


def write_examples(path: Path, numbers: range) -> Dataset:
    """TFRecords of TF Examples."""
    with open(path.with_suffix(".tfrecord"), "wb") as file:  # noqa: PTH123
        for number in numbers:
            one = encode_example(number)
            length = struct.pack("<Q", len(one))
            file.write(length + mask(length) + one + mask(one))
    return Dataset(path.with_suffix(".tfrecord"))


def encode_example(number: int) -> bytes:
    """The sample as a TF Example."""
    values = {b"n": [number], b"tokens": make_sample(number)["tokens"]}
    entries = [
        encode_field(1, name) + encode_field(2, encode_field(3, encode_field(1, bytes(numbers))))
        for name, numbers in values.items()
    ]
    return encode_field(1, b"".join(encode_field(1, entry) for entry in entries))


def encode_field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer, of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def mask(data: bytes) -> bytes:
    """The masked CRC-32C of TFRecord."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) % 2**32 + 0xA282EAD8) % 2**32)


FORMATS: dict[str, Callable[[Path, range], Dataset]] = {
    "lines": write_lines,
    "tar": write_tar,
    "prec": write_packed,
    "parquet": write_parquet,
    "tfrecord": write_examples,
}


def write_files(folder: Path, format: str = "lines") -> list[Dataset]:
    """The files of SIZES, whose samples are numbered one after the other."""
    ends = np.cumsum(SIZES).tolist()
    return [
        FORMATS[format](folder / str(end), range(end - size, end))
        for size, end in zip(SIZES, ends, strict=True)
    ]


def unify(sample: dict[str, Any]) -> dict[str, Any]:
    """The sample of any format as :func:`make_sample` made it."""
    fields = sample.get("json", sample)
    return {"n": int(np.ravel(fields["n"])[0]), "tokens": list(map(int, fields["tokens"]))}


def length_of(sample: dict[str, Any]) -> int:
    return len(sample["tokens"])


class Keep:
    """The filter of a specification; can be pickled."""

    def __init__(self, keep: int) -> None:
        self.keep = keep

    def __call__(self, sample: dict[str, Any]) -> bool:
        return bool(sample["n"] % self.keep)


def make_loader(
    files: Sequence[Dataset],
    spec: dict[str, Any],
    rank: int | None,
    world: int | None,
    **options: Any,
) -> Any:
    source: Any = files
    if spec["weights"]:
        source = Mixture(list(zip(files, spec["weights"], strict=True)), spec["length"])
    rule = spec["rule"] or []
    loader = Loader(
        source,
        rule[2] if rule[:1] == ["pack"] else 4,
        shuffle=spec["shuffle"],
        seed=SEED,
        decode=True,
        rank=rank,
        world=world,
        **{"remainder": "exact", **options},
    )
    loader = loader.map(unify)
    if spec["keep"]:
        loader = loader.filter(Keep(spec["keep"]))
    lengths = list_lengths(spec["keep"]) if spec["known"] else None
    if rule[:1] == ["batch"]:
        length = None if spec["known"] else length_of
        return loader.batch(rule[1], tokens=rule[2], length=length, lengths=lengths, pool=rule[3])
    if rule[:1] == ["pack"]:
        return loader.pack_tokens(rule[1], field="tokens", end=END, lengths=lengths)
    return loader


def list_lengths(keep: int) -> list[int]:
    """The lengths of all samples; -1: the filter leaves it out."""
    lengths = map(training_oracle.length_of, range(sum(SIZES)))
    return [-1 if keep and n % keep == 0 else length for n, length in enumerate(lengths)]


def contents(batch: Any) -> list[Any]:
    """A batch as the process without pario writes it."""
    if isinstance(batch, dict):
        rows = (batch["tokens"], batch["segment_ids"], batch["positions"])
        return np.stack(rows, axis=1).tolist()  # type: ignore[no-any-return]
    return [sample["n"] for sample in batch]


def join(spec: dict[str, Any], ranks: Sequence[Sequence[Any]]) -> list[Any]:
    """The batches of all ranks in order, or their samples if batches are windows of the source."""
    batches = [one for step in zip_longest(*ranks) for one in step if one is not None]
    return batches if spec["rule"] else list(chain(*batches))


def list_expected(spec: dict[str, Any], epoch: int) -> list[Any]:
    batches = compute(json.dumps(spec))[epoch]
    return batches if spec["rule"] else [number for number in batches if number is not None]


def read(loaders: Sequence[Any], steps: int | None = None) -> list[list[Any]]:
    """The next batches of each rank in this epoch."""
    running: list[Iterator[Any]] = [islice(iter(loader), steps) for loader in loaders]
    return [[contents(batch) for batch in each] for each in running]
