"""Runs the programs of Google Benchmark and records each repetition.

    python bench/micro.py [--build build/release/bench] [--repetitions 9] [--filter REGEX]
        [--seconds 0.1] [trace_bench] [pattern_bench]

The repetitions of all benchmarks of a program are interleaved at random. The table shows medians
of the nanoseconds of an iteration, and of the rate of those that move bytes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from environment import ROOT
from measuring import make_parser
from recording import Recorder

PROGRAMS = ("trace_bench", "pattern_bench")
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def find_benchmarks(program: Path, pattern: str) -> list[str]:
    """Returns the names of a program's benchmarks that match a regular expression."""
    command = [program, "--benchmark_list_tests", f"--benchmark_filter={pattern}"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def run_program(program: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs a program; returns its repetitions as Google Benchmark describes them, in the order of
    the source."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [program, f"--benchmark_out={out}", "--benchmark_out_format=json"]
        command += [f"--benchmark_repetitions={arguments.repetitions}"]
        command += [f"--benchmark_min_time={arguments.seconds}"]
        command += ["--benchmark_enable_random_interleaving=true"]
        command += [f"--benchmark_filter={arguments.filter}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(out.read_text())["benchmarks"]
    repetitions = [one for one in found if one["run_type"] == "iteration"]
    keys = ("family_index", "per_family_instance_index", "repetition_index")
    return sorted(repetitions, key=lambda one: [one[key] for key in keys])


def record_repetitions(program: str, repetitions: list[dict[str, Any]], recorder: Recorder) -> None:
    for one in repetitions:
        scale, rate = NANOSECONDS[one["time_unit"]], one.get("bytes_per_second")
        recorder.add(
            program=program,
            benchmark=one["run_name"],
            way="pario",
            round=one["repetition_index"] + 1,
            nanoseconds=one["real_time"] * scale,
            processor_nanoseconds=one["cpu_time"] * scale,
            mebibytes_per_second=None if rate is None else rate / 2**20,
            iterations=one["iterations"],
        )


def print_table(program: str, repetitions: list[dict[str, Any]]) -> None:
    print(f"\n{program}\n\n| benchmark | ns | MiB/s |\n|---|---|---|")
    times, rates = defaultdict(list), defaultdict(list)
    for one in repetitions:
        times[one["run_name"]].append(one["real_time"] * NANOSECONDS[one["time_unit"]])
        if "bytes_per_second" in one:
            rates[one["run_name"]].append(one["bytes_per_second"] / 2**20)
    for name, found in times.items():
        rate = f"{statistics.median(rates[name]):,.0f}" if rates[name] else ""
        print(f"| {name} | {statistics.median(found):,.1f} | {rate} |", flush=True)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release" / "bench")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--filter", default=".", metavar="REGEX", help="names of benchmarks")
    parser.add_argument("--seconds", type=float, default=0.1, help="at least, of a repetition")
    parser.add_argument("programs", nargs="*", help=f"(default: {' '.join(PROGRAMS)})")
    arguments = parser.parse_args()
    programs = [arguments.build / name for name in arguments.programs or PROGRAMS]
    if missing := [str(program) for program in programs if not program.exists()]:
        parser.error(f"not built: {', '.join(missing)} (cmake --preset release)")
    chosen = [program for program in programs if find_benchmarks(program, arguments.filter)]
    if not chosen:
        parser.error(f"--filter={arguments.filter}: no benchmark has such a name")
    with Recorder("micro", arguments) as recorder:
        for program in chosen:
            repetitions = run_program(program, arguments)
            record_repetitions(program.name, repetitions, recorder)
            print_table(program.name, repetitions)


if __name__ == "__main__":
    main()
