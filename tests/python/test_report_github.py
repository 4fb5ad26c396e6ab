"""The report for GitHub Actions: workflow commands and the summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pario.cli import main
from pario.see.analyze.model import Analysis, CallSite, OverlappingWrites, WriteRange
from pario.see.report import github
from tests.python.support import analyses


def site(file: str, line: int = 118) -> CallSite:
    return CallSite(
        place=f"{Path(file).name}:{line} in write_halo",
        file=file,
        line=line,
        calls=100,
        share=0.9,
        seconds=2.0,
        bytes=1000,
    )


def with_finding(*sites: CallSite, title: str = "100 writes", cause: str = "Slow.") -> Analysis:
    analysis = analyses.small()
    finding = replace(analyses.rich(10).findings[0], title=title, cause=cause, sites=sites)
    return replace(analysis, findings=(finding,))


def warnings(analysis: Analysis, root: str = "/repo") -> list[str]:
    lines = list(github.commands(analysis, root))
    assert lines[0].startswith("::notice title=pario::"), lines
    return lines[1:]


def test_finding_is_a_warning_at_its_line() -> None:
    (line,) = warnings(with_finding(site("/repo/src/solver.c")))
    assert line.startswith("::warning file=src/solver.c,line=118,title=100 writes::Costs "), line
    assert "(sure). Slow.%0A" in line


def test_first_line_inside_the_repository_is_chosen() -> None:
    sites = site("/usr/include/lib.h", 7), site("/repo/a.c", 9)
    assert warnings(with_finding(*sites))[0].startswith("::warning file=a.c,line=9,")
    assert warnings(with_finding(sites[0]))[0].startswith(
        "::warning file=/usr/include/lib.h,line=7"
    )
    relative = site("src/b.c", 3)
    assert warnings(with_finding(sites[0], relative))[0].startswith("::warning file=src/b.c,line=3")


def test_directory_beside_the_repository_is_outside() -> None:
    (line,) = warnings(with_finding(site("/repository/a.c")))
    assert line.startswith("::warning file=/repository/a.c,")


@pytest.mark.parametrize("sites", [(), (site("", 0),), (site("/repo/a.c", 0),)])
def test_finding_without_a_line_has_no_annotation(sites: tuple[CallSite, ...]) -> None:
    assert warnings(with_finding(*sites)) == []


def test_data_and_properties_are_escaped() -> None:
    (line,) = warnings(
        with_finding(site("/repo/a,b:c%.c"), title="50 %, twice: x", cause="50 % ::error::y, z")
    )
    assert "file=a%2Cb%3Ac%25.c,line=118,title=50 %25%2C twice%3A x::" in line
    assert "50 %25 ::error::y, z" in line


def test_hostile_names_make_no_command_of_their_own() -> None:
    hostile = "x\n::error::y\r\n::warning::z"
    analysis = with_finding(site(f"/repo/{hostile}.c"), title=hostile, cause=hostile)
    lines = [*github.commands(analysis, "/repo")]
    assert len("\n".join(lines).splitlines()) == len(lines) == 2
    assert len(github.summary(analysis).splitlines()) == len(
        github.summary(with_finding(site("/repo/a.c"))).splitlines()
    )


def test_overlapping_writes_are_errors() -> None:
    overlap = OverlappingWrites(
        path="/data/a,b",
        bytes=10,
        ranks=(0, 1),
        processes=(7, 8),
        ranges=(WriteRange(0, 10, ("rank 0", "rank 1"), ("pwrite", "write"), (1.0, 2.0)),),
        range_total=1,
    )
    (line,) = warnings(replace(analyses.small(), findings=(), overlaps=(overlap,)))
    assert line.startswith("::error title=Possible corruption%3A writes overlap without an order::")
    assert "ranks 0-1 write the same 10 B" in line


def test_summary_is_a_table_in_markdown() -> None:
    text = github.summary(with_finding(site("/repo/a_b.c"), title="a|b *c* <d>"))
    lines = text.splitlines()
    assert lines[0].startswith("## pario: ") and lines[2].startswith("**") and text.endswith("\n")
    assert "| costs | of the run | finding | at | repair |" in lines
    assert r"a\|b \*c\* \<d\> (sure) | a\_b.c:118 in write\_halo |" in lines[-1], lines[-1]


def test_summary_without_findings_says_so() -> None:
    text = github.summary(replace(analyses.small(), findings=()))
    assert "| costs |" not in text and "No findings" in text


def test_command_prints_commands_and_appends_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.python.plog import ProcessLog

    log = ProcessLog(records=[{"path": "/a", "writes": 1}]).write(tmp_path)
    before = tmp_path / "summary.md"
    before.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(before))
    assert main(["report", str(log), "--format", "github"]) == 0
    assert capsys.readouterr().out.startswith("::notice title=pario::")
    assert before.read_text(encoding="utf-8").startswith("before\n## pario: ")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert main(["report", str(log), "--format", "github", "--fail-above", "0.1s"]) in (0, 4)


def test_two_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path), "--json", "--format", "github"])
    assert ended.value.code == 2
