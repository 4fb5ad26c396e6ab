"""A restart opens each file once for each node, and reads each byte once."""

import os
import re
import shutil
import socket
import sys
from array import array
from collections import Counter

import pytest

from pario.checkpoint.node_files import NodeFiles, Offer, assign_openers
from tests.python.support.checkpoint_restart import ARRAY
from tests.support.commands import run_command

#: Opens by rank 0, which finds the checkpoint: for its record, for the metadata by pario and by
#: HDF5, and to mark it as being read.
FINDING = 4
OPEN = re.compile(r'openat\(.*"[^"]*?((?:step|part|master)[^/"]*\.h5)", O_RDONLY.*\) = \d+')
READ = re.compile(r"(?:pread64|preadv2?|readv?)\(\d+<[^>]*\.h5>.*\) = (\d+)")


def restart(tmp_path, *arguments: object) -> None:
    program = [sys.executable, "-m", "tests.python.support.checkpoint_restart", tmp_path / "ck"]
    calls = ["-e", "trace=openat,read,readv,pread64,preadv,preadv2"]
    strace = ["strace", "-ff", "--seccomp-bpf", "-y", "-o", tmp_path / "calls", *calls]
    done = run_command(
        [*map(str, strace if arguments[0] != "save" else []), *map(str, program)]
        + [str(one) for one in arguments]
    )
    assert done.returncode == 0, done.stderr


def count(tmp_path) -> tuple[Counter[str], int, float]:
    """The opens of each file, the calls that read, and the bytes read for each of the array."""
    text = "".join(path.read_text() for path in tmp_path.glob("calls.*"))
    read = [int(size) for size in READ.findall(text)]
    return Counter(OPEN.findall(text)), len(read), sum(read) / ARRAY.nbytes


QUICK = [("slabs", 1, 16), ("replicas", "rank", 16)]
MANY = [
    pytest.param(way, files, 64, marks=pytest.mark.exhaustive)
    for way in ("slabs", "columns", "replicas", "whole")
    for files in (1, "rank")
]


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
@pytest.mark.parametrize(("way", "files", "size"), [*QUICK, *MANY])
@pytest.mark.system
def test_each_file_is_opened_once_for_each_node_and_each_byte_is_read_once(
    tmp_path, way, files, size
):
    """Of short rows (columns) a node may read some bytes that another one reads, too."""
    nodes = 4
    restart(tmp_path, "save", files)
    restart(tmp_path, way, size, nodes)
    opens, calls, times_read = count(tmp_path)
    found = {name: number for name, number in opens.items() if name.startswith("part-")}
    document = "step-00000001.h5" if files == 1 else "master.h5"
    assert opens[document] == FINDING + nodes
    parts = 0 if files == 1 else 8
    reading = 1 if way == "slabs" else nodes  # nodes that need bytes of a part
    assert found == {f"part-{number:05d}.h5": reading for number in range(parts)}
    assert times_read < (2.2 if way == "columns" else 1.2)
    assert calls < 300  # 65,536 rows in columns


#: Times that each byte of the array is read by 4 nodes together: once by each that needs it.
BY_NODE = {"slabs": 1, "ghosts": 1, "columns": 4, "replicas": 4, "whole": 4}


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
@pytest.mark.parametrize(
    ("way", "size"),
    [
        *[(way, 16) for way in ("slabs", "replicas")],
        *[pytest.param(way, 64, marks=pytest.mark.exhaustive) for way in BY_NODE],
    ],
)
@pytest.mark.system
def test_ranks_whose_nodes_exchange_no_bytes_read_each_byte_once_for_each_node(tmp_path, way, size):
    """As ranks of PyTorch. Of short rows (columns) a node reads whole windows."""
    restart(tmp_path, "save", 1)
    restart(tmp_path, way, size, 4, "apart")
    opens, calls, times_read = count(tmp_path)
    assert opens["step-00000001.h5"] == FINDING + 4
    assert times_read < 1.2 * BY_NODE[way]
    assert calls < 300


@pytest.mark.system
@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_overlaps_of_the_parts_of_a_node_are_read_once(tmp_path):
    """Ghost cells: the nodes read those of each other, and nothing to compare checksums."""
    restart(tmp_path, "save", 1)
    restart(tmp_path, "ghosts", 64, 4)
    opens, _, times_read = count(tmp_path)
    assert opens["step-00000001.h5"] == FINDING + 4
    assert times_read < 1.2  # 1.25 with the ghost cells of each rank


def make_offer(node: int, wanted: str = "", opened: str = "", address: bytes = b"") -> Offer:
    return Offer(node, wanted.split(), opened.split(), (address, b"") if address else None)


def test_one_rank_of_each_node_opens_a_file_for_the_others():
    offers = [
        make_offer(0, "a", address=b"0"),
        make_offer(0, "a b", address=b"1"),
        make_offer(1, "a", address=b"2"),
        make_offer(1, "", "b", address=b"3"),
        make_offer(1, "a b", address=b"4"),
        make_offer(1, "a b"),
    ]
    assert assign_openers(offers) == [
        {"a": [(b"1", b"")]},
        {},
        {"a": [(b"4", b"")]},
        {"b": [(b"4", b"")]},
        {},
        {},
    ]
    joint = assign_openers(offers, {0: ["b"], 1: ["b"]})
    assert joint == [{"b": [(b"1", b"")]}, {}, {}, {"b": [(b"2", b""), (b"4", b"")]}, {}, {}]


class Ranks:
    node = 0


def test_descriptors_are_taken_from_the_own_ranks_only(tmp_path):
    (tmp_path / "file").write_bytes(b"good")
    (tmp_path / "other").write_bytes(b"evil")
    sender, receiver = (NodeFiles(Ranks, lambda name: str(tmp_path / name)) for _ in range(2))
    sender.offer([])
    sender.receive()
    mine = receiver.offer(["file"]).receiver
    with (
        (tmp_path / "other").open() as other,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s,
    ):
        rights = socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [other.fileno()])
        s.sendmsg([bytes(16) + b"file"], [rights], 0, mine[0])
    sender.send({"file": [mine], "missing": [mine]})
    receiver.receive()
    assert os.pread(receiver.descriptor("file"), 9, 0) == b"good"
    assert (receiver.descriptor("missing"), receiver.descriptor("other")) == (-1, -1)
