"""Measures loaders of records from an object store that answers 20 ms late.

    python bench/object_stores.py [--directory DIR] [--records N] [--size BYTES] [--batch N]
        [--seconds S] [--rounds R] [--latency S] [--ways NAME ...]

The servers are processes on this machine, behind proxies that delay each answer and count the
requests: one of HTTP with ranges, and one of S3 (moto) for loaders that know no other. Each way
loads records in random order for `--seconds` or for an epoch, whichever ends first, in turn with
the others and in a process of its own, and begins cold; the seconds of the first batch count. The
ratio is to "one GET per sample", one request after the other. Ways whose packages are not installed
are skipped; a way that fails or does not end is named and left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from loader_rivals import (
    SHARD,
    SHUFFLED,
    WORKERS,
    are_installed,
    data_loader,
    import_streaming,
    iterate_forever,
    make_mosaicml,
    make_webdataset,
)
from measuring import make_parser, measure_or_name
from recording import Recorder
from tests.python.support.stores import Proxy, put, run_http_server, run_s3_server

from pario.records import Dataset, Loader

#: Requests at the same time of "obstore, threads".
THREADS = 64
#: Seconds in which a way must have loaded its first batch and ended.
PATIENCE = 30.0
HEADER = """\
| way | samples/s | ratio | GETs per sample | first batch, ms |
|---|---|---|---|---|"""


@dataclass(frozen=True)
class Stores:
    """The two servers, and a directory of this machine."""

    http: Proxy
    s3: Proxy
    directory: Path
    arguments: argparse.Namespace


@dataclass(frozen=True)
class Way:
    """A loader: its name, its packages, and an endless iterator of batch sizes."""

    name: str
    packages: tuple[str, ...]
    load: Callable[[Stores], Iterator[int]]
    server: str = "http"


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=10_240)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.02)
    parser.add_argument("--ways", nargs="*", default=[], metavar="NAME", help="parts of names")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        recorder = stack.enter_context(
            Recorder("object_stores", arguments, directories=[arguments.directory])
        )
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=arguments.directory)))
        served = directory / "served"
        served.mkdir()
        http = stack.enter_context(run_http_server(served, arguments.latency))
        s3 = stack.enter_context(run_s3_server(arguments.latency))
        stores = Stores(http, s3, directory, arguments)
        ways = [way for way in WAYS if is_chosen(way, arguments.ways)]
        make_objects(stores, served, ways)
        measure_ways(ways, stores, recorder)
    return 0


def is_chosen(way: Way, names: list[str]) -> bool:
    if names and not any(name in way.name for name in names):
        return False
    return are_installed(way.name, way.packages)


def make_objects(stores: Stores, served: Path, ways: list[Way]) -> None:
    """Makes the records in the formats of the chosen ways."""
    arguments = stores.arguments
    block = np.random.default_rng(1).bytes(arguments.size)
    with (served / "rows.bin").open("wb") as out:
        for _ in range(arguments.records):
            out.write(block)
    run = [sys.executable, "-m", "pario", "records"]
    size = ["--format", "fixed", "--size", str(arguments.size)]
    subprocess.run([*run, "index", str(served / "rows.bin"), *size], check=True)
    rows, pack = str(served / "rows.bin"), str(served / "train.prec")
    subprocess.run([*run, "convert", rows, "--to", "prec", "-o", pack], check=True)
    names = {way.name for way in ways}
    if "webdataset" in names:
        make_webdataset(served, arguments)
    if "mosaicml-streaming" in names:
        (stores.directory / "mds").mkdir()
        make_mosaicml(stores.directory / "mds", arguments)
        for path in sorted((stores.directory / "mds").iterdir()):
            put(f"{stores.s3.address}/bucket/mds/{path.name}", path.read_bytes())
    if "s3torchconnector" in names:
        for number in range(min(arguments.records, SHARD)):
            put(f"{stores.s3.address}/bucket/single/{number:09d}", block)


def random_numbers(stores: Stores) -> Iterator[int]:
    """Numbers of records, epoch after epoch."""
    chance = np.random.default_rng(2)
    while True:
        yield from chance.permutation(stores.arguments.records).tolist()


def by_one_get(stores: Stores, threads: int = 1) -> Iterator[int]:
    """A request for each record, made by hand with obstore."""
    import obstore
    from obstore.store import HTTPStore

    store = HTTPStore.from_url(stores.http.address, client_options={"allow_http": True})
    size, batch, numbers = stores.arguments.size, stores.arguments.batch, random_numbers(stores)

    def get(number: int) -> int:
        return len(obstore.get_range(store, "rows.bin", start=number * size, length=size))

    with ThreadPoolExecutor(threads) as pool:
        ahead = [pool.submit(get, next(numbers)) for _ in range(threads)]
        while True:
            for _ in range(batch):
                ahead.append(pool.submit(get, next(numbers)))
                ahead.pop(0).result()
            yield batch


def by_pario(stores: Stores, cached: bool = False, **order: object) -> Iterator[int]:
    if cached:
        blocks = tempfile.mkdtemp(dir=stores.directory)
        os.environ["PARIO_BLOCK_CACHE"] = f"{blocks}:100G"
    dataset = Dataset(f"{stores.http.address}/train.prec")
    os.environ.pop("PARIO_BLOCK_CACHE", None)
    loader = Loader(dataset, stores.arguments.batch, seed=1, **order)  # type: ignore[arg-type]
    for batch in loader.forever():
        yield len(batch)


def by_webdataset(stores: Stores) -> Iterator[int]:
    import webdataset

    shards = -(-stores.arguments.records // SHARD)
    urls = [f"pipe:curl -s -f {stores.http.address}/{number:06d}.tar" for number in range(shards)]
    records = webdataset.WebDataset(urls, shardshuffle=shards, empty_check=False)
    return data_loader(
        records.shuffle(SHUFFLED).map(lambda sample: sample["bin"]), stores.arguments
    )


def by_mosaicml(stores: Stores) -> Iterator[int]:
    import torch.utils.data

    streaming = import_streaming()
    streaming.base.util.clean_stale_shared_memory()
    os.environ["S3_ENDPOINT_URL"] = stores.s3.address
    records = streaming.StreamingDataset(
        remote="s3://bucket/mds",
        local=tempfile.mkdtemp(dir=stores.directory),
        shuffle=True,
        batch_size=stores.arguments.batch,
    )
    loader = torch.utils.data.DataLoader(
        records,
        batch_size=stores.arguments.batch,
        num_workers=WORKERS,
        collate_fn=lambda batch: [sample["data"] for sample in batch],
    )
    return iterate_forever(lambda: loader)


def by_s3torchconnector(stores: Stores) -> Iterator[int]:
    """An object for each record, as this package reads records."""
    from s3torchconnector import S3ClientConfig, S3MapDataset

    records = S3MapDataset.from_prefix(
        "s3://bucket/single/",
        region="us-east-1",
        endpoint=stores.s3.address,
        transform=lambda reader: reader.read(),
        s3client_config=S3ClientConfig(force_path_style=True),
    )
    return data_loader(records, stores.arguments, shuffle=True)


WAYS = (
    Way("one GET per sample", ("obstore",), by_one_get),
    Way("obstore, threads", ("obstore",), partial(by_one_get, threads=THREADS)),
    Way("pario, shuffle", ("obstore",), partial(by_pario, shuffle=True)),
    Way("pario, blocks", ("obstore",), partial(by_pario, blocks=(100, 10))),
    Way("pario, block cache", ("obstore",), partial(by_pario, cached=True, shuffle=True)),
    Way("webdataset", ("webdataset", "torch"), by_webdataset),
    Way("mosaicml-streaming", ("streaming", "torch", "boto3"), by_mosaicml, "s3"),
    Way("s3torchconnector", ("s3torchconnector", "torch"), by_s3torchconnector, "s3"),
)


@dataclass(frozen=True)
class Speed:
    """A measurement of one way."""

    samples: float  # per second, from the start
    gets: float  # per sample
    first: float  # seconds to the first batch


def measure_speed(way: Way, stores: Stores) -> Speed:
    """Loads the first epoch, for at most so many seconds: later epochs may come from memory."""
    proxy = stores.s3 if way.server == "s3" else stores.http
    proxy.clear()
    begin = time.perf_counter()
    batches = way.load(stores)
    samples = next(batches)
    first = elapsed = time.perf_counter() - begin
    while elapsed < stores.arguments.seconds and samples < stores.arguments.records:
        samples += next(batches)
        elapsed = time.perf_counter() - begin
    gets = len([one for one in proxy.requests() if one.method == "GET"])
    batches.close()  # type: ignore[attr-defined]
    return Speed(samples / elapsed, gets / samples, first)


def measure_ways(ways: list[Way], stores: Stores, recorder: Recorder) -> None:
    """Measures all ways in turn, and prints their rows. A way without a result is left out."""
    measured: dict[str, list[Speed]] = {way.name: [] for way in ways}
    for number in range(1, stores.arguments.rounds + 1):
        for way in list(ways):
            load = partial(measure_speed, way, stores)
            speed = measure_or_name(way.name, load, stores.arguments.seconds + PATIENCE)
            if speed is None:
                ways.remove(way)
                continue
            measured[way.name].append(speed)
            recorder.add(
                sample_bytes=stores.arguments.size,
                samples=stores.arguments.records,
                batch=stores.arguments.batch,
                latency_seconds=stores.arguments.latency,
                way=way.name,
                round=number,
                samples_per_second=speed.samples,
                gets_per_sample=speed.gets,
                first_batch_seconds=speed.first,
            )
    print(HEADER)
    single = [speed.samples for speed in measured.get(WAYS[0].name, [])]
    for name, speeds in measured.items():
        if not speeds:
            continue
        samples = [speed.samples for speed in speeds]
        ratios = [one / other for one, other in zip(samples, single, strict=False)]
        ratio = f"{statistics.median(ratios):.1f}" if ratios else "-"
        gets = statistics.median(speed.gets for speed in speeds)
        first = 1e3 * statistics.median(speed.first for speed in speeds)
        rate = f"{statistics.median(samples):,.0f}"
        print(f"| {name} | {rate} | {ratio} | {gets:.3f} | {first:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
