"""The tools of ``pario mcp``. Each runs a command of pario in a process of its own, because the
server's streams belong to the protocol, and answers with an :class:`Answer`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from pario import wording
from pario.see.launch.directory import find_free_name

_FINDINGS = 5  # of an answer
_OUTPUT = 2000  # characters of a program's output


class Step(TypedDict):
    """A tool with its arguments, and the same as a command line."""

    tool: str
    arguments: dict[str, Any]
    command: str


class Answer(TypedDict):
    """The answer of a tool: a stable id, a text for people, facts for programs, the next step."""

    id: str
    text: str
    facts: dict[str, Any]
    next: Step | None


def run(command: list[str], directory: str = ".", settings: str = "") -> Answer:
    """Run a program under pario's tracer and summarise the report of its I/O.

    `command` is the program with its arguments, `directory` its working directory, `settings` the
    path of a pario.toml to apply. The answer names the directory of the run, the verdict and the
    findings with their lines.
    """
    place = _new_run(directory)
    chosen = ["--with", settings] if settings else []
    done = _pario(directory, "run", "--no-report", "-o", place, *chosen, "--", *command)
    output = (done.stdout + done.stderr)[-_OUTPUT:]
    if not any(Path(directory, place).glob("*.plog")):
        return _answer(
            "run.not-recorded", output or "nothing was recorded", {"status": done.returncode}
        )
    answer = report(place, directory)
    facts = {"run": place, "status": done.returncode, "output": output, **answer["facts"]}
    if done.returncode:
        text = f"The program ended with status {done.returncode}. {answer['text']}"
        return _answer("run.program-failed", text, facts, _step("explain", name="exit-status"))
    if settings:
        before = _run_before(directory, place)
        step = _step("compare", before=before, after=place, directory=directory)
        return _answer("run.with-settings", answer["text"], facts, step)
    return _answer(answer["id"].replace("report", "run"), answer["text"], facts, answer["next"])


def report(run: str, directory: str = ".") -> Answer:
    """Summarise a recorded run: the verdict, and the findings with seconds, line and repairs."""
    done = _pario(directory, "report", run, "--json")
    if done.returncode:
        return _describe_error(done)
    analysis = json.loads(done.stdout)
    findings = [_finding(one) for one in analysis["findings"][:_FINDINGS]]
    facts = {"wall_seconds": analysis["job"]["wall"], "findings": findings,
             "verdict": analysis["verdict"]["sentence"]}  # fmt: skip
    lines = [analysis["verdict"]["sentence"]]
    lines += [
        f"{wording.seconds(one['seconds'])} {one['title']}"
        + (f" at {one['place']}" if one["place"] else "")
        for one in findings
    ]
    if not findings:
        return _answer("report.no-findings", lines[0], facts)
    by_settings = any(one["by_settings"] for one in findings)
    step = (
        _step("advise", run=run, directory=directory)
        if by_settings
        else _step("explain", name=findings[0]["rule"])
    )
    return _answer("report.findings", "\n".join(lines), facts, step)


def advise(run: str, directory: str = ".", measure_seconds: float = 30.0) -> Answer:
    """Write settings that repair the findings of a recorded run to pario.toml in `directory`.

    Replays of the recorded calls measure the settings first, for at most `measure_seconds`; 0
    writes them by their estimates.
    """
    words = [run, "-o", "pario.toml", "--measure", f"{measure_seconds:g}"]
    done = _pario(directory, "advise", *words)
    path = Path(directory, "pario.toml")
    if done.returncode or not path.exists():
        return _describe_error(done)
    text = path.read_text(encoding="utf-8")
    active = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    facts = {"settings": str(path.absolute()), "text": text}
    if not active:
        return _answer("advise.no-settings", done.stderr.strip(), facts)
    command = _command_of(directory, run)
    step = _step("run", command=command, directory=directory, settings="pario.toml")
    return _answer("advise.settings", done.stderr.strip(), facts, step)


def fix(command: list[str], directory: str = ".") -> Answer:
    """Run a program, find settings that repair its I/O, run it with and without them, and report
    the gain. Takes at least three times as long as the program."""
    place = _new_run(directory)
    done = _pario(directory, "run", "--fix", "-o", place, "--", *command)
    settings = next(Path(directory, place).glob("**/pario.toml"), None)
    facts = {"run": place, "status": done.returncode,
             "settings": str(settings.absolute()) if settings else ""}  # fmt: skip
    if settings is None:
        return _answer("fix.no-settings", done.stderr.strip(), facts)
    step = _step("run", command=command, directory=directory, settings=str(settings.absolute()))
    return _answer("fix.done", done.stderr.strip(), facts, step)


def compare(before: str, after: str, directory: str = ".") -> Answer:
    """Compare two recorded runs: the gain, and whether it is more than noise."""
    done = _pario(directory, "compare", before, after, "--json")
    if done.returncode:
        return _describe_error(done)
    comparison = json.loads(done.stdout)
    seconds = [sum(v for v in comparison[side]["split"].values() if not isinstance(v, bool))
               for side in ("a", "b")]  # fmt: skip
    text = f"{comparison['sentence']} {comparison['certainty']}"
    facts = {"before_seconds": seconds[0], "after_seconds": seconds[1]}
    faster = "compare.faster" if seconds[1] < seconds[0] else "compare.not-faster"
    return _answer(faster, text, facts, _step("report", run=after, directory=directory))


def explain(name: str) -> Answer:
    """Explain a finding (by its rule, such as small-writes), a setting or a hint."""
    from pario.see.analyze.rules import RULES
    from pario.see.analyze.rules.document import describe_rule
    from pario.settings import keys

    for rule in RULES:
        if rule.name == name:
            return _answer("explain.finding", describe_rule(rule), {"rule": name})
    for key in keys():
        if name in (key.name, *key.aliases):
            text = f"[{key.table}] {key.name}: {key.meaning} ({key.values}; default {key.default})"
            return _answer("explain.setting", text, {"key": key.name, "table": key.table})
    known = ", ".join(rule.name for rule in RULES)
    return _answer("explain.unknown", f"no finding or setting is called {name}; findings: {known}")


TOOLS: tuple[Callable[..., Answer], ...] = (run, report, advise, fix, compare, explain)


def _finding(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "rule": one["rule"],
        "title": one["title"],
        "seconds": one["seconds"],
        "place": one["sites"][0]["place"] if one["sites"] else "",
        "repairs": [fix["text"] for fix in one["fixes"]],
        "by_settings": any(not setting["risky"] for setting in one["settings"]),
    }


def _answer(
    id: str, text: str, facts: dict[str, Any] | None = None, next: Step | None = None
) -> Answer:
    return {"id": id, "text": text, "facts": facts or {}, "next": next}


def _describe_error(done: subprocess.CompletedProcess[str]) -> Answer:
    return _answer("error", done.stderr.strip() or done.stdout.strip(), {"status": done.returncode})


def _step(tool: str, **arguments: Any) -> Step:
    words = " ".join(_words(value) for value in arguments.values())
    return {"tool": tool, "arguments": arguments, "command": f"{tool} {words}"}


def _words(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def _pario(directory: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pario", *words],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _new_run(directory: str) -> str:
    return str(find_free_name(Path(directory)))


def _run_before(directory: str, place: str) -> str:
    """Return the oldest other run in the directory with the same command."""
    command = _command_of(directory, place)
    runs = sorted(Path(directory).glob("*.pario/job.json"), key=lambda path: path.stat().st_mtime)
    names = [path.parent.name for path in runs]
    same = (name for name in names if name != place and _command_of(directory, name) == command)
    return next(same, place)


def _command_of(directory: str, run: str) -> list[str]:
    path = Path(directory, run, "job.json")
    return list(json.loads(path.read_text())["command"]) if path.exists() else []
