"""The first finding names the cause, twins make the same results, and pario is silent on them."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.diagnosis import corpus
from tests.diagnosis.corpus import HERE, Program
from tests.diagnosis.judging import Diagnosis, diagnose

SMALL = 0.02
#: Programs for CI: one of each language and of most kinds of cause.
REPRESENTATIVES = (
    "open_close",
    "missing_collectives",
    "tiny_reads",
    "dsync_log",
    "stat_storm",
    "one_rank",
    "unbuffered_stream",
    "formatted_field",
    "print_flush",
    "temporary_files",
    "popen_items",
    "posix_aio_tiny",
)
#: Programs that pario diagnoses wrongly today; a repaired rule removes its line.
KNOWN_ERRORS = tomllib.loads((HERE / "known_errors.toml").read_text())
BAD = [program for program in corpus.table() if not program.healthy]
ALL = [
    pytest.param(
        program,
        id=program.name,
        marks=[] if program.name in REPRESENTATIVES or program.healthy else pytest.mark.exhaustive,
    )
    for program in corpus.table()
]


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture
def program(request: pytest.FixtureRequest, build_folder: Path) -> Program:
    chosen: Program = request.param
    if missing := corpus.find_missing(chosen):
        pytest.skip(f"needs {missing}")
    corpus.build(build_folder, chosen.name)
    return chosen


def each(*rows: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", rows, indirect=True)


def diagnoses(
    program: Program, build_folder: Path, work: Path, logs: Path, *, repaired: bool = False
) -> Iterator[Diagnosis]:
    """Yields the diagnoses of up to three runs.

    Several runs, because on a busy machine even a healthy program waits, or has a slow call.
    """
    if corpus.library() is None:
        pytest.skip("pario's native parts are not built")
    for attempt in range(3):
        log = logs / f"attempt{attempt}"
        corpus.prepare(program, build_folder, work)
        tracer = [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--"]
        corpus.run(program, build_folder, work, repaired=repaired, prefix=tracer)
        yield diagnose(log)


def check_that_it_is_no_known_error(name: str) -> None:
    assert name not in KNOWN_ERRORS, "it is right now: remove its line in known_errors.toml"


@pytest.mark.system
@each(*ALL)
def test_first_finding_names_the_cause(
    program: Program, build_folder: Path, work: Path, tmp_path: Path
) -> None:
    found = []
    for diagnosis in diagnoses(program, build_folder, work, tmp_path):
        if diagnosis.healthy if program.healthy else diagnosis.is_right(program):
            return check_that_it_is_no_known_error(program.name)
        found.append(f"{diagnosis.first}: {diagnosis.sentence}")
        if program.name in KNOWN_ERRORS:
            pytest.xfail(f"{KNOWN_ERRORS[program.name]}; found {found}")
    expected = " or ".join(program.rules) or "healthy"
    pytest.fail(f"{program.name}: expected {expected}, found {found}")


@pytest.mark.exhaustive
@each(*(pytest.param(program, id=program.name) for program in BAD))
def test_pario_is_silent_on_the_repaired_twin(
    program: Program, build_folder: Path, work: Path, tmp_path: Path
) -> None:
    twin = f"{program.name}-twin"
    found = []
    for diagnosis in diagnoses(program, build_folder, work, tmp_path, repaired=True):
        if diagnosis.healthy:
            return check_that_it_is_no_known_error(twin)
        found.append(f"{diagnosis.first}: {diagnosis.sentence}")
        if twin in KNOWN_ERRORS:
            pytest.xfail(f"{KNOWN_ERRORS[twin]}; found {found}")
    pytest.fail(f"{twin}: {found}")


@pytest.mark.system
@each(
    *(
        pytest.param(
            program,
            id=program.name,
            marks=[] if program.name in REPRESENTATIVES else pytest.mark.exhaustive,
        )
        for program in BAD
    )
)
def test_twin_makes_the_same_results(program: Program, build_folder: Path, work: Path) -> None:
    outcomes = []
    for repaired in (False, True):
        corpus.prepare(program, build_folder, work, SMALL)
        run = corpus.run(program, build_folder, work, repaired=repaired, scale=SMALL)
        said = run.truth["verified"] if program.counted else run.output
        outcomes.append((said, [(work / name).read_bytes() for name in program.results]))
    assert outcomes[0] == outcomes[1]


def test_the_table_has_a_row_for_each_source() -> None:
    listed = {program.source for program in corpus.table()}
    sources = {
        path
        for folder in ("programs", "counted")
        for path in (HERE / folder).iterdir()
        if path.suffix in (".c", ".cpp", ".f90", ".py", ".sh")
    }
    helpers = {HERE / name for name in ("counted/counted.c", "programs/work.py")}
    helpers.add(HERE / "programs/work.inc.sh")
    assert listed == sources - helpers


def test_the_corpus_has_eighty_programs_in_five_languages() -> None:
    assert len(BAD) >= 80
    languages = {program.language for program in BAD}
    assert languages == {"c", "c++", "fortran", "python", "shell"}


def test_known_errors_are_rows_of_the_table() -> None:
    names = {program.name for program in corpus.table()}
    assert {name.removesuffix("-twin") for name in KNOWN_ERRORS} <= names
