"""Measures the gain of `pario run --fix` beside the gain of repairs by hand (tests/diagnosis).

`pario advise --allow` measures the settings of each bad program by replays, and promises a gain.
Then the bad program, the same with these settings, and its repaired twin run in turn, all three
traced; the table shows medians. A gain is shown if the twin's gain exceeds the noise between runs
(three runs or more). "Equal" says whether the fixed runs left the same results as the bad ones. A
healthy program runs in turn without pario, and traced with settings for other files. Prints tables
in Markdown; bench/predictions.py makes docs/predictions.md of the records.

    python bench/fix.py [--runs 5] [--dir DIRECTORY] [--scale 1] [--measure 60] [program ...]

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
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from diagnosis import Place, open_place
from measuring import find_median_ratio, make_parser, sum_processor_seconds
from recording import Recorder
from tests.diagnosis import corpus
from tests.diagnosis.corpus import Program, Tracing

from pario.cli.measured import MEASURE, MEASURE_HELP, advise_by_replays
from pario.see.analyze import analyze
from pario.see.analyze.advise import Advice, render
from pario.see.analyze.noise import noise
from pario.see.tables import read
from pario.settings import SettingsFile, load, variables

OTHER_FILES = {"PARIO_STREAMS": "*.none:size=8M"}
HEADER = """\
| program | repaired by | bad, s | promised, s | fixed, s | twin, s | of the twin's gain | equal |
|---|---|---|---|---|---|---|---|"""
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


def propose_repair(
    place: Place, program: Program, seconds: float
) -> tuple[SettingsFile, Advice, bool]:
    """Returns the settings and the advice of pario after one run, and True if replays within
    ``seconds`` measured it."""
    corpus.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as folder:
        log, file = Path(folder, "log"), Path(folder, "pario.toml")
        tracer = [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--"]
        corpus.run(program, place.built, place.work, scale=place.scale, prefix=tracer)
        job = read([log])
        analysis = analyze(job)
        launcher = corpus.mpiexec()
        advice, lines = advise_by_replays(
            job, analysis, ["all"], seconds, mpiexec=str(launcher) if launcher else None
        )
        print(f"{program.name}\n{chr(10).join(lines)}", file=sys.stderr, flush=True)
        file.write_text(render(analysis, advice, lines), encoding="utf-8")
        return load(file), advice, any("measured by replays of" in line for line in lines)


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


def measure_ways(
    place: Place,
    program: Program,
    ways: list[Runs],
    recorder: Recorder,
    promise: Promise | None = None,
) -> None:
    """Runs all ways in turn."""
    promise = promise or Promise()
    for number in range(1, place.runs + 1):
        for runs in ways:
            run_once(place, program, runs)
            recorder.add(
                program=program.name,
                scale=place.scale,
                rule=promise.rule,
                promise=promise.kind,
                way=runs.way,
                round=number,
                seconds=runs.seconds[-1],
                promised_seconds=promise.seconds,
                processor_seconds=runs.processor[-1],
            )


@dataclass(frozen=True)
class Promise:
    """The gain that pario's advice promises for its settings."""

    rule: str = ""  # of the first repaired finding; empty: a remedy without a finding
    kind: str = ""  # measured: by replays; estimate
    seconds: float = 0.0


def measure_bad(place: Place, program: Program, recorder: Recorder, seconds: float) -> str:
    """Measures a bad program; returns its row."""
    file, advice, measured = propose_repair(place, program, seconds)
    if not advice.acts:
        reason = advice.left[0].why_not if advice.left else "nothing was found"
        return f"| {program.name} | a change of the program: {reason} | | | | | | |"
    promise = Promise(
        advice.repaired[0].rule if advice.repaired else "",
        "measured" if measured else "estimate",
        sum(finding.seconds for finding in advice.repaired),
    )
    bad, fixed = Runs("bad", {}), Runs("fixed", variables(file, os.environ))
    twin = Runs("repaired", {}, repaired=True)
    measure_ways(place, program, [bad, fixed, twin], recorder, promise)
    times = [statistics.median(runs.seconds) for runs in (bad, fixed, twin)]
    beyond = times[0] > times[2] and noise(bad.seconds, twin.seconds) == "beyond"
    gain = f"{100 * (times[0] - times[1]) / (times[0] - times[2]):.0f} %" if beyond else "(noise)"
    equal = "yes" if len(bad.results | fixed.results) == 1 else "NO"
    cells = [
        program.name,
        describe_settings(file),
        f"{times[0]:.2f}",
        f"{promise.seconds:.2f}",
        *(f"{time:.2f}" for time in times[1:]),
        gain,
    ]
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
    parser = make_parser(__doc__)
    parser.add_argument("--measure", help=MEASURE_HELP, **MEASURE)
    with open_place("fix", parser) as (place, selected, recorder, options):
        print(HEADER)
        for program in (program for program in selected if not program.healthy):
            print(measure_bad(place, program, recorder, options.measure), flush=True)
            corpus.clear(place.work)
        print(HEALTHY_HEADER)
        for program in (program for program in selected if program.healthy):
            print(measure_healthy(place, program, recorder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
