"""pario mcp: a scripted client repairs bad programs by tools alone."""

import asyncio
import builtins
import inspect
import json
import shlex
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from pario.cli import COMMANDS, main, mcp_tools
from tests.python.darshanlog import DarshanLog, posix_record
from tests.support.commands import run_command

PARIO = Path(sys.executable).parent / "pario"
BAD = """
import sys, time
with open(sys.argv[1], "w") as log:
    for line in range(150_000):
        print(f"line {line}", file=log, flush=True)
"""
POLL = """
import os
for step in range(400_000):
    if os.path.exists('stop'):
        break
"""


def test_without_the_package_the_message_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.startswith("mcp"):
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["mcp"]) == 2
    assert "pip install 'mcp>=2'" in capsys.readouterr().err


def check(answer: mcp_tools.Answer) -> mcp_tools.Answer:
    """Asserts that an answer has an id of the list, and that its next step can be called."""
    assert answer["id"] in mcp_tools.ANSWERS
    assert answer["text"]
    if (step := answer["next"]) is None:
        assert answer["id"].startswith("explain.")
        return answer
    tools = {tool.__name__: tool for tool in mcp_tools.TOOLS}
    inspect.signature(tools[step["tool"]]).bind(**step["arguments"])
    words = shlex.split(step["command"])
    assert step["tool"] == "explain" or (words[0] == "pario" and words[1] in COMMANDS)
    return answer


def test_the_page_lists_the_ids_of_all_answers_with_their_meanings() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/agents.md").read_text()
    rows = [f"| `{id}` | {meaning} |" for id, meaning in mcp_tools.ANSWERS.items()]
    assert "\n".join(rows) in page


def test_findings_and_settings_are_explained_by_name() -> None:
    finding = check(mcp_tools.explain("small-writes"))
    assert finding["id"] == "explain.finding"
    assert "**Repair:**" in finding["text"]
    assert check(mcp_tools.explain("cb_nodes"))["id"] == "explain.setting"


def test_an_unknown_name_leads_to_the_most_similar_one() -> None:
    answer = check(mcp_tools.explain("small-write"))
    assert answer["id"] == "explain.unknown"
    assert answer["next"] and answer["next"]["arguments"] == {"name": "small-writes"}


@pytest.mark.parametrize("id", mcp_tools.ANSWERS)
def test_each_answer_is_explained_by_its_id(id: str) -> None:
    assert check(mcp_tools.explain(id))["text"] == mcp_tools.ANSWERS[id]


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("report", {"run": "run.pario"}, "no such file"),
        ("advise", {"run": "run.pario"}, "no such file"),
        ("compare", {"before": "a.pario", "after": "b.pario"}, "no such file"),
        ("run", {"command": []}, "expected: a program"),
        ("fix", {"command": []}, "expected: a program"),
        ("fix", {"command": ""}, "expected: a program"),
        ("fix", {"command": ["true"], "allow": "handels"}, "handles"),
        ("advise", {"run": "run.pario", "allow": "handles,everything"}, "all, "),
        ("run", {"command": ["true"], "directory": "absent"}, "existing directory"),
        ("report", {"run": "run.pario", "directory": "absent"}, "existing directory"),
    ],
)
@pytest.mark.system
def test_a_wrong_argument_is_an_error_that_names_it(
    tool: str, arguments: dict[str, Any], named: str, tmp_path: Path
) -> None:
    place = tmp_path / arguments.get("directory", "")
    answer = check(getattr(mcp_tools, tool)(**arguments | {"directory": str(place)}))
    assert answer["id"] == "error"
    assert named in answer["text"]


@pytest.mark.parametrize("tool", ["run", "fix"])
def test_a_command_that_does_not_exist_is_not_recorded(tool: str, tmp_path: Path) -> None:
    answer = check(getattr(mcp_tools, tool)(["./absent"], str(tmp_path)))
    assert answer["id"] == f"{tool}.not-recorded"
    assert "absent" in answer["text"]


@pytest.mark.parametrize("tool", ["run", "fix"])
@pytest.mark.system
def test_a_program_that_fails_is_named_with_its_status(tool: str, tmp_path: Path) -> None:
    answer = check(getattr(mcp_tools, tool)(["ls", "absent"], str(tmp_path)))
    assert answer["id"] == f"{tool}.program-failed"
    assert answer["facts"]["status"] == 2


@pytest.mark.system
def test_a_program_without_findings_needs_no_repair(tmp_path: Path) -> None:
    answers = [check(tool(["true"], str(tmp_path))) for tool in (mcp_tools.run, mcp_tools.fix)]
    assert [answer["id"] for answer in answers] == ["run.no-findings", "fix.no-settings"]
    run = answers[1]["facts"]["run"]
    assert check(mcp_tools.report(run, str(tmp_path)))["id"] == "report.no-findings"
    assert check(mcp_tools.advise(run, str(tmp_path), 0))["id"] == "advise.no-settings"


@pytest.mark.system
def test_a_client_repairs_a_program_by_the_next_steps(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="mcp 2 is not installed")
    (tmp_path / "bad.py").write_text(BAD)
    command = [sys.executable, "bad.py", str(tmp_path / "log.txt")]
    first = {"tool": "run", "arguments": {"command": command, "directory": str(tmp_path)}}
    answers = asyncio.run(follow(first))
    ids = [answer["id"] for answer in answers]
    assert ids[:3] == ["run.findings", "advise.settings", "run.with-settings"]
    assert ids[3].startswith("compare.")
    assert "bad.py:5" in answers[0]["text"]
    [finding] = [one for one in answers[0]["facts"]["findings"] if one["rule"] == "small-writes"]
    assert finding["by_settings"]
    report = run_command([PARIO, "report", tmp_path / "run-2.pario", "--json"], status=0).stdout
    [buffered] = json.loads(report)["streams"]
    assert buffered["writes"] == 150_000
    assert buffered["system_writes"] < 100
    assert (tmp_path / "log.txt").read_text().count("\n") == 150_000


REOPEN = """
import os
for step in range(40_000):
    table = os.open("table.csv", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    if step % 10 == 0:  # opens take most of the time by far
        os.write(table, f"{step},{step * step}\\n".encode())
    os.close(table)
"""


@pytest.mark.system
def test_a_client_allows_the_risky_setting_that_a_finding_names(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="mcp 2 is not installed")
    (tmp_path / "reopen.py").write_text(REOPEN)
    place = {"directory": str(tmp_path)}
    command = shlex.join([sys.executable, "reopen.py"])
    first = {"tool": "run", "arguments": {"command": command, **place}}
    [before] = asyncio.run(follow(first, 1))
    [finding] = [one for one in before["facts"]["findings"] if one["rule"] == "open-close-loop"]
    assert any("--allow handles" in text for text in finding["repairs"])
    arguments = {"run": before["facts"]["run"], "allow": "handles", **place}
    advised, after, compared = asyncio.run(follow({"tool": "advise", "arguments": arguments}, 3))
    assert advised["id"] == "advise.settings"
    assert "\nstreams.handles = " in advised["facts"]["text"]
    assert after["id"] == "run.with-settings"
    assert compared["id"].startswith("compare.")  # by the load of the machine
    assert (tmp_path / "table.csv").read_text().count("\n") == 8_000


@pytest.mark.system
@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [("run", {"command": 7}, "command"), ("report", {}, "run"), ("repair", {}, "repair")],
)
def test_a_call_that_fits_no_tool_is_answered_with_an_id(
    tool: str, arguments: dict[str, Any], named: str
) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="mcp 2 is not installed")
    answer, explained = asyncio.run(follow({"tool": tool, "arguments": arguments}))
    assert answer["id"] == "error"
    assert answer["text"].startswith(f"tool {tool}: ") and named in answer["text"]
    assert explained["id"] == "explain.answer"


@pytest.mark.exhaustive
def test_a_client_repairs_a_program_by_fix_and_uses_its_settings(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="mcp 2 is not installed")
    (tmp_path / "bad.py").write_text(BAD)
    command = [sys.executable, "bad.py", str(tmp_path / "log.txt")]
    first = {"tool": "fix", "arguments": {"command": command, "directory": str(tmp_path)}}
    fixed, used, compared, _ = asyncio.run(follow(first))
    assert fixed["id"] in ("fix.faster", "fix.not-faster")  # by the load of the machine
    assert "streams" in Path(fixed["facts"]["settings"]).read_text()
    if fixed["id"] == "fix.faster":
        assert fixed["facts"]["after_seconds"] < fixed["facts"]["before_seconds"]
        assert (used["id"], compared["id"].split(".")[0]) == ("run.with-settings", "compare")
    assert (tmp_path / "log.txt").read_text().count("\n") == 150_000


@pytest.mark.system
def test_a_client_changes_a_program_that_no_setting_repairs(tmp_path: Path) -> None:
    """The client replaces the line that the finding names, as its explanation says."""
    pytest.importorskip("mcp.server.mcpserver", reason="mcp 2 is not installed")
    program = tmp_path / "poll.py"
    program.write_text(POLL)
    command = [sys.executable, "poll.py"]
    first = {"tool": "run", "arguments": {"command": command, "directory": str(tmp_path)}}
    [before] = asyncio.run(follow(first, 1))
    assert before["id"] == "run.findings"
    [finding] = [one for one in before["facts"]["findings"] if one["rule"] == "stat-storm"]
    place = {"run": before["facts"]["run"], "directory": str(tmp_path)}
    explain = {"tool": "explain", "arguments": {"name": "stat-storm", **place}}
    [explained] = asyncio.run(follow(explain, 1))
    assert explained["id"] == "explain.finding"
    line = int(finding["place"].split(":")[1].split()[0])
    lines = POLL.splitlines()
    assert "exists" in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace("os.path.exists('stop')", "False")
    program.write_text("\n".join(lines))
    [after] = asyncio.run(follow(explained["next"], 1))
    assert "stat-storm" not in [one["rule"] for one in after["facts"]["findings"]]
    runs = {"before": before["facts"]["run"], "after": after["facts"]["run"]}
    compare = {"tool": "compare", "arguments": runs | {"directory": str(tmp_path)}}
    [compared] = asyncio.run(follow(compare, 1))
    assert compared["id"] in ("compare.faster", "compare.not-faster")  # by the load of the machine


@pytest.mark.system
@pytest.mark.parametrize(("walls", "id"), [((9, 4), "faster"), ((4, 9), "not-faster")])
def test_a_comparison_names_the_faster_run_and_leads_to_the_report_of_the_second(
    tmp_path: Path, walls: tuple[int, int], id: str
) -> None:
    for name, seconds in zip("ab", walls, strict=True):
        log = DarshanLog(seconds=seconds, modules={"POSIX": posix_record(1, 0, {0: 1}, {2: 1.0})})
        log.write(tmp_path / f"{name}.darshan")
    answer = check(mcp_tools.compare("a.darshan", "b.darshan", str(tmp_path)))
    assert answer["id"] == f"compare.{id}"
    seconds = (answer["facts"]["before_seconds"], answer["facts"]["after_seconds"])
    assert seconds == tuple(wall + 1.0 for wall in walls)
    assert answer["next"] and answer["next"]["tool"] == "report"
    assert answer["next"]["arguments"]["run"] == "b.darshan"


@pytest.mark.parametrize("by_settings", [True, False])
def test_a_report_leads_to_settings_or_to_the_explanation_of_its_first_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by_settings: bool
) -> None:
    settings = [{"risky": not by_settings}]
    found = [
        {"rule": rule, "title": rule, "seconds": 1.0, "sites": [], "fixes": [], "settings": given}
        for rule, given in (("stat-storm", []), ("small-writes", settings))
    ]
    about = {"job": {"wall": 9.0}, "verdict": {"sentence": "I/O-bound."}, "findings": found}
    done = CompletedProcess([], 0, json.dumps(about), "")
    monkeypatch.setattr(mcp_tools, "_pario", lambda *_: done)
    step = check(mcp_tools.report("run.pario", str(tmp_path)))["next"]
    assert step
    assert step["tool"] == ("advise" if by_settings else "explain")
    assert by_settings or step["arguments"]["name"] == "stat-storm"


async def follow(step: dict[str, Any] | None, most: int = 4) -> list[dict[str, Any]]:
    """Calls a tool of the server, then the next one that each answer names, a few at most."""
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(command=sys.executable, args=["-m", "pario", "mcp"])
    answers: list[dict[str, Any]] = []
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == {"run", "report", "advise", "fix", "compare", "explain"}
        while step and len(answers) < most:
            arguments = dict(step["arguments"])
            if step["tool"] == "advise":
                arguments["measure_seconds"] = 0
            result = await session.call_tool(step["tool"], arguments)
            answers.append(check(json.loads(result.content[0].text)))
            step = answers[-1]["next"]
    return answers
