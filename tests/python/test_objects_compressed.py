"""Compressed files in object stores: the records of local ones, by counted requests."""

from __future__ import annotations

import gzip
import pickle
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pario import objects
from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader, inputs, restart_points
from tests.python.support.stores import Proxy, Request, isolate_stores, put, run_s3_server

NEEDED = ("obstore", "moto", "flask_cors", "indexed_gzip", "zstandard")
MISSING = [name for name in NEEDED if find_spec(name) is None]
pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("object stores"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

#: Decompressed bytes of a group, of one within a frame of zstd, and of a request in order.
GROUP, WITHIN, REQUEST = 256 << 10, 1 << 20, 128 << 10
COUNT = 300_000
SUFFIXES = [".gz", ".zst"]


@pytest.fixture(scope="module")
def running() -> Iterator[Proxy]:
    with run_s3_server(latency=0) as proxy:
        yield proxy


@pytest.fixture
def s3(running: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    isolate_stores(monkeypatch)
    monkeypatch.setattr(restart_points, "GROUP", GROUP)
    monkeypatch.setattr(restart_points, "WITHIN", WITHIN)
    monkeypatch.setattr(inputs, "REQUEST", REQUEST)
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    running.clear()
    return running


def make(s3: Proxy, tmp_path: Path, suffix: str, frame: int = 50_000) -> tuple[Path, str]:
    """A local compressed file of 6 MB of lines, and the URL of the same object."""
    numbers = np.random.default_rng(1).integers(0, 1 << 62, COUNT)
    data = "".join(f"{number}\n" for number in numbers.tolist()).encode()
    path = tmp_path / f"a.txt{suffix}"
    if suffix == ".gz":
        path.write_bytes(gzip.compress(data, 1))
    else:
        import zstandard

        parts = [data[at : at + frame] for at in range(0, len(data), frame)]
        path.write_bytes(b"".join(map(zstandard.ZstdCompressor().compress, parts)))
    put(f"{s3.address}/bucket/{path.name}", path.read_bytes())
    s3.clear()
    return path, f"s3://bucket/{path.name}"


def gets(s3: Proxy, name: str) -> list[Request]:
    """The successful requests for the bytes of an object."""
    asked = [one for one in s3.requests() if one.method == "GET" and one.path.endswith(name)]
    return [one for one in asked if one.status == 206]


def load(source: Dataset) -> list[bytes]:
    loader = Loader(source, 100, shuffle=True, seed=3, groups=2)
    return [bytes(one) for batch in loader for one in batch]


def length_of(request: Request) -> int:
    begin, end = request.range.removeprefix("bytes=").split("-")
    return int(end) - int(begin) + 1 if begin else int(end)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_records_and_their_order_are_those_of_the_local_file(s3, tmp_path, suffix):
    path, url = make(s3, tmp_path, suffix)
    assert load(Dataset(url)) == load(Dataset(path))
    assert bytes(Dataset(url)[77_777]) == bytes(Dataset(path)[77_777])


@pytest.mark.parametrize(("suffix", "passes"), [(".gz", 4), (".zst", 2)])
def test_the_index_takes_passes_of_bounded_requests_once(s3, tmp_path, suffix, passes):
    """Records, restart points of gzip, checksums of groups: those of gzip are between points."""
    path, url = make(s3, tmp_path, suffix)
    Dataset(url)
    asked = [length_of(one) for one in gets(s3, path.name)]
    assert max(asked) <= 1 << 20
    assert (passes - 0.3) * path.stat().st_size < sum(asked) < (passes + 0.5) * path.stat().st_size
    s3.clear()
    Dataset(url)
    assert sum(map(length_of, gets(s3, path.name))) < 1 << 20  # the ends of the object


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_group_is_one_request(s3, tmp_path, suffix):
    """Except for the groups in the end, which came when the object was opened."""
    path, url = make(s3, tmp_path, suffix)
    dataset = Dataset(url)
    groups = len(dataset.file.groups.begins) - 1
    decoder = dataset.file.open_decoder()
    s3.clear()
    firsts = dataset.file.groups.firsts.tolist()
    for group in range(groups):
        list(decoder.decode(group, *firsts[group : group + 2]))
    asked = gets(s3, path.name)
    assert groups > 15 and groups - 3 <= len(asked) <= groups
    assert sum(map(length_of, asked)) < 2.2 * path.stat().st_size


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_index_beside_the_object_is_used_on_another_node(s3, tmp_path, monkeypatch, suffix):
    path, url = make(s3, tmp_path, suffix)
    assert main(["records", "index", url]) == 0
    assert objects.size_of(f"{url}.restarts") > 0
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "other"))
    s3.clear()
    assert len(Dataset(url)) == COUNT
    assert sum(map(length_of, gets(s3, path.name))) < 1 << 20
    put(f"{s3.address}/bucket/{path.name}", path.read_bytes()[:-1])  # an index of other bytes
    with pytest.raises((ParioError, OSError), match=r"incomplete|end-of-stream"):
        Dataset(url)


def test_long_frames_are_read_in_pieces(s3, tmp_path):
    path, url = make(s3, tmp_path, ".zst", frame=1 << 30)
    assert load(Dataset(url)) == load(Dataset(path))
    assert max(length_of(one) for one in gets(s3, path.name)) <= 1 << 20


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_object_that_changes_during_an_epoch_is_refused_by_name(s3, tmp_path, suffix):
    path, url = make(s3, tmp_path, suffix)
    batches = iter(Loader(Dataset(url), 10, memory=1 << 20))
    next(batches)
    put(f"{s3.address}/bucket/{path.name}", path.read_bytes() + b"x")
    with pytest.raises((OSError, ParioError), match=rf"{re.escape(url)}: .*was changed after"):
        list(batches)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pickled_dataset_reads_the_same_records(s3, tmp_path, suffix):
    _, url = make(s3, tmp_path, suffix)
    dataset = Dataset(url)
    assert bytes(pickle.loads(pickle.dumps(dataset))[5]) == bytes(dataset[5])
