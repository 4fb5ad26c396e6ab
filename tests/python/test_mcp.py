"""pario mcp: a scripted client repairs a bad program by tools alone."""

import asyncio
import builtins
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pario.cli import main, mcp_tools
from tests.support.commands import run_command

PARIO = Path(sys.executable).parent / "pario"
BAD = """
import sys, time
with open(sys.argv[1], "w") as log:
    for line in range(150_000):
        print(f"line {line}", file=log, flush=True)
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


def test_findings_and_settings_are_explained_by_name() -> None:
    finding = mcp_tools.explain("small-writes")
    assert finding["id"] == "explain.finding"
    assert "**Repair:**" in finding["text"]
    assert mcp_tools.explain("cb_nodes")["id"] == "explain.setting"
    assert mcp_tools.explain("nothing")["id"] == "explain.unknown"


def test_a_missing_run_is_an_error_with_its_text(tmp_path: Path) -> None:
    answer = mcp_tools.report("run.pario", str(tmp_path))
    assert answer["id"] == "error"
    assert "no such file" in answer["text"]


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


async def follow(step: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Calls a tool of the server, then the next one that each answer names, four at most."""
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(command=sys.executable, args=["-m", "pario", "mcp"])
    answers: list[dict[str, Any]] = []
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == {"run", "report", "advise", "fix", "compare", "explain"}
        while step and len(answers) < 4:
            arguments = dict(step["arguments"])
            if step["tool"] == "advise":
                arguments["measure_seconds"] = 0
            result = await session.call_tool(step["tool"], arguments)
            answers.append(json.loads(result.content[0].text))
            step = answers[-1]["next"]
    return answers
