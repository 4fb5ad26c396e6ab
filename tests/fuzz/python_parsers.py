"""Gives mutated files to the parsers that are written in Python.

usage: python -m tests.fuzz.python_parsers [--seconds N] [--first N] [--results FILE] [--part FILE]
                                           [--jobs N] [PARSER...]

A parser must read a file or raise an error of pario that names it: no other exception, no signal,
no endless loop, no gigabytes of memory. `tests/fuzz/corpus/python-PARSER` holds files that broke
this promise; `--first` is the number of the first mutation.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import h5py
import numpy as np

from pario import checkpoint
from pario.checkpoint import write_safetensors
from pario.errors import ParioError
from pario.move.staging import NOTE, Staged
from pario.prove.model import machine
from pario.records import Dataset, tfexample
from pario.see.symbols import elf
from pario.see.tables import read
from pario.settings import load as load_settings
from tests.faults.apart import run_apart
from tests.fuzz.mutate import mutate
from tests.support.campaigns import add_options, run_campaign
from tests.support.results_file import Result

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")
#: Parsers with known defects: their failures in a campaign are expected.
KNOWN = {"checkpoint": "HDF5 loops on a damaged attribute of a file of another program"}
_MEMORY = 8 << 30  # bytes of address space
_SECONDS = 20  # for one file


@dataclass(frozen=True)
class Parser:
    """A parser: valid files, the required name of a file, and the function that reads it."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    file: str
    parse: Callable[[Path], object]

    def corpus(self) -> list[bytes]:
        """Returns files that broke a promise of the parser."""
        return [path.read_bytes() for path in sorted((CORPUS / f"python-{self.name}").glob("*"))]


def make_logs() -> list[bytes]:
    from tests.python.plog import FUNCTIONS, ProcessLog, events, ticks

    functions = [(i, ticks(1), 512, ticks(0.1), 0) for i in range(len(FUNCTIONS))]
    rows = [{"path": f"/data/{i}", "writes": i} for i in range(5)]
    small = ProcessLog(rank=0, size=1, functions=functions, records=rows, chunks=[events(50)])
    large = ProcessLog(rank=0, size=2, records=rows, chunks=[events(40)] * 3, tail=events(5))
    return [small.to_bytes(), large.to_bytes()]


def make_darshan() -> list[bytes]:
    from tests.python.darshanlog import DarshanLog, dxt_record, posix_record, segments

    modules = {
        "POSIX": posix_record(1, 0, {0: 1}),
        "DXT_POSIX": dxt_record(1, 0, segments(5), segments(2)),
    }
    with tempfile.TemporaryDirectory() as folder:
        return [DarshanLog(modules=modules).write(Path(folder) / "a.darshan").read_bytes()]


def make_settings() -> list[bytes]:
    return [
        b'[run]\nmpiio = true\n\n[[file]]\nmatch = "*.h5"\nstreams.size = 4194304\n'
        b'mpiio.cb_nodes = 4\nstriping.striping_factor = 8\n\n[[file]]\nmatch = "/a"\n'
        b"streams.count = 4\n"
    ]


def make_safetensors() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros(0, "i4")}
        write_safetensors(path, tensors, {"note": "text"})
        return [path.read_bytes()]


def make_checkpoint() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        with checkpoint.Writer(None, folder, durable=False) as writer:
            writer.save(1, {"T": np.arange(30.0), "names": np.array(["a", "b"])}, {"time": 0.5})
        saved = (Path(folder) / "step-00000001.h5").read_bytes()
    plain = io.BytesIO()
    with h5py.File(plain, "w") as file:
        file["a"] = np.arange(4)
        file["a"].attrs["units"] = "m"
    return [saved, plain.getvalue()]


def make_note() -> list[bytes]:
    note = {
        "format": "pario-stage-1",
        "roots": {"a": "/shared/a"},
        "since": 1,
        "known": {"a/b": [3, 5]},
    }
    return [json.dumps(note).encode()]


def make_machines() -> list[bytes]:
    return [machine.path_of(name).read_bytes() for name in machine.names() if name != "this"]


def make_program() -> list[bytes]:
    """A small library, with symbols and a build ID."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.so"
        command = ["gcc", "-shared", "-nostdlib", "-Wl,--build-id", "-x", "c", "-", "-o", path]
        code = "int first(int a) { return a; }\nint second(int a) { return 2 * a; }\n"
        subprocess.run(command, input=code, text=True, check=True)
        return [path.read_bytes()]


def find_symbols(path: Path) -> None:
    if not elf.is_readable(str(path)):
        return
    elf.build_id(str(path))
    symbols = elf.Symbols(str(path))
    for address in (0, 0x1000, 0x1010, 1 << 40):
        symbols.find(address)


def load_checkpoint(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = checkpoint.load(None, path)
        for name in list(state):
            state[name]


def make_examples() -> list[bytes]:
    """A TF Example with numbers, packed and not, and bytes."""
    from tests.programs.pipelines import encode_example, encode_field

    single = encode_field(1, b"single") + encode_field(2, encode_field(3, b"\x08\x05\x08\xff\1"))
    whole = encode_field(1, b"image") + encode_field(2, encode_field(1, encode_field(1, b"\xff")))
    entries = encode_field(1, single) + encode_field(1, whole)
    return [encode_example(7), encode_field(1, entries)]


def parse_example(path: Path) -> None:
    try:
        tfexample.parse_example(path.read_bytes())
    except ValueError as error:  # a Loader names the record
        raise ParioError(f"{path}: {error}") from error


def make_gzip() -> list[bytes]:
    return [gzip.compress(b"a\nbc\n" * 500), gzip.compress(b"") * 2]


def make_zstd() -> list[bytes]:
    import zstandard

    return [zstandard.ZstdCompressor().compress(b"a\nbc\n" * 500) * 2]


def read_records(path: Path) -> None:
    os.environ["PARIO_CACHE"] = str(path.parent)
    list(Dataset(path))


PARSERS = (
    Parser("log", make_logs, "node0.1000.1.plog", lambda path: read([path])),
    Parser("darshan", make_darshan, "a.darshan", lambda path: read([path])),
    Parser("settings", make_settings, "pario.toml", load_settings),
    Parser("program", make_program, "a.so", find_symbols),
    Parser("machine", make_machines, "a.toml", lambda path: machine.load(str(path))),
    Parser("safetensors", make_safetensors, "a.safetensors", checkpoint.read_safetensors),
    Parser("checkpoint", make_checkpoint, "step-00000001.h5", load_checkpoint),
    Parser("tf-example", make_examples, "a.bin", parse_example),
    Parser("gzip", make_gzip, "a.txt.gz", read_records),
    Parser("zstd", make_zstd, "a.txt.zst", read_records),
    Parser("stage-note", make_note, NOTE, lambda path: Staged.open(path.parent)),
)


def try_file(parser: Parser, content: bytes, folder: Path) -> str:
    """Returns the promise that the parser broke for a file; empty if it broke none."""
    path = folder / parser.file
    path.write_bytes(content)

    def parse() -> list[str]:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        try:
            parser.parse(path)
        except ParioError as error:
            return [] if str(folder) in str(error) else [f"the error names no path: {error}"]
        return []

    return (run_apart(parse, _SECONDS) or [""])[0]


def try_mutations(
    parser: Parser, numbers: Iterator[int], until: Callable[[], bool]
) -> tuple[int, dict[int, str]]:
    """Returns the number of files tried, and the problems by the number of the mutation."""
    seeds, problems, tried = [*parser.seeds(), *parser.corpus()], dict[int, str](), 0
    with tempfile.TemporaryDirectory(prefix="pario-fuzz-") as name:
        for number in numbers:
            if until():
                break
            tried += 1
            if problem := try_file(parser, mutate(seeds, number), Path(name)):
                problems[number] = problem.replace(name, "")
    return tried, problems


def fuzz(parser: Parser, seconds: float, first: int) -> Result:
    start = time.monotonic()
    tried, problems = try_mutations(
        parser, count(first), lambda: time.monotonic() - start > seconds
    )
    reasons = dict.fromkeys(problems.values())
    examples = [f"{next(n for n, p in problems.items() if p == text)}: {text}" for text in reasons]
    counts = {"inputs": tried, "violated": len(problems)}
    outcome = "passed" if not problems else "xfailed" if parser.name in KNOWN else "failed"
    return Result(
        f"python-fuzz::{parser.name}",
        outcome,
        time.monotonic() - start,
        " | ".join(examples[:5]),
        counts=counts,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        prog="python -m tests.fuzz.python_parsers", description=__doc__
    )
    options.add_argument("parsers", nargs="*", metavar="PARSER")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--first", type=int, default=0)
    add_options(options)
    asked = options.parse_args(arguments)

    def run(parser: Parser, known: Collection[str]) -> Iterator[Result]:
        if f"python-fuzz::{parser.name}" not in known:
            yield fuzz(parser, asked.seconds, asked.first)

    chosen = [one for one in PARSERS if not asked.parsers or one.name in asked.parsers]
    return run_campaign(asked, [partial(run, one) for one in chosen])


if __name__ == "__main__":
    sys.exit(main())
