"""Comparisons of runs: figures, noise, findings, files, outputs, and the pages that show them."""

from __future__ import annotations

import io
import itertools
import json
import math
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pario.outputs import Output
from pario.see.analyze import analyze
from pario.see.analyze import comparison as model
from pario.see.analyze.compare import Runs, compare
from pario.see.analyze.comparison import Comparison
from pario.see.analyze.model import Analysis, Split
from pario.see.analyze.noise import chance, noise
from pario.see.report import comparison as page
from pario.see.report import json as report
from pario.see.report.html import comparison as html
from tests.python.jobs import make_job
from tests.python.support import analyses

DOCUMENT = Path(__file__).parents[2] / "docs" / "compare.md"


def run(wall: float = 4.0, *, source: Analysis | None = None, **job: object) -> Analysis:
    """A run of the small job that takes ``wall`` seconds, three quarters of it I/O."""
    analysis = source or analyses.small()
    split = Split(wall / 4, 0.0, 0.0, wall * 3 / 4)
    return replace(
        analysis,
        job=replace(analysis.job, wall=wall, **job),
        verdict=replace(analysis.verdict, critical=split),
    )


def sides(
    a: Sequence[Analysis],
    b: Sequence[Analysis],
    outputs: tuple[Sequence[object], Sequence[object]] = ((), ()),
) -> Comparison:
    before = Runs("A", "before", a, outputs[0])  # type: ignore[arg-type]
    after = Runs("B", "after", b, outputs[1])  # type: ignore[arg-type]
    return compare(before, after)


# --- noise


def test_noise_is_not_known_from_fewer_than_three_runs() -> None:
    assert noise([1.0], [2.0]) == "unknown"
    assert noise([1.0, 1.1], [2.0, 2.1]) == "unknown"


def test_three_runs_that_are_all_faster_are_beyond_noise() -> None:
    assert chance([1.0, 1.1, 1.2], [2.0, 2.1, 2.2]) == pytest.approx(0.1)
    assert noise([1.0, 1.1, 1.2], [2.0, 2.1, 2.2]) == "beyond"


def test_runs_that_overlap_are_within_noise() -> None:
    assert noise([1.0, 1.1, 2.05], [2.0, 2.1, 2.2]) == "within"


def test_counts_that_never_vary_are_equal_or_beyond_noise() -> None:
    assert noise([7, 7, 7], [7, 7, 7]) == "equal"
    assert noise([7, 7, 7], [8, 8, 8]) == "beyond"


VALUES = st.lists(st.integers(0, 5), min_size=1, max_size=4)


@given(VALUES, VALUES)
def test_chance_counts_the_ways_to_deal_the_values(a: list[int], b: list[int]) -> None:
    pool = sorted([*a, *b])
    rank = {value: (2 * pool.index(value) + pool.count(value) + 1) / 2 for value in pool}
    middle = len(a) * (len(pool) + 1) / 2
    apart = abs(sum(rank[value] for value in a) - middle)
    deals = list(itertools.combinations([*a, *b], len(a)))
    far = sum(abs(sum(rank[value] for value in deal) - middle) >= apart - 1e-9 for deal in deals)
    assert chance(a, b) == pytest.approx(far / math.comb(len(pool), len(a)))


@given(VALUES, VALUES)
def test_chance_does_not_depend_on_which_side_is_named_first(a: list[int], b: list[int]) -> None:
    assert chance(a, b) == pytest.approx(chance(b, a))


# --- the whole run


def test_a_faster_run_is_reported_with_seconds_share_and_io() -> None:
    it = sides([run(4.0)], [run(1.0)])
    assert (
        it.sentence
        == "B takes 1.00 s instead of 4.00 s: 3.00 s (75 %) less; I/O 0.75 s instead of 3.00 s."
    )
    assert it.saved == 3.0
    assert "single runs" in it.certainty
    assert "not known" in it.certainty


@pytest.mark.parametrize(
    ("compute", "io", "runs", "slowed"),
    [
        (1.3, 2.9, 1, True),  # a little more computation, and less I/O
        (1.3, 3.1, 1, False),
        (1.5, 3.0, 1, True),
        (1.5, 4.0, 1, False),  # I/O adds more than the computation
        (0.9, 3.0, 1, False),
        (1.5, 3.0, 3, False),  # the noise is known
    ],
)
def test_a_single_run_that_only_computes_longer_is_recognised(
    compute: float, io: float, runs: int, slowed: bool
) -> None:
    made = run(compute + io)
    after = replace(made, verdict=replace(made.verdict, critical=Split(compute, 0.0, 0.0, io)))
    assert sides([run(4.0)] * runs, [after] * runs).slowed_by_computation == slowed


def test_repetitions_are_medians_and_are_judged() -> None:
    it = sides([run(4.0), run(4.4), run(3.9)], [run(2.0), run(2.4), run(2.1)])
    assert (it.measures[0].a.median, it.measures[0].b.median) == (4.0, 2.1)
    assert it.measures[0].noise == "beyond"
    assert (
        it.certainty
        == "The difference in wall time is beyond the noise of 3 and 3 runs, which lie up to 0.50 s"
        " apart."
    )
    assert it.a.split.wall == 4.0


def test_a_difference_within_noise_is_none_that_counts() -> None:
    it = sides([run(4.0), run(4.4), run(2.0)], [run(2.1), run(2.4), run(4.1)])
    assert "no difference that counts" in it.sentence
    assert "within the noise" in it.certainty


def test_figures_that_a_log_does_not_know_are_left_out() -> None:
    known = run(system_writes=500, calls=9)
    assert "system_writes" in {row.key for row in sides([known], [known]).measures}
    assert "system_writes" not in {
        row.key for row in sides([known], [run(system_writes=-1)]).measures
    }


def test_a_failed_run_is_not_called_faster() -> None:
    it = sides([run(4.0)], [run(0.1, exit_status=3)])
    assert it.sentence == "B failed and may not have done all the work: 0.10 s instead of 4.00 s."
    assert any("exit status 3" in message for message in it.messages)


def test_system_calls_of_waited_for_children_and_before_exec_count_once() -> None:
    job = make_job(ranks=4, mpi=False)
    job.processes["pid"] = [
        10,
        10,
        11,
        12,
    ]  # a shell, its image after exec, its child, and a process of another shell
    job.processes["parent"] = [1, 1, 10, 2]
    job.processes["syscalls_write"] = [5, 105, 100, 7]
    assert analyze(job).job.system_writes == 112


def test_system_calls_are_not_known_unless_those_of_all_processes_are() -> None:
    job = make_job(ranks=2)
    job.processes["syscalls_write"] = [5, -1]
    assert analyze(job).job.system_writes == -1


def test_other_commands_and_rank_counts_are_reported() -> None:
    messages = sides([run()], [run(command="./other", ranks=4)]).messages
    assert [message.split(" differ")[0] for message in messages] == [
        "the commands",
        "the numbers of ranks",
    ]


# --- findings and files


def test_findings_are_gone_smaller_or_new() -> None:
    rich = analyses.rich(10)
    kept, *rest = rich.findings
    less = replace(rich, findings=(replace(kept, seconds=kept.seconds / 2),))
    changes = {row.rule: row.change for row in sides([rich], [less]).findings}
    assert changes[kept.rule] == "smaller"
    assert {changes[finding.rule] for finding in rest if finding.rule != kept.rule} == {"gone"}
    assert {row.change for row in sides([replace(rich, findings=())], [less]).findings} == {"new"}
    assert {row.change for row in sides([less], [less]).findings} == {"same"}


def test_files_are_the_same_by_their_path_below_the_directory_of_the_run() -> None:
    small = analyses.small()
    there = replace(
        small, files=(replace(small.files[0], path="/other/place/out.dat", write_seconds=1.0),)
    )
    a = run(source=small, directory="/home/ada")
    b = run(source=there, directory="/other/place")
    (row,) = sides([a], [b]).files
    assert row.path == "out.dat"
    assert row.seconds_a > row.seconds_b


# --- outputs


def output(path: str = "out.dat", digest: str = "1", written: bool = True) -> Output:
    return Output(path, 10, digest, written)


@pytest.mark.parametrize(
    ("a", "b", "state"),
    [
        ([[output()]], [[output()]], "identical"),
        ([[output()]], [[output(digest="2")]], "differs"),
        ([[output()]], [[]], "only in A"),
        ([[]], [[output()]], "only in B"),
        ([[output()]], [[output(written=False)]], "not written"),
        ([[output(written=False)]], [[output()]], "not written"),
        ([[output()], [output(digest="2")]], [[output()]], "varies"),
    ],
)
def test_outputs_are_compared_by_checksum(
    a: list[list[Output]], b: list[list[Output]], state: str
) -> None:
    it = sides([run()] * len(a), [run()] * len(b), (a, b))
    assert it.outputs is not None
    assert [row.state for row in it.outputs] == [state]
    assert it.outputs_differ == (state != "identical")


def test_files_that_no_run_has_written_are_no_outputs() -> None:
    assert (
        sides([run()], [run()], ([[output(written=False)]], [[output(written=False)]])).outputs
        == ()
    )


def test_outputs_that_one_side_did_not_record_are_not_compared() -> None:
    assert sides([run()], [run()], ([None], [[output()]])).outputs is None
    assert sides([run()], [run()]).outputs is None


# --- pages


def rich_comparison() -> Comparison:
    a = analyses.rich(10)
    files = tuple(
        replace(row, write_seconds=row.write_seconds / 3, writes=row.writes // 100)
        for row in a.files
    )
    settings = (("PARIO_MPIIO", "1"), ("PARIO_HINTS", "*:cb_buffer_size=16M"))
    job = replace(a.job, wall=60.0, settings=settings, system_writes=100)
    a = replace(a, job=replace(a.job, system_writes=1_000_000))
    verdict = replace(a.verdict, critical=Split(50.0, 4.0, 3.0, 3.0))
    b = replace(a, job=job, verdict=verdict, files=files, findings=a.findings[2:], messages=())
    recorded = [[output("good.h5"), output("bad.h5", digest=str(number))] for number in (1, 2)]
    return sides([a], [b], ([recorded[0]], [recorded[1]]))


def text(it: Comparison, width: int = 100, everything: bool = False) -> str:
    stream = io.StringIO()
    page.render(it, Console(file=stream, width=width), all=everything)
    return stream.getvalue()


def test_the_page_reads_as_the_golden_text() -> None:
    golden = Path(__file__).parent / "golden" / "comparison.txt"
    assert text(rich_comparison()) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_page_fits_a_screen(width: int) -> None:
    lines = text(rich_comparison(), width).splitlines()
    assert len(lines) <= 50
    notes = next(index for index, line in enumerate(lines) if line.startswith("Note"))
    assert [line for line in lines[:notes] if len(line) > width] == []


def test_names_from_a_log_cannot_steer_the_terminal() -> None:
    hostile = analyses.hostile()
    assert "\x1b" not in text(sides([hostile], [hostile]), everything=True)


def test_json_holds_everything() -> None:
    document = json.loads(report.render_comparison(rich_comparison()))
    assert document["format"] == "pario-comparison"
    assert document["measures"][0]["a"]["values"] == [184.2]
    assert document["outputs"][0]["state"] == "differs"


def test_every_field_is_documented() -> None:
    described = set(re.findall(r"`(\w+)`", DOCUMENT.read_text(encoding="utf-8")))
    classes = [
        item
        for item in vars(model).values()
        if isinstance(item, type) and is_dataclass(item) and item.__module__ == model.__name__
    ]
    assert {
        f"{item.__name__}.{field.name}"
        for item in classes
        for field in fields(item)
        if field.name not in described
    } == set()


@pytest.mark.system
@pytest.mark.parametrize("hostile", [False, True])
def test_html_is_one_file_and_escapes_what_it_shows(hostile: bool) -> None:
    name = '<script>alert("x")</script>'
    it = replace(rich_comparison(), messages=(name,)) if hostile else rich_comparison()
    written = html.render(it)
    assert name not in written
    assert not re.search(r'(src|href)="(?!#)', written)
    assert len(written) < 1_000_000
