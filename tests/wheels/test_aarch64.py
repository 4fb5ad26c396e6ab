"""The wheel for aarch64 on another processor: under qemu's user mode, with Debian's libraries."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pario.see.tables import read
from pario.see.tables.model import Job
from tests.support.commands import run_command
from tests.wheels.test_installed import ROOT, need_wheel

QEMU = "qemu-aarch64-static"
#: The program of the tests, and the packages of a Python for the extension module.
VICTIM = ROOT / "tests/wheels/appends.c"
PACKAGES = (
    *("libc6", "libgcc-s1", "libstdc++6", "python3.11-minimal", "libpython3.11-minimal"),
    *("libpython3.11-stdlib", "zlib1g", "libexpat1", "libssl3", "libffi8", "libbz2-1.0"),
    *("liblzma5", "libuuid1"),
)
_SECONDS_TO_DOWNLOAD = 900.0
pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("aarch64")]


def download_system(folder: Path) -> Path:
    """Returns a folder with Debian's packages for aarch64. The machine's own list of packages stays
    as it is."""
    for part in ("state/lists/partial", "cache/archives/partial", "packages"):
        (folder / part).mkdir(parents=True)
    (folder / "status").touch()
    options = ["-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64"]
    options += ["-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache"]
    options += ["-o", f"Dir::State::status={folder}/status", "-o", "APT::Sandbox::User=root"]
    for words in (["update"], ["download", *PACKAGES]):
        done = run_command(
            ["apt-get", "-q", *options, *words], cwd=folder / "packages", limit=_SECONDS_TO_DOWNLOAD
        )
        if done.returncode:
            pytest.skip(f"apt-get {words[0]} of Debian's packages for arm64: {done.stderr[-200:]}")
    for package in (folder / "packages").glob("*.deb"):
        run_command(["dpkg-deb", "-x", package, folder / "root"], status=0)
    return folder / "root"


class Machine:
    """A file tree of aarch64 with the wheel, whose programs qemu runs."""

    def __init__(self, folder: Path, wheel: Path, zig: Path) -> None:
        self.root = download_system(folder)
        self.packages = folder / "site"
        options = ["--python-version", "3.11"]
        for glibc in ("2_17", "2_27", "2_28"):
            options += ["--platform", f"manylinux_{glibc}_aarch64"]
        options += ["--only-binary=:all:", "--target", str(self.packages)]
        install = [sys.executable, "-m", "pip", "install", "-q", *options, wheel]
        run_command(install, status=0, limit=_SECONDS_TO_DOWNLOAD)
        self.victim = folder / "victim"
        target = ["-target", "aarch64-linux-gnu.2.28"]
        run_command([zig, "cc", *target, "-O1", "-o", self.victim, VICTIM], status=0, limit=600)

    def run(self, *words: str | Path, cwd: Path, **variables: str | Path) -> str:
        """Runs a program of aarch64 with variables, which must succeed; returns its output."""
        settings = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
        command = [QEMU, "-L", self.root, *settings, *words]
        return run_command(command, cwd=cwd, status=0, limit=600).stdout

    def trace(self, folder: Path, **variables: str | Path) -> Job:
        """Runs the victim traced, and returns its log."""
        (folder / "logs").mkdir()
        library = self.packages / "pario/libpario.so"
        logs = {"PARIO_TRACE_DIR": folder / "logs", "LD_PRELOAD": library}
        self.run(self.victim, cwd=folder, **logs, **variables)
        return read(sorted((folder / "logs").iterdir()))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    for program in (QEMU, "apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian: qemu-user-static)")
    tools = Path(os.environ.get("PARIO_WHEEL_TOOLS") or ROOT / ".venv-wheel/tools")
    zig = next(tools.glob("lib/python3*/site-packages/ziglang/zig"), None)
    if zig is None:
        pytest.skip(f"no compiler in {tools}: make wheel")
    wheel = need_wheel("cp311-cp311", "aarch64")
    return Machine(tmp_path_factory.mktemp("aarch64"), wheel, zig)


def count(job: Job, name: str, counter: str) -> int:
    """A counter of a file, summed over its rows."""
    rows = [row for row in job.records if job.path(row["file"]).endswith(name)]
    return sum(int(row[counter]) for row in rows)


def test_a_traced_program_has_its_calls_in_the_log(machine: Machine, tmp_path: Path) -> None:
    job = machine.trace(tmp_path)
    assert (tmp_path / "out.dat").stat().st_size == 32_000
    assert count(job, "out.dat", "writes") == 1000
    assert count(job, "out.dat", "bytes_written") == 32_000


def test_buffered_streams_collect_small_writes(machine: Machine, tmp_path: Path) -> None:
    job = machine.trace(tmp_path, PARIO_STREAMS="*.dat:size=64K")
    expected = b"".join(b"%31d\n" % number for number in range(1000))
    assert (tmp_path / "out.dat").read_bytes() == expected
    assert count(job, "out.dat", "writes") == 1000
    assert 1 <= count(job, "out.dat", "system_writes") <= 2


def test_the_extension_packs_and_reads_records(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(20):
        (tmp_path / "in" / f"{number}.txt").write_text(f"sample {number}")
    program = (
        "import platform, sys\n"
        "from pario.cli import main\n"
        "main(['records', 'pack', 'in', '-o', 'a.prec'])\n"
        "from pario.records import Dataset, Loader\n"
        "batches = Loader(Dataset('a.prec'), batch_size=4)\n"
        "print(platform.machine(), min(bytes(sample) for batch in batches for sample in batch))\n"
    )
    python = machine.root / "usr/bin/python3.11"
    variables = {"PYTHONPATH": machine.packages, "PYTHONHOME": machine.root / "usr"}
    output = machine.run(python, "-c", program, cwd=tmp_path, **variables)
    assert output.splitlines()[-1] == "aarch64 b'sample 0'"
