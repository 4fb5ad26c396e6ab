"""Records of objects in stores: counted requests, faults of servers, and objects that change."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError

import numpy as np
import pytest

from pario import objects
from pario.cli import main
from pario.errors import ParioError
from pario.objects import Objects, access
from pario.objects.hedging import Hedge
from pario.objects.stores import part_bytes
from pario.records import Dataset, Loader, Mixture
from pario.records.orders import make_order
from tests.python.support.stores import Proxy, get, put, run_http_server, run_s3_server
from tests.support.commands import Command

#: Not imported, because that takes seconds in each collection of tests.
MISSING = [name for name in ("obstore", "moto", "flask_cors") if find_spec(name) is None]
pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("object stores"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

SIZE, COUNT = 10_240, 600
#: Requests at the same time: the threads of Hedge.
MOST = 160
#: The product's rule; other tests count requests, and allow no second ones.
MAY_REPEAT = Hedge._may_repeat
EXPIRED = (
    "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packed records of 10 KiB that begin with their numbers."""
    directory = tmp_path_factory.mktemp("records")
    rows = np.random.default_rng(3).integers(0, 255, (COUNT, SIZE), np.uint8)
    rows[:, :8] = np.arange(COUNT, dtype="<u8")[:, None].view(np.uint8)
    rows.tofile(directory / "rows.bin")
    pario("index", directory / "rows.bin", "--format", "fixed", "--size", SIZE)
    pario("convert", directory / "rows.bin", "--to", "prec", "-o", directory / "train.prec")
    return directory / "train.prec"


@pytest.fixture(scope="module")
def running():
    with run_s3_server() as proxy:
        yield proxy


@pytest.fixture
def s3(running: Proxy, pack: Path, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """A server with the packed records. Answers that come late on a busy machine cause no second
    requests."""
    monkeypatch.setattr(Hedge, "_may_repeat", lambda self: False)
    running.clear()
    put(f"{running.address}/bucket/train.prec", pack.read_bytes())
    running.clear()
    return running


def pario(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pario", "records", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=check)


def numbers(batches) -> list[int]:
    return [int.from_bytes(record[:8], "little") for batch in batches for record in batch]


def gets(proxy: Proxy, name: str = "") -> list:
    return [one for one in proxy.requests() if one.method == "GET" and one.path.endswith(name)]


@pytest.mark.parametrize("how", [{}, {"shuffle": True}])
def test_a_cold_first_batch_takes_two_round_trips(s3, pack, how):
    """The end, with size, version and index; the records, of which none waits for another one."""
    expected = next(iter(Loader(Dataset(pack), 16, seed=1, **how)))
    data = pack.read_bytes()
    ranges = [(begin := data.index(bytes(one)), begin + SIZE) for one in expected]
    first = load_with_held_requests(
        s3,
        lambda: Loader("s3://bucket/train.prec", 16, seed=1, **how),
        [
            lambda waiting: [one.range[:7] for one in waiting] == ["bytes=-"],
            lambda _: cover(gets(s3), len(data), ranges),
        ],
    )
    assert [bytes(one) for one in first] == [bytes(one) for one in expected]


@pytest.mark.parametrize(("lines", "opened"), [(100_000, 1), (500_000, 2)])
def test_a_cold_first_batch_with_an_uploaded_index_takes_three_round_trips(
    s3, tmp_path, lines, opened
):
    """The ends of object and index; the beginning of the object, to compare it with the index, and
    that of an index which is longer than the end that came; the records."""
    path = tmp_path / "a.txt"
    lengths = np.random.default_rng(1).integers(0, 60, lines)
    path.write_bytes(b"".join(b"x" * length + b"\n" for length in lengths.tolist()))
    pario("index", path)
    index = (tmp_path / "a.txt.pidx").read_bytes()
    assert (len(index) > 256 << 10) == (lines == 500_000)
    for name, data in (("a.txt", path.read_bytes()), ("a.txt.pidx", index)):
        put(f"{s3.address}/bucket/{name}", data)
    s3.clear()
    numbers = make_order(("shuffled", 1, 0, 1, 1), [lines]).numbers(0, 16)
    ends = np.cumsum(lengths + 1)[numbers]
    ranges = list(zip((ends - 1 - lengths[numbers]).tolist(), (ends - 1).tolist(), strict=True))
    first = load_with_held_requests(
        s3,
        lambda: Loader("s3://bucket/a.txt", 16, shuffle=True, seed=1, memory=1 << 20),
        [
            lambda waiting: len(waiting) == 2,
            lambda waiting: len(waiting) == opened,
            lambda _: cover(gets(s3, path.name), path.stat().st_size, ranges),
        ],
    )
    assert [len(one) for one in first] == lengths[numbers].tolist()


def load_with_held_requests(s3, make, trips):
    """The first batch of a loader. Requests are answered when all requests of their trip wait
    together; requests after the last trip are answered at once."""
    s3.inject(*[{"kind": "hold"}] * 400)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: next(iter(make())))
        try:
            for trip in trips:
                s3.hold_until(trip)
        finally:
            s3.continue_all()
        return first.result()


def cover(requests, size, ranges) -> bool:
    """Whether the requests for bytes of an object of this size include all ranges (begin, end)."""
    pairs = [one.range.removeprefix("bytes=").split("-") for one in requests]
    asked = [
        (int(first), int(last) + 1) if first else (size - int(last), size) for first, last in pairs
    ]
    return all(
        any(begin <= first and last <= end for begin, end in asked) for first, last in ranges
    )


@pytest.mark.parametrize("how", [{}, {"shuffle": True}, {"blocks": (64, 2)}])
def test_an_epoch_gives_each_record_once_in_the_order_of_a_local_file(s3, pack, how):
    remote = Loader(Dataset("s3://bucket/train.prec"), 32, seed=5, **how)
    assert numbers(remote) == numbers(Loader(Dataset(pack), 32, seed=5, **how))


def test_neighbouring_records_share_requests(s3):
    assert numbers(Loader(Dataset("s3://bucket/train.prec"), 32)) == list(range(COUNT))
    assert len(gets(s3)) <= 25  # for 600 records


def test_shuffled_records_share_requests(s3):
    """Of each group of 153 records, three eighths of the memory."""
    loader = Loader(Dataset("s3://bucket/train.prec"), 32, shuffle=True, seed=2, memory=4 << 20)
    assert sorted(numbers(loader)) == list(range(COUNT))
    assert len(gets(s3)) <= COUNT / 4
    assert sum(map(length, gets(s3))) <= 4 * COUNT * SIZE + (256 << 10)


def test_small_objects_are_requested_once(s3, pack):
    """In blocks of a MiB, which half of the memory holds."""
    loader = Loader("s3://bucket/train.prec", 32, shuffle=True, seed=2)
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(COUNT)) and first != second
    size = pack.stat().st_size
    assert len(gets(s3)) <= 1 + -(-size // (1 << 20))
    assert sum(map(length, gets(s3))) <= size + (256 << 10)


def test_one_of_many_ranks_does_not_request_all(s3):
    loader = Loader("s3://bucket/train.prec", 32, shuffle=True, seed=2, rank=3, world=8)
    assert len(numbers(loader)) == COUNT / 8
    assert sum(map(length, gets(s3))) <= 4 * COUNT / 8 * SIZE + (256 << 10)


def length(request) -> int:
    """Bytes of a request's range."""
    first, _, last = request.range.removeprefix("bytes=").partition("-")
    return int(last) - int(first) + 1 if first else int(last)


def count_overlapping(requests) -> int:
    """The most requests at the same time."""
    ends = [(one.end, -1) for one in requests if one.end]  # else it is not answered yet
    moments = sorted([(one.begin, 1) for one in requests] + ends)
    return int(np.cumsum([change for _, change in moments]).max())


def test_more_than_64_requests_overlap(s3):
    """Without memory for the gaps each record takes a request."""
    dataset = Dataset("s3://bucket/train.prec")
    first = load_with_held_requests(
        s3,
        lambda: Loader(dataset, 200, shuffle=True, seed=2, memory=1),
        [lambda waiting: len(waiting) > 64],
    )
    assert len(first) == 200
    assert count_overlapping(gets(s3)) <= MOST


def mix(path) -> Loader:
    return Loader(Mixture([(path, 1)]), 32, shuffle=True, seed=2)


def group_by_length(path):
    loader = Loader(path, 32, shuffle=True, seed=2)
    return loader.batch(tokens=20 * 32, lengths=[1 + number % 20 for number in range(COUNT)])


@pytest.mark.parametrize("make", [mix, group_by_length])
def test_batches_by_number_share_requests_as_those_of_the_plain_order(s3, pack, make):
    local = numbers(make(str(pack)))
    assert sorted(local) == list(range(COUNT))
    assert numbers(make("s3://bucket/train.prec")) == local
    requested = gets(s3)
    assert len(requested) <= COUNT / 6
    s3.clear()
    numbers(Loader("s3://bucket/train.prec", 32, shuffle=True, seed=2))
    assert len(requested) <= 2 * len(gets(s3))


def test_batches_of_a_mixture_overlap(s3):
    """Without memory for the gaps and for other batches each record of a batch takes a request."""
    mixture = Mixture([("s3://bucket/train.prec", 1)])
    first = load_with_held_requests(
        s3,
        lambda: Loader(mixture, 50, shuffle=True, seed=2, memory=1),
        [lambda waiting: len(waiting) >= 20],
    )
    assert len(first) == 50
    assert count_overlapping(gets(s3)) <= MOST


def test_the_items_of_a_batch_share_requests(s3, pack):
    torch = pytest.importorskip("torch")
    read = {
        path: [
            int.from_bytes(bytes(row[:8].numpy()), "little")
            for batch in torch.utils.data.DataLoader(
                Dataset(path).torch(), batch_size=50, collate_fn=list
            )
            for row in batch
        ]
        for path in (str(pack), "s3://bucket/train.prec")
    }
    assert read["s3://bucket/train.prec"] == read[str(pack)]
    assert len(gets(s3)) <= 1 + COUNT // 50


def test_a_list_of_numbers_reads_neighbours_together(s3, pack):
    wanted = [*range(40), 300, 7, 7]
    remote = Dataset("s3://bucket/train.prec")[wanted]
    assert [bytes(one) for one in remote] == [bytes(one) for one in Dataset(pack)[wanted]]
    assert len(gets(s3)) <= 3


def test_single_records_lists_and_names(s3, pack):
    remote, local = Dataset("s3://bucket/train.prec"), Dataset(pack)
    assert bytes(remote[17]) == bytes(local[17])
    assert [bytes(one) for one in remote[[3, 500, 3]]] == [bytes(local[i]) for i in (3, 500, 3)]


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 503},
        {"kind": "status", "status": 500},
        {"kind": "reset"},
        {"kind": "cut"},
    ],
    ids=lambda fault: f"{fault['kind']}{fault.get('status', '')}",
)
def test_transient_faults_are_repeated(s3, fault):
    dataset = Dataset("s3://bucket/train.prec")
    s3.clear()
    s3.inject(fault, fault)
    assert int.from_bytes(dataset[7][:8], "little") == 7
    assert len(gets(s3)) >= 3


def test_a_refused_range_is_requested_once(s3, pack):
    """Not once more for each of its records."""
    dataset = Dataset("s3://bucket/train.prec")
    put(f"{s3.address}/bucket/train.prec", pack.read_bytes()[:-1] + b"?")
    s3.clear()
    with pytest.raises(ParioError, match="was changed after"):
        next(iter(Loader(dataset, 64, memory=1 << 20)))
    assert len(gets(s3)) <= 2  # of this batch of 64 records, and of the next one


def test_a_straggler_is_requested_a_second_time(s3, monkeypatch):
    """The first answer is held until the test ends."""
    monkeypatch.setattr(Hedge, "_may_repeat", MAY_REPEAT)
    dataset = Dataset("s3://bucket/train.prec")
    assert len(dataset[range(40)]) == 40  # the usual time of a request becomes known
    s3.clear()
    s3.inject({"kind": "hold"})
    assert int.from_bytes(dataset[100][:8], "little") == 100
    assert len(gets(s3)) >= 2
    s3.continue_all()


def test_expired_credentials_are_named(s3):
    dataset = Dataset("s3://bucket/train.prec")
    s3.inject(*[{"kind": "status", "status": 400, "body": EXPIRED}] * 3)
    with pytest.raises(PermissionError, match="the credentials have expired; renew them"):
        dataset[3]
    assert len(gets(s3)) == 2  # no repetition: the opening, and one record


def test_an_object_that_changes_during_an_epoch_is_refused_by_name(s3, pack):
    loader = Loader(Dataset("s3://bucket/train.prec"), 8, shuffle=True, seed=1, memory=1 << 20)
    batches = iter(loader)
    next(batches)
    put(f"{s3.address}/bucket/train.prec", pack.read_bytes()[:-1] + b"?")
    with pytest.raises(ParioError, match=r"s3://bucket/train.prec.*ESTALE.*was changed after"):
        list(batches)


def test_a_missing_object_and_a_missing_bucket_are_named(s3):
    for url in ("s3://bucket/no", "s3://nowhere/no"):
        with pytest.raises((FileNotFoundError, ParioError), match=url):
            Dataset(url, format="lines")
        with pytest.raises(FileNotFoundError, match=url):
            Dataset(url)
        with pytest.raises(FileNotFoundError, match=rf"{url}\.prec: ENOENT"):
            Dataset(f"{url}.prec")
        done = pario("head", f"{url}.prec", check=False)
        assert f"{url}.prec: ENOENT" in done.stderr


def test_lines_are_indexed_beside_the_object(s3):
    put(f"{s3.address}/bucket/a.jsonl", b'{"a": 1}\n{"b": 22}\n')
    done = pario("index", "s3://bucket/a.jsonl")
    assert "2 records (lines)" in done.stderr
    assert get(f"{s3.address}/bucket/a.jsonl.pidx")
    assert [bytes(one) for one in Dataset("s3://bucket/a.jsonl")] == [b'{"a": 1}', b'{"b": 22}']
    assert pario("get", "s3://bucket/a.jsonl", 1).stdout == '{"b": 22}'


def test_an_index_that_was_uploaded_with_its_file_is_used(s3, tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_bytes(b"one\ntwo\n")
    pario("index", path)
    put(f"{s3.address}/bucket/b.jsonl", path.read_bytes())
    put(f"{s3.address}/bucket/b.jsonl.pidx", (tmp_path / "b.jsonl.pidx").read_bytes())
    dataset = Dataset("s3://bucket/b.jsonl")
    assert dataset.indexed
    assert bytes(dataset[1]) == b"two"


def test_an_index_of_a_replaced_object_is_stale(s3):
    """Also in the second of the upload, whose time is in seconds, and with as many bytes."""
    place = f"{s3.address}/bucket/c.jsonl"
    put(place, b"1\n22\n")
    pario("index", "s3://bucket/c.jsonl")
    put(place, b"22\n1\n")
    with pytest.raises(OSError, match=r"c\.jsonl: ESTALE .*it was modified since it was indexed"):
        Dataset("s3://bucket/c.jsonl")


def test_a_server_of_http(pack):
    with run_http_server(pack.parent) as proxy:
        url = f"{proxy.address}/train.prec"
        assert numbers(Loader(Dataset(url), 32, shuffle=True)) == numbers(
            Loader(Dataset(pack), 32, shuffle=True)
        )
        dataset = Dataset(url)
        os.utime(pack)
        with pytest.raises(OSError, match="was changed after it was opened"):
            dataset[5]


def test_a_file_system_of_fsspec(pack):
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe_file("/train.prec", pack.read_bytes())
    loader = Loader(Dataset("memory://train.prec"), 32, shuffle=True, seed=1)
    assert numbers(loader) == numbers(Loader(Dataset(pack), 32, shuffle=True, seed=1))


class _OtherBytes:
    """A store that answers with fewer or more bytes than were requested."""

    def __init__(self, extra: int) -> None:
        self.extra = extra

    def open(self, name: str, tail: int) -> tuple[int, int, str, bytes]:
        return 100, 0, "", bytes(min(tail, 100) + (self.extra if name == "tail" else 0))

    def read(self, name: str, version: str, size: int, begin: int, end: int) -> bytes:
        return bytes(end - begin + self.extra)


@pytest.mark.parametrize("extra", [-1, 1])
def test_an_answer_with_another_number_of_bytes_is_refused(extra, monkeypatch, tmp_path):
    monkeypatch.setattr(access, "open_store", lambda root: _OtherBytes(extra))
    with pytest.raises(OSError, match=f"{10 + extra} bytes came of 10"):
        Objects().open("x://y/tail", 10)
    monkeypatch.setattr(objects, "_objects", Objects())
    with pytest.raises(OSError, match=f"{100 + extra} bytes came of 100: 'x://y/whole'"):
        objects.download("x://y/whole", tmp_path / "copy")


def test_a_change_is_refused_by_its_time_where_there_is_no_etag(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n" * 100_000)
    os.utime(path, (1e9, 1e9))
    with run_http_server(tmp_path, 0, "no-etags") as proxy:
        dataset = Dataset(f"{proxy.address}/a.txt")
        assert bytes(dataset[0]) == b"1"
        path.write_text("3\n4\n" * 100_000)
        os.utime(path, (2e9, 2e9))
        with pytest.raises(OSError, match="was changed after it was opened"):
            dataset[2000]
        assert bytes(Dataset(f"{proxy.address}/a.txt")[2000]) == b"3"


def test_a_change_in_a_file_system_with_times_alone_is_refused(monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    class Timed(MemoryFileSystem):
        protocol = "timed"
        store = {}  # noqa: RUF012
        time = 1.5

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.removeprefix("timed://").strip("/")

        def info(self, path, **options):
            found = super().info(path, **options)
            return {key: found[key] for key in ("name", "size", "type")} | {"mtime": self.time}

    fsspec.register_implementation("timed", Timed, clobber=True)
    monkeypatch.setattr(objects, "_objects", Objects())
    Timed().pipe_file("/a.txt", b"1\n2\n")
    size, modified, version, _ = objects._objects.open("timed:///a.txt", 1)
    Timed().pipe_file("/a.txt", b"3\n4\n")
    Timed.time = 2.5
    with pytest.raises(OSError, match="was changed after it was opened"):
        objects._objects.read("timed:///a.txt", version, size, 0, 2)
    assert objects.facts_of("timed:///a.txt")[1] == modified + 1_000_000_000


def test_a_forked_child_is_refused_by_name(s3):
    dataset = Dataset("s3://bucket/train.prec")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            dataset[3]
            os.write(write, b"read")
        except OSError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert b"forkserver" in os.read(read, 1000)


def test_no_package_is_named(tmp_path):
    """Without obstore, as after a plain installation."""
    (tmp_path / "obstore.py").write_text("raise ImportError('absent', name='obstore')")
    code = "from pario.records import Dataset; Dataset('s3://bucket/a.prec')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert "pip install obstore" in done.stderr


@pytest.fixture
def small_parts(monkeypatch):
    """Uploads in the smallest parts that S3 takes."""
    monkeypatch.setattr("pario.objects.stores.PART", 5 << 20)


def test_a_conversion_is_uploaded_in_parts(s3, pack, small_parts):
    rows = pack.with_name("rows.bin")
    assert (
        main(["records", "convert", str(rows), "--to", "prec", "-o", "s3://bucket/new.prec"]) == 0
    )
    assert get(f"{s3.address}/bucket/new.prec") == pack.read_bytes()
    assert len([one for one in s3.requests() if "partNumber" in one.path]) == 2


def test_a_conversion_reads_ahead(s3, tmp_path, capsys):
    command = ["records", "convert", "s3://bucket/train.prec", "--to", "tfrecord", "-o"]
    assert main([*command, str(tmp_path / "a.tfrecord")]) == 0
    assert "600 records (tfrecord)" in capsys.readouterr().err
    assert len(gets(s3)) <= 4  # for 600 records


def test_a_bucket_that_is_missing_is_named(s3):
    done = pario("stat", "s3://nobucket/train.prec", check=False)
    assert done.returncode == 2 and "s3://nobucket/train.prec" in done.stderr
    assert done.stderr.endswith(" 404 Not Found: NoSuchBucket\n")


@pytest.fixture
def table(s3: Proxy, tmp_path: Path) -> Path:
    """A local file of Parquet with ten groups, which is also an object."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    chance = np.random.default_rng(1)
    columns = {
        "number": np.arange(1000),
        "image": [chance.bytes(200) for _ in range(1000)],
        "more": [chance.bytes(2000) for _ in range(1000)],
    }
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=100)
    put(f"{s3.address}/bucket/a.parquet", path.read_bytes())
    s3.clear()
    return path


def test_parquet_is_read_in_the_order_of_a_local_file(s3, table):
    for how in ({}, {"shuffle": True, "seed": 1, "groups": 2}):
        remote, local = (
            [bytes(one) for batch in Loader(Dataset(path), 32, **how) for one in batch]
            for path in ("s3://bucket/a.parquet", str(table))
        )
        assert len(remote) == 1000 and remote == local
    assert Dataset("s3://bucket/a.parquet")[517] == Dataset(table)[517]
    shown = pario("stat", "s3://bucket/a.parquet").stdout
    assert "10 groups of 100 records" in shown and "index" not in shown
    refused = pario("shuffle", "s3://bucket/a.parquet", "-o", "b", check=False).stderr
    assert "-o s3://bucket/a.prec\n" in refused


def test_a_column_of_parquet_takes_few_requests_of_its_bytes(s3, table):
    dataset = Dataset("s3://bucket/a.parquet", column="image")
    opened = len(gets(s3, "a.parquet"))
    read = [bytes(one) for batch in Loader(dataset, 32) for one in batch]
    assert read == [bytes(one) for one in Dataset(table, column="image")[:]]
    ranges = [one.range.removeprefix("bytes=").split("-") for one in gets(s3, "a.parquet")[opened:]]
    assert len(ranges) <= 20  # of ten groups
    assert sum(int(end) - int(begin) + 1 for begin, end in ranges) < 1000 * 400


def test_parquet_that_changes_during_an_epoch_is_refused_by_name(s3, table):
    batches = iter(Loader(Dataset("s3://bucket/a.parquet"), 10))
    next(batches)
    put(f"{s3.address}/bucket/a.parquet", table.read_bytes() + b"x")
    with pytest.raises((OSError, ParioError), match=r"s3://bucket/a\.parquet.*was changed after"):
        list(batches)


def test_array_records_are_refused(s3):
    with pytest.raises(ParioError, match=r"s3://bucket/a\.arrayrecord: .* from local files only"):
        Dataset("s3://bucket/a.arrayrecord")


def test_a_failed_upload_leaves_nothing(s3, pack, small_parts, capsys):
    s3.inject({"kind": "status", "status": 400, "path": "partNumber=2"})
    command = ["records", "convert", "s3://bucket/train.prec", "--to", "prec", "-o"]
    assert main([*command, "s3://bucket/failed.prec"]) == 2
    assert "s3://bucket/failed.prec" in capsys.readouterr().err
    s3.clear()
    with pytest.raises(HTTPError, match="404"):
        get(f"{s3.address}/bucket/failed.prec")
    assert b"failed.prec" not in get(f"{s3.address}/bucket?uploads")


def test_a_shuffle_from_and_to_urls_writes_the_bytes_of_a_local_one(s3, tmp_path):
    lines = b"".join(b"%d\n" % number for number in range(5000))
    (tmp_path / "a.txt").write_bytes(lines)
    put(f"{s3.address}/bucket/a.txt", lines)
    pario("shuffle", tmp_path / "a.txt", "-o", tmp_path / "b.txt", "--seed", 3, "--shards", 2)
    pario("shuffle", "s3://bucket/a.txt", "-o", "s3://bucket/b.txt", "--seed", 3, "--shards", 2)
    for name in ("b-00000-of-00002.txt", "b-00001-of-00002.txt"):
        assert get(f"{s3.address}/bucket/{name}") == (tmp_path / name).read_bytes()


def test_a_fused_shuffle_keeps_its_buckets_in_a_store(s3, tmp_path):
    lines = b"".join(b"%d\n" % number for number in range(5000))
    put(f"{s3.address}/bucket/a.txt", lines)
    pario("shuffle", "s3://bucket/a.txt", "-o", "s3://bucket/c.txt", "--fused", "--seed", 3)
    pario("shuffle", "s3://bucket/a.txt", "-o", tmp_path / "b.txt", "--seed", 3)
    loaded = [bytes(one) for batch in Loader(Dataset("s3://bucket/c.txt"), 64) for one in batch]
    assert loaded == (tmp_path / "b.txt").read_bytes().split()


def test_a_directory_is_packed_into_a_store(s3, tmp_path):
    for name in ("a.txt", "b/c.txt"):
        (tmp_path / "in" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "in" / name).write_text(name)
    pario("pack", tmp_path / "in", "-o", "s3://bucket/in.prec")
    dataset = Dataset("s3://bucket/in.prec")
    assert {dataset.name(i): bytes(dataset[i]) for i in range(2)} == {
        "a.txt": b"a.txt",
        "b/c.txt": b"b/c.txt",
    }


#: Reads an epoch, and prints the numbers of the records.
EPOCH = """
import sys
from pario.objects.hedging import Hedge
from pario.objects.stores import part_bytes
from pario.records import Dataset, Loader, Mixture
Hedge._may_repeat = lambda self: False  # requests are counted
loader = Loader(Dataset("s3://bucket/train.prec"), 32, shuffle=True, seed=int(sys.argv[1]))
print(*(int.from_bytes(one[:8], "little") for batch in loader for one in batch))
"""


def test_two_jobs_share_the_blocks_of_a_node(s3, tmp_path):
    """The object has six blocks of 1 MiB, of which the last bytes come with its opening."""
    environment = os.environ | {"PARIO_BLOCK_CACHE": f"{tmp_path}:1G"}
    jobs = [
        Command([sys.executable, "-c", EPOCH, seed], env=environment, stdout=-1, stderr=-1)
        for seed in (1, 2)
    ]
    for job in jobs:
        done = job.finish()
        assert sorted(map(int, done.stdout.split())) == list(range(COUNT)), done.stderr
    assert len(gets(s3)) <= 2 + 6
    s3.clear()
    Command([sys.executable, "-c", EPOCH, 3], env=environment, stdout=-3).finish()
    assert len(gets(s3)) == 1


def test_the_bytes_of_cached_blocks_are_bounded(s3, tmp_path):
    environment = os.environ | {"PARIO_BLOCK_CACHE": f"{tmp_path}:3M"}
    done = Command([sys.executable, "-c", EPOCH, 1], env=environment, stdout=-1).finish()
    assert sorted(map(int, done.stdout.split())) == list(range(COUNT))
    assert 0 < sum(path.stat().st_size for path in tmp_path.glob("*.block")) <= 3 << 20


def test_all_bytes_come_through_the_file_layer(s3, monkeypatch):
    """The layer's calls for ranges are the requests, and bring the records."""
    ranges = []

    def read(url, version, size, begin, end):
        ranges.append((begin, end))
        return Objects.read(objects._objects, url, version, size, begin, end)

    monkeypatch.setattr(objects._objects, "read", read)
    dataset = Dataset("s3://bucket/train.prec")
    numbers(Loader(dataset, 32, shuffle=True, seed=4))
    asked = [one.range.removeprefix("bytes=").split("-") for one in gets(s3)[1:]]
    assert sorted(ranges) == sorted((int(begin), int(end) + 1) for begin, end in asked)
    assert sum(end - begin for begin, end in ranges) >= COUNT * SIZE - (256 << 10)


def test_a_wrong_place_of_blocks_is_refused_by_name(s3, tmp_path, monkeypatch):
    monkeypatch.setenv("PARIO_BLOCK_CACHE", f"{tmp_path}:much")
    with pytest.raises((OSError, ParioError), match=r"PARIO_BLOCK_CACHE .*expected DIRECTORY or"):
        Dataset("s3://bucket/train.prec")
    assert not gets(s3)


def test_an_object_is_downloaded_in_ranges(s3, tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "PART", 1000)
    content = np.random.default_rng(1).bytes(10_500)
    put(f"{s3.address}/bucket/a", content)
    s3.clear()
    objects.download("s3://bucket/a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == content
    assert len([one for one in s3.requests() if one.range.startswith("bytes=")]) == 12
    with pytest.raises(FileExistsError, match=r"File exists: .*/a"):
        objects.download("s3://bucket/a", tmp_path / "a")


def test_parts_of_large_uploads_are_at_most_ten_thousand():
    for size in (0, 1, 16 << 20, 10_000 * (16 << 20), 10_000 * (16 << 20) + 1, 5 << 40):
        assert -(-size // part_bytes(size)) <= 10_000 and part_bytes(size) >= 16 << 20
