"""Repaired twins make the same results, and pario's counters equal the programs' own counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.diagnosis import corpus
from tests.diagnosis.corpus import Program, Tracing

SMALL = 0.02
COUNTED = corpus.counted_programs()
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


@pytest.fixture(scope="session")
def program_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("counted")
    corpus.build(directory, *(program.name for program in COUNTED))
    return directory


@pytest.fixture
def tracing(tmp_path: Path) -> Tracing:
    library = corpus.library()
    if library is None:
        pytest.skip("pario's native parts are not built")
    (tmp_path / "log").mkdir()
    return Tracing(library, tmp_path / "log")


@pytest.mark.system
@pytest.mark.parametrize(
    ("program", "repaired"),
    [(program, False) for program in COUNTED]
    + [(program, True) for program in COUNTED if not program.healthy],
    ids=[program.name for program in COUNTED]
    + [f"{program.name}-repaired" for program in COUNTED if not program.healthy],
)
def test_counters_equal_the_truth(
    program: Program, repaired: bool, program_folder: Path, work: Path, tracing: Tracing
) -> None:
    if missing := corpus.find_missing(program):
        pytest.skip(f"needs {missing}")
    corpus.prepare(program, program_folder, work, SMALL)
    truth = corpus.run(
        program, program_folder, work, repaired=repaired, scale=SMALL, tracing=tracing
    ).truth
    assert truth["verified"]
    assert sum_counters(tracing.log, work, truth["layer"]) == {key: truth[key] for key in COUNTS}


def sum_counters(log: Path, work: Path, layer: str) -> dict[str, Any]:
    """Returns pario's counters of one layer, summed over the files below ``work``."""
    from pario.see.tables import read
    from pario.see.tables.model import LAYERS

    job = read([log])
    inside = [job.paths[file["path"]].startswith(f"{work}/") for file in job.files]
    rows = [
        row for row in job.records if row["layer"] == LAYERS.index(layer) and inside[row["file"]]
    ]
    return {key: sum(int(row[key]) for row in rows) for key in COUNTS}
