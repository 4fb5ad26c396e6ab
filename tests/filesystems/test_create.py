"""Every call that creates a file gives it the stripes of the settings; the calls' results are those
of a run without pario."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from pathlib import Path

import pytest

from pario.fix.stripe.layout import TO_THE_END, stripes_of
from pario.see.tables import read
from tests.filesystems.conftest import WRITE, Ceph, Labs
from tests.mpi.conftest import MPIS
from tests.preload.conftest import library as library
from tests.support.commands import run_command

PROGRAM = Path(__file__).with_name("create.py")
MIB = 1 << 20
HINTS = (
    "*.dat:striping_factor=3:striping_unit=2M,*stemp-*:striping_factor=3:striping_unit=2M,"
    "*/made/:striping_factor=2"
)
CREATED = [
    "append.dat",
    "creat.dat",
    "exclusive.dat",
    "fopen.dat",
    "open.dat",
    "openat.dat",
    "readonly.dat",
]


def run(place: Path, env: dict[str, str]) -> tuple[str, Path]:
    """Runs the program in a new folder; returns its output and the folder."""
    folder = place / uuid.uuid4().hex
    folder.mkdir()
    done = run_command([sys.executable, PROGRAM], cwd=folder, env=os.environ | env, status=0)
    return done.stdout, folder


def read_hints(logs: Path) -> dict[tuple[str, str], tuple[str, str, str, str]]:
    """Reads the hints in the log by file and key: requested, applied, effective, reason."""
    audit = [row for row in read(sorted(logs.iterdir())).audit if row.table == "striping"]
    return {
        (Path(row.path).name, row.key): (row.requested, row.applied, row.effective, row.reason)
        for row in audit
    }


def check(place: Path, library: Path, logs: Path) -> None:
    logs.mkdir()
    plain, _ = run(place, {})
    said, folder = run(
        place, {"LD_PRELOAD": str(library), "PARIO_HINTS": HINTS, "PARIO_TRACE_DIR": str(logs)}
    )
    assert said == plain
    for name in CREATED:
        (part,) = stripes_of(folder / name).parts
        assert (part.count, part.unit) == (3, 2 * MIB), name
    for pattern in (
        "stemp-??????",
        "ostemp-??????",
        "stemps-??????.dat",
        "ostemps-??????.dat",
        "there/behind.txt",
    ):
        for path in folder.glob(pattern):
            (part,) = stripes_of(path).parts
            assert (part.count, part.unit) == (3, 2 * MIB), path
    (other,) = stripes_of(folder / "other.txt").parts
    assert other.count == 1
    (made,) = stripes_of(folder / "made").parts
    assert made.count == 2
    noted = read_hints(logs)
    here = {path.name for path in folder.iterdir() if path.name != "nowhere.dat"}
    assert {name for name, _ in noted} == {
        *CREATED,
        "link.dat",
        *(name for name in here if "stemp" in name),
    } & here
    assert noted["openat.dat", "striping_factor"] == ("3", "3", "3", "")


def test_lustre(lustre: Path, library: Path, tmp_path: Path) -> None:
    check(lustre, library, tmp_path / "logs")


@pytest.mark.system
def test_ceph(ceph: Ceph, library: Path, tmp_path: Path) -> None:
    check(ceph.mount, library, tmp_path / "logs")


def test_lustre_gives_fewer_than_the_expected_size_asks_for_and_that_is_noted(
    lustre: Path, library: Path, tmp_path: Path
) -> None:
    (logs := tmp_path / "logs").mkdir()
    hints = "*.dat:expected_size=200G:expected_writers=64"
    _, folder = run(
        lustre, {"LD_PRELOAD": str(library), "PARIO_HINTS": hints, "PARIO_TRACE_DIR": str(logs)}
    )
    (part,) = stripes_of(folder / "open.dat").parts
    assert (part.count, part.unit) == (8, 4 * MIB)
    assert read_hints(logs)["openat.dat", "striping_factor"] == (
        "",
        "64",
        "8",
        "asked for 64 targets, the file has 8",
    )


def test_elsewhere_nothing_happens_and_that_is_noted(library: Path, tmp_path: Path) -> None:
    (logs := tmp_path / "logs").mkdir()
    plain, _ = run(tmp_path, {})
    said, _ = run(
        tmp_path, {"LD_PRELOAD": str(library), "PARIO_HINTS": HINTS, "PARIO_TRACE_DIR": str(logs)}
    )
    assert said == plain
    *_, effective, reason = read_hints(logs)["openat.dat", "striping_factor"]
    assert effective == "" and "has no stripes that can be set" in reason


def create_growing(
    place: Path, library: Path, logs: Path, earlier: int
) -> tuple[Path, dict[tuple[str, str], tuple[str, str, str, str]]]:
    """Creates a file of unknown final size beside an earlier file of `earlier` bytes."""
    (place / "step_0001.h5").touch()
    os.truncate(place / "step_0001.h5", earlier)
    logs.mkdir()
    env = {
        "LD_PRELOAD": str(library),
        "PARIO_HINTS": "*.h5:growing=yes:expected_writers=4",
        "PARIO_TRACE_DIR": str(logs),
    }
    run_command(["sh", "-c", "echo line > step_0002.h5"], cwd=place, env=os.environ | env, status=0)
    return place / "step_0002.h5", read_hints(logs)


def test_a_file_grows_into_more_stripes_on_lustre(
    lustre: Path, library: Path, tmp_path: Path
) -> None:
    path, noted = create_growing(lustre, library, tmp_path / "logs", 0)
    parts = [(part.begin, part.end, part.count, part.unit) for part in stripes_of(path).parts]
    assert parts == [(0, 32 * MIB, 1, MIB), (32 * MIB, TO_THE_END, 4, 4 * MIB)]
    assert noted["step_0002.h5", "striping_factor"] == ("", "4", "4", "")
    assert noted["step_0002.h5", "pario_growing"] == ("1", "1", "1", "")
    path.write_bytes(data := os.urandom(40 * MIB))
    assert path.read_bytes() == data


def test_it_is_taken_to_come_to_what_earlier_files_of_its_name_did(
    lustre: Path, library: Path, tmp_path: Path
) -> None:
    path, noted = create_growing(lustre, library, tmp_path / "logs", 24 * MIB)
    (part,) = stripes_of(path).parts
    assert (part.count, part.unit) == (1, MIB)
    assert noted["step_0002.h5", "pario_expected_size"] == (
        "",
        str(24 * MIB),
        str(24 * MIB),
        "as earlier files of its name",
    )


@pytest.mark.system
@pytest.mark.mpi
def test_in_mpi_io_it_has_as_many_writers_as_open_it_together(lustre: Path, library: Path) -> None:
    mpi = MPIS["mpich-5"]
    env = {"LD_PRELOAD": str(library), "PARIO_MPIIO": "1", "PARIO_HINTS": "*.h5:growing=yes"}
    command = [mpi.launcher, "-n", "3", sys.executable, WRITE, lustre / "out.h5", "4", "100000"]
    done = run_command(command, env=os.environ | env)
    assert " 0 wrong" in done.stdout, done.stderr
    # beyond 400 GB at least 4
    assert [part.count for part in stripes_of(lustre / "out.h5").parts] == [1, 3, 4]


@pytest.mark.parametrize("earlier", [0, 100 * MIB])
def test_on_ceph_only_earlier_files_tell(
    labs: Labs, library: Path, tmp_path: Path, earlier: int
) -> None:
    path, noted = create_growing(labs(ceph=True), library, tmp_path / "logs", earlier)
    (part,) = stripes_of(path).parts
    assert part.count == (4 if earlier else 1)
    *_, effective, reason = noted["step_0002.h5", "pario_growing"]
    assert (effective, "nobody knows its size" in reason) == (
        ("1", False) if earlier else ("", True)
    )


@pytest.mark.system
def test_on_a_real_ceph_they_do(ceph: Ceph, library: Path, tmp_path: Path) -> None:
    (folder := ceph.mount / uuid.uuid4().hex).mkdir()
    path, noted = create_growing(folder, library, tmp_path / "logs", 100 * MIB)
    assert stripes_of(path).parts[0].count == 4
    assert noted["step_0002.h5", "striping_factor"] == ("", "4", "4", "")
    (other := ceph.mount / uuid.uuid4().hex).mkdir()
    path, noted = create_growing(other, library, tmp_path / "others", 0)
    assert stripes_of(path).parts[0].count == 1
    assert "nobody knows its size" in noted["step_0002.h5", "pario_growing"][3]


def test_what_has_no_name_is_as_settings_of_its_directory_say(lustre: Path, library: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: /tmp is another one for the program")
    program = (
        "import ctypes, os; libc = ctypes.CDLL(None); libc.tmpfile.restype = ctypes.c_void_p; file"
        " = libc.tmpfile()\n"
    )
    program += (
        "number = libc.fileno(ctypes.c_void_p(file)); print(int.from_bytes(os.getxattr(number,"
        " 'lustre.lov')[28:30], 'little'))\n"
    )
    program += (
        "libc.fputs(b'line', ctypes.c_void_p(file)); libc.rewind(ctypes.c_void_p(file));"
        " print(chr(libc.fgetc(ctypes.c_void_p(file))))"
    )
    started = ["unshare", "-m", "sh", "-c", f'mount --bind {lustre} /tmp && exec "$@"', "sh"]
    shutil.copy(library, lustre / "library.so")  # the program's /tmp hides the real one
    python = Path(sys.executable).resolve()  # not one in a virtual environment below /tmp
    started += [
        "env",
        "LD_PRELOAD=/tmp/library.so",
        "PARIO_HINTS=/tmp/*:striping_factor=3",
        python,
        "-c",
        program,
    ]
    done = run_command(started)
    if "unshare" in done.stderr:
        pytest.skip(f"no mount name space of its own: {done.stderr.strip()}")
    assert done.stdout.split() == ["3", "l"], done.stderr
    assert sorted(path.name for path in lustre.iterdir()) == ["first", "library.so"]
