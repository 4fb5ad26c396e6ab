"""What `pario run --fix` gains of what repairing by hand gains, for the bad programs of tests/badio; what pario costs the healthy ones.

`pario run --fix --dry-run --allow` writes the settings of each bad program. Then the bad program, the same with these settings, and its
repaired twin run in turn, all three traced; medians. A gain is told where the twin's is more than runs differ anyhow (three runs or more).
Equal: the fixed runs left the same results as the bad ones. A healthy program runs in turn without pario, and traced with settings that
mean other files. Prints tables in Markdown.

    python bench/fix.py [--runs 5] [--dir DIRECTORY] [--scale 1] [program ...]

DIRECTORY chooses the file system: only the programs' files are there. Where reads cost something, also on a machine that caches:

    pario lab up --targets 4 --rate 100M --latency 0.5ms /tmp/lab
    python bench/fix.py --dir /tmp/lab all_read
    python bench/fix.py --dir /tmp/lab --scale 0.02 seek_storm reread open_close
"""

from __future__ import annotations

import hashlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from badio import Place, chosen, parse
from tests.badio import programs
from tests.badio.programs import Program, Tracing

from pario.analyze import analyze
from pario.analyze.advise import Advice, advise
from pario.analyze.noise import noise
from pario.settings import SettingsFile, load, variables
from pario.tables import read

OTHER_FILES = {"PARIO_STREAMS": "*.none:size=8M"}
HEADER = "| program | repaired by | bad, s | fixed, s | twin, s | of the twin's gain | equal |\n|---|---|---|---|---|---|---|"
HEALTHY_HEADER = "\n| healthy program | alone, s | with pario, s | ratio | of processor time |\n|---|---|---|---|---|"


@dataclass
class Runs:
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # seconds of all processors
    results: set[str] = field(default_factory=set)  # a hash of all results per run


def repair(place: Place, program: Program) -> tuple[SettingsFile, Advice]:
    """What pario proposes after one run."""
    programs.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as folder:
        scaled = ["--scale", str(place.scale)]
        loop = [
            "run",
            "--fix",
            "--dry-run",
            "--allow",
            "all",
            "--no-report",
            "-o",
            f"{folder}/loop",
        ]
        command = [
            sys.executable,
            "-m",
            "pario",
            *loop,
            "--",
            *programs.command(program, place.built, place.work, *scaled),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return load(Path(folder, "loop", "pario.toml")), advise(
            analyze(read([Path(folder, "loop", "before")])), ["all"]
        )


def once(
    place: Place,
    program: Program,
    runs: Runs,
    settings: dict[str, str] | None,
    *,
    repaired: bool = False,
) -> None:
    """One run with settings; None: without pario."""
    programs.prepare(program, place.built, place.work, place.scale)
    before = processor_seconds()
    with tempfile.TemporaryDirectory() as log:
        tracing = None if settings is None else Tracing(place.library, Path(log), settings)
        done = programs.run(
            program, place.built, place.work, repaired=repaired, scale=place.scale, tracing=tracing
        )
        runs.seconds.append(done.seconds)
    runs.processor.append(processor_seconds() - before)
    digest = hashlib.blake2b()
    for name in program.results:
        digest.update((place.work / name).read_bytes())
    runs.results.add(digest.hexdigest())


def measure(place: Place, program: Program) -> str:
    file, advice = repair(place, program)
    if not advice.acts:
        return f"| {program.name} | a change of the program: {advice.left[0].why_not if advice.left else 'nothing was found'} | | | | | |"
    settings = variables(file, os.environ)
    bad, fixed, twin = Runs(), Runs(), Runs()
    for _ in range(place.runs):
        once(place, program, bad, {})
        once(place, program, fixed, settings)
        once(place, program, twin, {}, repaired=True)
    times = [statistics.median(runs.seconds) for runs in (bad, fixed, twin)]
    beyond = times[0] > times[2] and noise(bad.seconds, twin.seconds) == "beyond"
    gain = f"{100 * (times[0] - times[1]) / (times[0] - times[2]):.0f} %" if beyond else "(noise)"
    equal = "yes" if len(bad.results | fixed.results) == 1 else "NO"
    return f"| {program.name} | {keys(file)} | {' | '.join(f'{time:.2f}' for time in times)} | {gain} | {equal if program.results else '-'} |"


def keys(file: SettingsFile) -> str:
    settings = [*file.run, *(one for section in file.sections for one in section.settings)]
    return ", ".join(dict.fromkeys(f"`{one.key.name} = {one.text}`" for one in settings))


def healthy(place: Place, program: Program) -> str:
    alone, traced = Runs(), Runs()
    for _ in range(place.runs):
        once(place, program, alone, None)
        once(place, program, traced, OTHER_FILES)
    ratios = [
        statistics.median(own / other for own, other in zip(*pair, strict=True))
        for pair in ((traced.seconds, alone.seconds), (traced.processor, alone.processor))
    ]
    cells = [
        program.name,
        *(f"{statistics.median(runs.seconds):.2f}" for runs in (alone, traced)),
        *(f"{ratio:.3f}" for ratio in ratios),
    ]
    return f"| {' | '.join(cells)} |"


def processor_seconds() -> float:
    """Of all processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    with parse(__doc__) as (place, names):
        rows = list(chosen(names))
        print(HEADER)
        for program in (program for program in rows if not program.healthy):
            print(measure(place, program), flush=True)
        print(HEALTHY_HEADER)
        for program in (program for program in rows if program.healthy):
            print(healthy(place, program), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
