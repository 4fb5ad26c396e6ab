"""Measures the gain of `pario run --fix` beside the gain of repairs by hand (tests/diagnosis).

`pario run --fix --dry-run --allow` writes the settings of each bad program. Then the bad program,
the same with these settings, and its repaired twin run in turn, all three traced; the table shows
medians. A gain is shown if the twin's gain exceeds the noise between runs (three runs or more).
"Equal" says whether the fixed runs left the same results as the bad ones. A healthy program runs
in turn without pario, and traced with settings for other files. Prints tables in Markdown.

    python bench/fix.py [--runs 5] [--dir DIRECTORY] [--scale 1] [program ...]

DIRECTORY chooses the file system; it holds only the programs' files. On a machine whose page cache
hides the cost of reads, use a lab:

    pario lab up --targets 4 --rate 100M --latency 0.5ms /tmp/lab
    python bench/fix.py --dir /tmp/lab all_read
    python bench/fix.py --dir /tmp/lab --scale 0.02 seek_storm reread open_close
"""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from diagnosis import Place, open_place
from measuring import find_median_ratio, make_parser, sum_processor_seconds
from recording import Recorder
from tests.diagnosis import corpus
from tests.diagnosis.corpus import Program, Tracing

from pario.see.analyze import analyze
from pario.see.analyze.advise import Advice, advise
from pario.see.analyze.noise import noise
from pario.see.tables import read
from pario.settings import SettingsFile, load, variables

OTHER_FILES = {"PARIO_STREAMS": "*.none:size=8M"}
HEADER = """\
| program | repaired by | bad, s | fixed, s | twin, s | of the twin's gain | equal |
|---|---|---|---|---|---|---|"""
HEALTHY_HEADER = """
| healthy program | alone, s | with pario, s | ratio | of processor time |
|---|---|---|---|---|"""


@dataclass
class Runs:
    """The runs of one way; settings None: without pario."""

    way: str
    settings: dict[str, str] | None
    repaired: bool = False
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # seconds of all processors
    results: set[str] = field(default_factory=set)  # a hash of all results per run


def propose_repair(place: Place, program: Program) -> tuple[SettingsFile, Advice]:
    """Returns the settings and the advice of pario after one run."""
    corpus.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as folder:
        loop = ["run", "--fix", "--dry-run", "--allow", "all", "--no-report", "-o"]
        words = corpus.command(program, place.built, place.work, scale=place.scale)
        command = [sys.executable, "-m", "pario", *loop, f"{folder}/loop", "--", *words]
        subprocess.run(command, check=True, capture_output=True)
        advice = advise(analyze(read([Path(folder, "loop", "before")])), ["all"])
        return load(Path(folder, "loop", "pario.toml")), advice


def run_once(place: Place, program: Program, runs: Runs) -> None:
    """Runs a program once with the settings of ``runs``, and adds the result to them."""
    corpus.prepare(program, place.built, place.work, place.scale)
    before = sum_processor_seconds(own=False)
    with tempfile.TemporaryDirectory() as log:
        settings = runs.settings
        tracing = None if settings is None else Tracing(place.library, Path(log), settings)
        done = corpus.run(
            program,
            place.built,
            place.work,
            repaired=runs.repaired,
            scale=place.scale,
            tracing=tracing,
        )
    runs.seconds.append(done.seconds)
    runs.processor.append(sum_processor_seconds(own=False) - before)
    digest = hashlib.blake2b()
    for name in program.results:
        digest.update((place.work / name).read_bytes())
    runs.results.add(digest.hexdigest())


def measure_ways(place: Place, program: Program, ways: list[Runs], recorder: Recorder) -> None:
    """Runs all ways in turn."""
    for number in range(1, place.runs + 1):
        for runs in ways:
            run_once(place, program, runs)
            recorder.add(
                program=program.name,
                scale=place.scale,
                way=runs.way,
                round=number,
                seconds=runs.seconds[-1],
                processor_seconds=runs.processor[-1],
            )


def measure_bad(place: Place, program: Program, recorder: Recorder) -> str:
    """Measures a bad program; returns its row."""
    file, advice = propose_repair(place, program)
    if not advice.acts:
        reason = advice.left[0].why_not if advice.left else "nothing was found"
        return f"| {program.name} | a change of the program: {reason} | | | | | |"
    bad, fixed = Runs("bad", {}), Runs("fixed", variables(file, os.environ))
    twin = Runs("repaired", {}, repaired=True)
    measure_ways(place, program, [bad, fixed, twin], recorder)
    times = [statistics.median(runs.seconds) for runs in (bad, fixed, twin)]
    beyond = times[0] > times[2] and noise(bad.seconds, twin.seconds) == "beyond"
    gain = f"{100 * (times[0] - times[1]) / (times[0] - times[2]):.0f} %" if beyond else "(noise)"
    equal = "yes" if len(bad.results | fixed.results) == 1 else "NO"
    cells = [program.name, describe_settings(file), *(f"{time:.2f}" for time in times), gain]
    return f"| {' | '.join(cells)} | {equal if program.results else '-'} |"


def describe_settings(file: SettingsFile) -> str:
    """Returns the settings of a file, each once."""
    settings = [*file.run, *(one for section in file.sections for one in section.settings)]
    return ", ".join(dict.fromkeys(f"`{one.key.name} = {one.text}`" for one in settings))


def measure_healthy(place: Place, program: Program, recorder: Recorder) -> str:
    """Measures a healthy program; returns its row."""
    alone, traced = Runs("alone", None), Runs("traced", OTHER_FILES)
    measure_ways(place, program, [alone, traced], recorder)
    ratios = [
        find_median_ratio(traced.seconds, alone.seconds),
        find_median_ratio(traced.processor, alone.processor),
    ]
    cells = [program.name, *(f"{statistics.median(runs.seconds):.2f}" for runs in (alone, traced))]
    return f"| {' | '.join([*cells, *(f'{ratio:.3f}' for ratio in ratios)])} |"


def main() -> int:
    with open_place("fix", make_parser(__doc__), counted=True) as (place, selected, recorder, _):
        print(HEADER)
        for program in (program for program in selected if not program.healthy):
            print(measure_bad(place, program, recorder), flush=True)
        print(HEALTHY_HEADER)
        for program in (program for program in selected if program.healthy):
            print(measure_healthy(place, program, recorder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
