"""Loads records with other loaders of 2 workers each, from data sets in the format of each.

The records are random and of one size. A loader whose package is not installed is skipped, with a
message.
"""

from __future__ import annotations

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from measuring import NoResultError, call_with_limit

WORKERS = 2
#: Records in a shard, for formats with shards, and in the shuffle buffer of WebDataset.
SHARD, SHUFFLED = 1000, 1000
IMPORT_SECONDS, MAKE_SECONDS = 60.0, 120.0


@dataclass
class Rival:
    """A loader: its packages, how to make its data, and an endless iterator of batch sizes."""

    name: str
    packages: tuple[str, ...]
    make: Callable[[Path, Namespace], None]
    load: Callable[[Path, Namespace, bool], Iterator[int]]


def contents(arguments: Namespace) -> Iterator[bytes]:
    block = np.random.default_rng(1).bytes(arguments.size)
    return (block for _ in range(arguments.records))


def iterate_forever(start: Callable[[], Any]) -> Iterator[int]:
    """Returns the sizes of batches, epoch after epoch: the length of their first member."""
    while True:
        for batch in start():
            while isinstance(batch, dict | tuple):
                batch = batch["data"] if isinstance(batch, dict) else batch[0]
            yield len(batch)


def data_loader(records: Any, arguments: Namespace, **options: Any) -> Iterator[int]:
    import torch.utils.data

    loader = torch.utils.data.DataLoader(
        records,
        batch_size=arguments.batch,
        num_workers=WORKERS,
        collate_fn=list,
        persistent_workers=True,
        **options,
    )
    return iterate_forever(lambda: loader)


def make_plain(directory: Path, arguments: Namespace) -> None:
    with (directory / "records").open("wb") as out:
        out.writelines(contents(arguments))


class Preads:
    """A minimal data set: a pread for each record."""

    def __init__(self, path: Path, arguments: Namespace) -> None:
        self.file, self.count, self.size = (
            os.open(path, os.O_RDONLY),
            arguments.records,
            arguments.size,
        )

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        import torch

        return torch.frombuffer(
            bytearray(os.pread(self.file, self.size, number * self.size)), dtype=torch.uint8
        )


def by_pread(directory: Path, arguments: Namespace, shuffle: bool) -> Iterator[int]:
    import torch.utils.data

    loader = torch.utils.data.DataLoader(
        Preads(directory / "records", arguments),  # type: ignore[arg-type]
        batch_size=arguments.batch,
        shuffle=shuffle,
        num_workers=WORKERS,
        persistent_workers=True,
    )
    return iterate_forever(lambda: loader)


def make_webdataset(directory: Path, arguments: Namespace) -> None:
    import webdataset

    with webdataset.ShardWriter(str(directory / "%06d.tar"), maxcount=SHARD, verbose=0) as writer:
        for number, record in enumerate(contents(arguments)):
            writer.write({"__key__": f"{number:09d}", "bin": record})


def by_webdataset(directory: Path, arguments: Namespace, shuffle: bool) -> Iterator[int]:
    import webdataset

    shards = [str(path) for path in sorted(directory.glob("*.tar"))]
    records = webdataset.WebDataset(
        shards, shardshuffle=len(shards) if shuffle else False, empty_check=False
    )
    records = (records.shuffle(SHUFFLED) if shuffle else records).map(lambda sample: sample["bin"])
    return data_loader(records, arguments)


def make_array_record(directory: Path, arguments: Namespace) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(directory / "data.array_record"), "group_size:1,uncompressed")
    for record in contents(arguments):
        writer.write(record)
    writer.close()


def array_records(directory: Path) -> Any:
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    return ArrayRecordDataSource([str(directory / "data.array_record")])


def by_array_record(directory: Path, arguments: Namespace, shuffle: bool) -> Iterator[int]:
    return data_loader(array_records(directory), arguments, shuffle=shuffle)


def by_grain(directory: Path, arguments: Namespace, shuffle: bool) -> Iterator[int]:
    import grain

    def start() -> Any:
        records = grain.MapDataset.source(array_records(directory))
        records = (records.shuffle(seed=1) if shuffle else records).map(
            lambda record: np.frombuffer(record, np.uint8)
        )
        batches = records.to_iter_dataset().batch(arguments.batch)
        return batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))

    return iterate_forever(start)


def import_streaming() -> Any:
    """Imports mosaicml-streaming.

    It imports torchvision, whose PyPI wheel lacks operators if PyTorch is a CPU wheel; the two that
    it looks up are declared here.
    """
    import torch

    if torch.version.cuda is None and "torchvision" not in sys.modules:
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}",
                "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            )
    return importlib.import_module("streaming")


def make_mosaicml(directory: Path, arguments: Namespace) -> None:
    with import_streaming().MDSWriter(out=str(directory), columns={"data": "bytes"}) as writer:
        for record in contents(arguments):
            writer.write({"data": record})


def by_mosaicml(directory: Path, arguments: Namespace, shuffle: bool) -> Iterator[int]:
    import torch.utils.data

    records = import_streaming().StreamingDataset(
        local=str(directory), shuffle=shuffle, batch_size=arguments.batch
    )
    loader = torch.utils.data.DataLoader(
        records,
        batch_size=arguments.batch,
        num_workers=WORKERS,
        persistent_workers=True,
        collate_fn=lambda batch: [sample["data"] for sample in batch],
    )
    return iterate_forever(lambda: loader)


RIVALS = (
    Rival("DataLoader, pread", ("torch",), make_plain, by_pread),
    Rival("webdataset", ("webdataset", "torch"), make_webdataset, by_webdataset),
    Rival(
        "array_record, DataLoader", ("array_record", "torch"), make_array_record, by_array_record
    ),
    Rival("grain, array_record", ("grain", "array_record"), make_array_record, by_grain),
    Rival("mosaicml-streaming", ("streaming", "torch"), make_mosaicml, by_mosaicml),
)


def make_data_sets(names: list[str], directory: Path, arguments: Namespace) -> dict[Path, Rival]:
    """Makes the data of the named loaders (default: all); reports those that are skipped."""
    found = {}
    for rival in RIVALS:
        if names and not any(name in rival.name for name in names):
            continue
        if not are_installed(rival.name, rival.packages):
            continue
        place = directory / rival.name.replace(" ", "")
        place.mkdir()
        try:
            call_with_limit(partial(rival.make, place, arguments), MAKE_SECONDS)
        except NoResultError as error:
            print(f"skipped: {rival.name}: its data: {error}", file=sys.stderr, flush=True)
            continue
        found[place] = rival
    return found


def are_installed(name: str, packages: tuple[str, ...]) -> bool:
    """Imports the packages of a loader; reports it and returns False if one is missing or fails.

    They are imported in another process first: an import that crashes or hangs ends with it.
    """
    missing = [package for package in packages if find_spec(package) is None]
    reason = f"not installed: {', '.join(missing)}" if missing else ""
    try:
        if not missing:
            call_with_limit(partial(import_packages, packages), IMPORT_SECONDS)
            import_packages(packages)
    except NoResultError as error:
        reason = f"not imported: {error}"
    if reason:
        print(f"skipped: {name}: {reason}", file=sys.stderr, flush=True)
    return not reason


def import_packages(packages: tuple[str, ...]) -> None:
    for package in packages:
        import_streaming() if package == "streaming" else importlib.import_module(package)
