"""Public programs give the same results with buffers, or bypass them (locks, mappings)."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from tests.streams.conftest import Start
from tests.suites.recipes import hdf5_test
from tests.suites.sources import Unavailable, source
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.system
SOURCES = Path(__file__).parents[2] / "src"
EVERYTHING = "*:size=64K:count=4"


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def shell(start: Start, script: str, streams: str = EVERYTHING) -> dict[str, str]:
    done = start("sh", "-ec", script, streams=streams)
    assert done.status == 0, done.stdout + done.stderr
    return {name: hashlib.sha256(data).hexdigest() for name, data in done.files.items()}


TAR = f"""
tar -cf a.tar --sort=name -C {SOURCES.parent} src
gzip -nk a.tar
gunzip -c a.tar.gz > b.tar
cmp a.tar b.tar
tar -xf a.tar
"""
GCC = f"gcc -O1 -o sequence {Path(__file__).parent}/victims/sequence.c -frandom-seed=1"
COPY = f"""
cp -a {SOURCES} copy
dd if=/dev/zero of=zeros bs=100 count=5000 status=none
cp --sparse=always zeros holes
cmp zeros holes
"""
TEXT = """
seq 100000 -1 1 > n
sort -n n -o n
split -l 7000 n part.
sed -i s/1/one/ n
cat part.* > all
"""


@pytest.mark.parametrize(
    ("programs", "script"),
    [
        (["tar", "gzip"], TAR),
        (["gcc"], GCC),
        (["cp", "dd"], COPY),
        (["sort", "split", "sed"], TEXT),
    ],
    ids=["tar", "gcc", "cp", "text"],
)
def test_outputs_are_the_same(start: Start, programs: list[str], script: str) -> None:
    need(*programs)
    assert shell(start, script) == shell(start, script, streams="")


def test_git_verifies_its_objects(start: Start) -> None:
    need("git")
    commit = "git -c user.name=a -c user.email=a@b commit -qm one"
    shell(
        start,
        f"git init -q .; cp -r {SOURCES} .; git add .; {commit}; git fsck --strict; git gc -q; git"
        " fsck",
    )


def test_sqlite_keeps_its_journal(start: Start) -> None:
    need("sqlite3")
    numbers = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)"
    script = f"""
    sqlite3 t.db "create table t(a, b);
      begin; {numbers} insert into t select x, hex(x * 7) from c; commit;
      begin; delete from t where a % 2; rollback; vacuum; pragma integrity_check;" | grep -qx ok
    test "$(sqlite3 t.db 'select count(*) from t')" = 20000
    """
    shell(start, script)


def test_fio_verifies_its_writes(start: Start) -> None:
    need("fio")
    job = (
        "fio --name=job --filename=data --size=2M --bs=700 --verify=crc32c --do_verify=1"
        " --output=log --fallocate=none"
    )
    shell(
        start,
        "; ".join(
            f"{job} --rw={rw} --ioengine={engine}"
            for rw in ("write", "randwrite")
            for engine in ("sync", "psync")
        ),
    )


def test_python_passes_its_own_tests_of_files(start: Start) -> None:
    if importlib.util.find_spec("test.test_io") is None:
        pytest.skip("Python's own tests are not installed")
    done = start(
        sys.executable,
        "-m",
        "test",
        "-q",
        "test_file",
        "test_fileio",
        "test_io",
        "test_tempfile",
        streams=EVERYTHING,
        seconds=5 * PATIENCE,
    )
    assert done.status == 0, done.stdout[-2000:] + done.stderr[-2000:]


#: HDF5's own tests of files, with the additional sources that they need. flush2 checks the files of
#: flush1.
HDF5 = (
    "btree2 chunk_info cmpd_dset dsets dtypes enum extend external file_image fillval flush1+flush2"
    " getname istore links mount mtime ntypes unlink vds vfd"
)
HDF5_PARTS = {"external": ["external_common"]}


@pytest.mark.exhaustive
@pytest.mark.parametrize("names", HDF5.split())
def test_hdf5_passes_its_own_serial_tests(start: Start, names: str) -> None:
    try:
        programs = [
            hdf5_test(name, [f"test/{part}.c" for part in (name, *HDF5_PARTS.get(name, []))])
            for name in names.split("+")
        ]
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))
    # HDF5's locks would end the buffering
    without_locks = {"HDF5_USE_FILE_LOCKING": "FALSE"}
    env = {"srcdir": str(source("hdf5") / "test"), "HDF5TestExpress": "3", **without_locks}
    command = ["sh", "-ec", "\n".join(map(str, programs))]
    plain, buffered = (
        start(*command, streams=streams, env=env, seconds=3 * PATIENCE)
        for streams in ("", EVERYTHING)
    )
    assert (buffered.status, buffered.stdout) == (plain.status, plain.stdout), buffered.stderr[
        -2000:
    ]
    if plain.status:
        pytest.skip(
            f"{names} fails without buffers, too, and in the same way: {plain.stdout[-300:]}"
        )
