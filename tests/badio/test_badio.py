"""Repaired twins make the same results, pario's counters equal the programs' own counts, and the
first finding names the cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.badio import programs
from tests.badio.programs import Program, Tracing

SMALL = 0.02
#: Enough work that the cause is the first finding.
QUARTER = 0.25
TABLE = programs.table()
BAD = [program for program in TABLE if not program.healthy]
COUNTS = [
    "opens",
    "closes",
    "reads",
    "writes",
    "seeks",
    "stats",
    "syncs",
    "bytes_read",
    "bytes_written",
]


def each_program(selection: list[Program]) -> Any:
    return pytest.mark.parametrize("program", selection, ids=lambda program: program.name)


@pytest.fixture(scope="session")
def program_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("badio")
    programs.build(directory)
    return directory


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "work"
    directory.mkdir()
    yield directory
    for file in directory.rglob("*"):
        if file.is_file():
            file.unlink()


@pytest.fixture
def tracing(tmp_path: Path) -> Tracing:
    library = programs.library()
    if library is None:
        pytest.skip("pario's native parts are not built")
    (tmp_path / "log").mkdir()
    return Tracing(library, tmp_path / "log")


@pytest.fixture(autouse=True)
def skip_without_mpi(program: Program) -> None:
    if program.ranks and not programs.mpiexec():
        pytest.skip("no mpiexec beside this Python (pip install mpich)")


def read_results(program: Program, work: Path) -> dict[str, bytes]:
    return {name: (work / name).read_bytes() for name in program.results}


@pytest.mark.system
@each_program(BAD)
def test_twin_makes_the_same_results(program: Program, program_folder: Path, work: Path) -> None:
    results = []
    for repaired in (False, True):
        programs.prepare(program, program_folder, work, SMALL)
        assert programs.run(program, program_folder, work, repaired=repaired, scale=SMALL).truth[
            "verified"
        ]
        results.append(read_results(program, work))
    assert results[0] == results[1]


@pytest.mark.system
@pytest.mark.parametrize(
    ("program", "repaired"),
    [(program, False) for program in TABLE] + [(program, True) for program in BAD],
    ids=[program.name for program in TABLE] + [f"{program.name}-repaired" for program in BAD],
)
def test_counters_equal_the_truth(
    program: Program, repaired: bool, program_folder: Path, work: Path, tracing: Tracing
) -> None:
    programs.prepare(program, program_folder, work, SMALL)
    truth = programs.run(
        program, program_folder, work, repaired=repaired, scale=SMALL, tracing=tracing
    ).truth
    assert sum_counters(tracing.log, work, truth["layer"]) == {key: truth[key] for key in COUNTS}


def sum_counters(log: Path, work: Path, layer: str) -> dict[str, int]:
    """Returns pario's counters of one layer, summed over the files below ``work``."""
    from pario.see.tables import read
    from pario.see.tables.model import LAYERS

    job = read([log])
    inside = [job.paths[file["path"]].startswith(f"{work}/") for file in job.files]
    rows = [
        row for row in job.records if row["layer"] == LAYERS.index(layer) and inside[row["file"]]
    ]
    return {key: sum(int(row[key]) for row in rows) for key in COUNTS}


@pytest.mark.system
@each_program(TABLE)
@pytest.mark.parametrize("scale", [QUARTER, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_first_finding_names_the_cause(
    program: Program, scale: float, program_folder: Path, work: Path, tmp_path: Path
) -> None:
    expected = [] if program.healthy else [program.rule]
    runs = find_causes(program, program_folder, work, tmp_path, scale=scale)
    assert expected in (found[:1] for found in runs)


@pytest.mark.exhaustive
@each_program(BAD)
def test_repaired_twin_has_no_finding(
    program: Program, program_folder: Path, work: Path, tmp_path: Path
) -> None:
    assert [] in find_causes(program, program_folder, work, tmp_path, repaired=True)


def find_causes(
    program: Program,
    program_folder: Path,
    work: Path,
    logs: Path,
    *,
    repaired: bool = False,
    scale: float = 1,
) -> Iterator[list[str]]:
    """Yields the significant rules of up to three runs.

    Several runs, because on a busy machine even a healthy program waits, or has a slow call.
    """
    library = programs.library()
    if library is None:
        pytest.skip("pario's native parts are not built")
    for attempt in range(3):
        tracing = Tracing(library, logs / f"attempt{attempt}")
        tracing.log.mkdir()
        programs.prepare(program, program_folder, work, scale)
        run = programs.run(
            program, program_folder, work, repaired=repaired, scale=scale, tracing=tracing
        )
        yield find_significant_rules(tracing.log, run.seconds)


def find_significant_rules(log: Path, seconds: float) -> list[str]:
    """Returns rules of findings that cost more than 2 % of the run, the most expensive first."""
    from pario.see.analyze import analyze
    from pario.see.tables import read

    return [
        finding.rule
        for finding in analyze(read([log])).findings
        if finding.seconds > 0.02 * seconds
    ]
