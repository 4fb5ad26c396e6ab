"""Settings files made from findings (``pario advise``)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pario.cli import main
from pario.cli.advise import describe, parse_allowed
from pario.errors import ParioError
from pario.see.analyze.advise import advise, mark_served, patterns, render, without_settings
from pario.see.analyze.model import Analysis, FileSetting, Finding, Fix
from pario.settings import Line, Proposal, load, variables
from tests.python.support import analyses
from tests.support.commands import run_command

MPIIO = FileSetting("run", "mpiio", "yes", False, "all calls take another way")
KEPT = FileSetting("mpiio", "pario_write_behind", "16M", False, "writes are kept back")
SMALL = FileSetting("streams", "size", "8M", False, "writes are collected")
FLUSH = FileSetting("streams", "ignoreflush", "yes", True, "flushes write nothing")


def run(*findings: Finding) -> Analysis:
    return replace(analyses.small(), findings=findings)


def finding(
    *settings: FileSetting,
    seconds: float = 1.0,
    files: tuple[str, ...] = ("/out/a.dat",),
    title: str = "a cause",
) -> Finding:
    return replace(
        analyses.small().findings[0],
        settings=settings,
        seconds=seconds,
        files=files,
        file_count=len(files),
        title=title,
    )


def lines(analysis: Analysis, *allowed: str) -> list[str]:
    """Returns the lines of the settings file without its comments."""
    text = render(analysis, advise(analysis, allowed))
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_a_setting_stands_below_the_evidence_and_its_seconds() -> None:
    analysis = run(finding(SMALL, title="2,000,000 writes of 512 B to a.dat"))
    text = render(analysis, advise(analysis))
    assert "# 1.00 s (25 %), sure: 2,000,000 writes of 512 B to a.dat (" in text
    assert "Writes are collected." in text and "Risky" not in text
    assert lines(analysis) == ["[[file]]", 'match = "/out/a.dat"', 'streams.size = "8M"']


def test_settings_of_the_whole_run_come_first_and_once() -> None:
    analysis = run(finding(MPIIO, KEPT, files=("/a",)), finding(MPIIO, KEPT, files=("/b",)))
    assert lines(analysis)[:2] == ["[run]", "mpiio = true"]
    assert lines(analysis).count("mpiio = true") == 1


def test_findings_about_the_same_files_share_a_section_and_the_costlier_decides() -> None:
    other = replace(SMALL, value="1M")
    assert lines(run(finding(SMALL, seconds=2.0), finding(other, KEPT))) == [
        "[[file]]",
        'match = "/out/a.dat"',
        'streams.size = "8M"',
        'mpiio.pario_write_behind = "16M"',
    ]


def test_risky_settings_are_comments_unless_they_are_allowed() -> None:
    analysis = run(finding(SMALL, FLUSH))
    assert "streams.ignoreflush = true" not in lines(analysis)
    text = render(analysis, advise(analysis))
    assert "# streams.ignoreflush = true" in text
    risk = "Risky: --allow ignoreflush if that does not matter; it is then measured."
    assert risk in text.replace("\n# ", " ")
    assert "streams.ignoreflush = true" in lines(analysis, "ignoreflush")
    assert "streams.ignoreflush = true" in lines(analysis, "all")
    assert "streams.ignoreflush = true" not in lines(analysis, "another")


def test_a_finding_with_risky_settings_alone_is_not_applied() -> None:
    advice = advise(run(finding(FLUSH)))
    assert (advice.acts, len(advice.held_back)) == (False, 1)
    assert lines(run(finding(FLUSH))) == []
    assert advise(run(finding(FLUSH)), ["ignoreflush"]).acts


def test_a_finding_without_settings_names_the_change_of_the_program_and_the_reason() -> None:
    bad = replace(
        finding(title="one rank does it all"),
        why_not="only it has the data",
        fixes=(Fix("code", "Let all write."),),
    )
    text = render(run(bad), advise(run(bad)))
    assert (
        "1.00 s (25 %): one rank does it all. Needs a change of the program: Let all write."
        in text.replace("\n# ", " ")
    )
    assert "No setting does it: only it has the data." in text.replace("\n# ", " ")
    assert "There is nothing to set." in text


def test_causes_outside_the_program_ask_for_no_change_of_it() -> None:
    bad = replace(finding(title="a disk is slow"), fixes=(Fix("code", "Tell the administrators."),))
    text = render(run(bad), advise(run(bad)))
    assert "a disk is slow. No setting repairs it. Tell the administrators." in text.replace(
        "\n# ", " "
    )
    assert "change of the program" not in text


def test_rejected_settings_that_replays_choose_again_are_named_as_such() -> None:
    whole = run(replace(finding(MPIIO, KEPT), why_not=""), finding(title="another"))
    rejected = {("run", "mpiio", "yes"), ("mpiio", "pario_write_behind", "16M")}
    reduced, names = without_settings(whole, rejected)
    assert names == ("run.mpiio = yes", "mpiio.pario_write_behind = 16M")
    chosen = Proposal("", (Line("run", "mpiio", "yes", True),), ())
    measured = replace(advise(reduced), proposals=(chosen,))
    advice, again = mark_served(whole, measured, rejected)
    assert again == ("run.mpiio = yes",)
    head, _, served, *others = describe(advice)
    assert head == "pario: the settings were chosen by replays; they serve 1 of 2 findings"
    assert served.strip().startswith("The chosen settings serve these calls, too: with all")
    assert "was not faster" not in " ".join(others[1:])


def test_every_finding_is_listed_with_its_repair() -> None:
    rank = replace(
        finding(title="one rank does it all"),
        why_not="only it has the data",
        fixes=(Fix("code", "Let all write."),),
    )
    found = run(finding(SMALL, title="small"), finding(FLUSH, title="flushes"), rank)
    assert list(describe(advise(found))) == [
        "pario: settings for 1 of 3 findings, worth 1.00 s (estimate)",
        "  1.00 s (estimate)  small",
        "      Writes are collected.",
        "  at most 1.00 s (estimate)  flushes",
        "      Only with --allow ignoreflush, which measures it: flushes write nothing.",
        "  1.00 s (estimate)  one rank does it all",
        "      Needs a change of the program: Let all write.",
        "      No setting does it: only it has the data.",
    ]
    assert "      Flushes write nothing." in describe(advise(found, ["ignoreflush"]))


@pytest.mark.parametrize(
    ("paths", "made"),
    [
        (("/out/a1.dat",), ("/out/a1.dat",)),
        (("/out/s3d-1.h5", "/out/s3d-2.h5", "/out/t1.h5"), ("/out/s3d-*.h5", "/out/t1.h5")),
        (("/run7/a-01.dat", "/run7/a-02.dat"), ("/run7/a-*.dat",)),
        (("/out/a.dat", "/out/b.dat"), ("/out/a.dat", "/out/b.dat")),
        (("/out/x,y:z.dat",), ("/out/x?y?z.dat",)),
        (("/out/*",), ("/out/*",)),
        (("/out/*", "/out/1"), ("/out/*", "/out/1")),
        (("/tmp/tmpab12_x9z/a.dat",), ("/tmp/tmp*/a.dat",)),
        (("/tmp/tmpab12_x9z/a1", "/tmp/tmpab12_x9z/a2"), ("/tmp/tmp*/a*",)),
        (("/tmp/tmpab12_x9z.dat", "/tmp/tmpcd34x_yz.dat"), ("/tmp/tmp*.dat",)),
        (("/tmp/tmp.aB3dE5gH7j/a",), ("/tmp/tmp.*/a",)),
        (("/out/tmp_results/a", "/out/tmpfiles/b"), ("/out/tmp_results/a", "/out/tmpfiles/b")),
        (("/out/a\\xff\\xfe1", "/out/b"), ("/out/a*1", "/out/b")),
    ],
)
def test_patterns_are_exact_for_one_file_and_join_numbered_ones(
    paths: tuple[str, ...], made: tuple[str, ...]
) -> None:
    assert patterns(paths, len(paths)) == made


@pytest.mark.parametrize(
    ("said", "keys", "words"),
    [
        ("", (), []),
        ("all", ("all",), []),
        ("ignoreflush", ("ignoreflush",), []),
        ("./app", ("all",), ["./app"]),
    ],
)
def test_allow_is_followed_by_keys_or_the_next_word_of_the_command(
    said: str, keys: tuple[str, ...], words: list[str]
) -> None:
    assert parse_allowed(said) == (keys, words)
    assert parse_allowed(said, ["./app", "x"]) == (keys, words)


@pytest.mark.parametrize("said", ["sync", "nonsense", "all,size"])
def test_another_word_before_the_command_is_an_error(said: str) -> None:
    expected = rf"--allow: '{said}'; expected all, or some of ignoreflush, handles, lazyclose"
    with pytest.raises(ParioError, match=expected):
        parse_allowed(said, ["--", "true"])


def test_more_patterns_than_fit_into_their_variable_are_comments(tmp_path: Path) -> None:
    analysis = run(
        *(
            finding(SMALL, files=(f"/{'x' * 100}/{letter}.dat",), title=letter)
            for letter in "abcdefghijklmnop"
        )
    )
    path = tmp_path / "pario.toml"
    path.write_text(render(analysis, advise(analysis)), encoding="utf-8")
    assert 6 <= len(load(path).sections) <= 8
    assert len(variables(load(path), {})["PARIO_STREAMS"]) <= 1023
    assert path.read_text().count("no space for more patterns") == 16 - len(load(path).sections)


def test_a_pattern_does_not_mean_files_that_several_ranks_write() -> None:
    assert patterns(("/out/a1", "/out/a2"), 2, ["/out/b3"]) == ("/out/a*",)
    assert patterns(("/out/a1", "/out/a2"), 2, ["/out/a3"]) == ("/out/a1", "/out/a2")


def test_written_settings_are_ordered_for_any_names(tmp_path: Path) -> None:
    names = tuple(row.path for row in analyses.hostile().files)
    analysis = run(*(finding(SMALL, files=(name,), title=name) for name in names))
    path = tmp_path / "pario.toml"
    path.write_text(render(analysis, advise(analysis)), encoding="utf-8")
    assert len(load(path).sections) == len({section.match for section in load(path).sections}) > 0


@pytest.mark.system
def test_the_command_writes_the_file_and_prints_its_use(tmp_path: Path) -> None:
    pario = [sys.executable, "-m", "pario"]
    run_command([*pario, "run", "--no-report", "-o", "log", "--", "true"], cwd=tmp_path, status=0)
    done = run_command([*pario, "advise", "log", "-o", "pario.toml"], cwd=tmp_path)
    assert done.returncode == 0
    assert "no findings" in done.stderr
    assert load(tmp_path / "pario.toml").sections == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "nowhere"), "nowhere is no directory; expected one on the file system to test"),
        (("-o", "nowhere/pario.toml"), "cannot write nowhere/pario.toml: expected the name of a"),
        (("-o", "."), "cannot write .: expected the name of a file"),
    ],
)
def test_wrong_places_are_refused_before_the_logs_are_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["advise", "missing.pario", *words]) == 2
    assert f"pario advise: {said}" in capsys.readouterr().err
