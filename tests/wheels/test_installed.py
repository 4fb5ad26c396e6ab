"""The wheels of `make wheel` in environments with nothing but Python: no compiler, no MPI."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
import zipfile
from pathlib import Path

import pytest
from tools.interpreters import find_interpreters

from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
WHEELS = Path(os.environ.get("PARIO_WHEELS") or ROOT / "dist")
#: Installing downloads numpy, rich and jinja2.
_SECONDS_TO_INSTALL = 900.0
#: From a wheel to the first report, in seconds of the processor: other work of the machine and the
#: network do not count.
_SECONDS_TO_REPORT = 60.0
_TOOLS = ("sh", "env", "true", "dd", "cat", "uname")
pytestmark = pytest.mark.exhaustive


def need_wheel(tag: str, processor: str = "x86_64") -> Path:
    """The wheel of an ABI, or skips the test."""
    found = sorted(WHEELS.glob(f"pario-*-{tag}-manylinux_*_{processor}.whl"))
    return found[-1] if found else pytest.skip(f"no wheel {tag} in {WHEELS}: make wheel")


def measure_processor() -> float:
    """Returns the processor seconds of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Environment:
    """A virtual environment with a wheel; its programs find no compiler."""

    def __init__(self, folder: Path, interpreter: Path, wheel: Path) -> None:
        begin, used = time.monotonic(), measure_processor()
        self.wheel = wheel
        self.bin = folder / "venv/bin"
        run_command([interpreter, "-m", "venv", folder / "venv"], status=0)
        tools = folder / "tools"
        tools.mkdir()
        for name in _TOOLS:
            (tools / name).symlink_to(str(shutil.which(name)))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PARIO_")}
        kept.pop("PYTHONPATH", None)
        self.variables = kept | {"PATH": f"{self.bin}:{tools}"}
        self.run("pip", "install", "-q", "--only-binary=:all:", wheel, limit=_SECONDS_TO_INSTALL)
        self.seconds = time.monotonic() - begin
        self.processor = measure_processor() - used

    def run(self, *words: str | Path, limit: float = 300.0, cwd: Path | None = None) -> str:
        """Runs a program of the environment, which must succeed, and returns its output."""
        return run_command(
            [self.bin / str(words[0]), *words[1:]],
            env=self.variables,
            status=0,
            limit=limit,
            cwd=cwd,
        ).stdout


#: The interpreters, each with the tag of its wheel.
_WHEELS = {
    "3.11": "cp311-cp311",
    "3.12": "cp312-abi3",
    "3.13": "cp312-abi3",
    "3.14": "cp312-abi3",
    "3.14t": "cp314-cp314t",
}


#: Prints the number of threads, whether their results are those of one, and whether there is a
#: global lock.
_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pario.archive import Archive
from pario.records import Dataset, Loader

dataset, packed = Dataset("numbers.txt"), Archive("packed")
names = [f"{number}.txt" for number in range(200)]

def read(thread):
    loader = Loader(dataset, 32, shuffle=True, seed=1)
    order = [int(record) for batch in loader for record in batch]
    single = [int(dataset[number]) for number in range(0, 20_000, 7)]
    lists = [int(one) for one in dataset[list(range(0, 20_000, 7))]]
    return order, single, lists, [packed.read(name) for name in names]

with ThreadPoolExecutor(8) as threads:
    results = list(threads.map(read, range(8)))
alone = read(0)
print(len(results), "equal" if all(one == alone for one in results) else "different")
print(getattr(sys, "_is_gil_enabled", lambda: True)())
"""


@pytest.fixture(scope="module", params=_WHEELS)
def environment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    version, suffix = request.param.rstrip("t"), "t" * request.param.endswith("t")
    interpreter = find_interpreters(suffix).get((3, int(version.partition(".")[2])))
    if interpreter is None:
        pytest.skip(f"no CPython {request.param} on the PATH or of pyenv")
    wheel = need_wheel(_WHEELS[request.param])
    return Environment(tmp_path_factory.mktemp("bare"), interpreter, wheel)


def test_from_a_wheel_to_the_first_report(
    environment: Environment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin, used = time.monotonic(), measure_processor()
    command = ["dd", "if=/dev/zero", "of=out.bin", "bs=512", "count=2000"]
    environment.run("pario", "run", "-o", "run.pario", "--", *command, cwd=tmp_path)
    page = tmp_path / "report.html"
    environment.run("pario", "report", "run.pario", "--html", page, cwd=tmp_path)
    assert "out.bin" in page.read_text(encoding="utf-8")
    report = time.monotonic() - begin
    processor = environment.processor + measure_processor() - used
    assert 0 < processor < _SECONDS_TO_REPORT
    with capsys.disabled():
        print(
            f"\nwheel installed in {environment.seconds:.1f} s, report after {report:.1f} s more;"
            f" {processor:.1f} s of the processor"
        )


def test_the_version_is_that_of_the_wheel(environment: Environment) -> None:
    shown = environment.run("pario", "--version").split()
    assert shown == ["pario", environment.wheel.name.split("-")[1]]


def test_a_command_without_files_runs(environment: Environment, tmp_path: Path) -> None:
    environment.run("pario", "run", "--", "true", cwd=tmp_path)


def test_the_extension_packs_and_reads_records(environment: Environment, tmp_path: Path) -> None:
    """Uses threads, exceptions and buffers of the extension module."""
    (tmp_path / "in").mkdir()
    for number in range(20):
        (tmp_path / "in" / f"{number}.txt").write_text(f"sample {number}")
    environment.run("pario", "records", "pack", "in", "-o", "a.prec", cwd=tmp_path)
    program = (
        "from pario.records import Dataset, Loader\n"
        "batches = Loader(Dataset('a.prec'), batch_size=4)\n"
        "print(min(bytes(sample) for batch in batches for sample in batch))\n"
        "try: Dataset('absent.prec')\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    output = environment.run("python", "-c", program, cwd=tmp_path)
    assert output.split("\n")[:2] == ["b'sample 0'", "FileNotFoundError"]


def test_threads_share_objects_of_the_extension(environment: Environment, tmp_path: Path) -> None:
    """Without a global lock in an interpreter that has none."""
    (tmp_path / "numbers.txt").write_text("".join(f"{number}\n" for number in range(20_000)))
    (tmp_path / "in").mkdir()
    for number in range(200):
        (tmp_path / "in" / f"{number}.txt").write_text(f"sample {number}")
    environment.run("pario", "pack", "in", "-o", "packed", cwd=tmp_path)
    program = tmp_path / "program.py"
    program.write_text(_THREADS)
    output = environment.run("python", program, cwd=tmp_path)
    assert output.split() == ["8", "equal", "False" if "t-" in environment.wheel.name else "True"]


def test_preload_tests_pass_with_the_library_of_the_wheel(tmp_path: Path) -> None:
    """Exceptions, thread-locals and symbols of the library beside those of the programs."""
    with zipfile.ZipFile(need_wheel("cp311-cp311")) as wheel:
        wheel.extract("pario/libpario.so", tmp_path)
    environment = os.environ | {"PARIO_LIBRARY": str(tmp_path / "pario/libpario.so")}
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "-m", "not system and not exhaustive"]
    run_command(
        [*command, "tests/preload", "tests/streams"],
        env=environment,
        cwd=ROOT,
        status=0,
        limit=1800.0,
    )
