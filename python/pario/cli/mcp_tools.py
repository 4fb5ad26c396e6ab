"""The tools of ``pario mcp``. Each runs a command of pario in a process of its own, because the
server's streams belong to the protocol, and answers with an :class:`Answer`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from statistics import median
from typing import Any, TypedDict

from pario import wording
from pario.see.launch.directory import find_free_name

_FINDINGS = 5  # of an answer
_OUTPUT = 2000  # characters of a program's output


class Step(TypedDict):
    """A tool with its arguments, and the command line that does the same ("" : none does)."""

    tool: str
    arguments: dict[str, Any]
    command: str


class Answer(TypedDict):
    """The answer of a tool: a stable id, a text for people, facts for programs, the next step."""

    id: str
    text: str
    facts: dict[str, Any]
    next: Step | None


#: The ids of all answers, and their meanings.
ANSWERS = {
    "run.findings": "the I/O costs time: `next` repairs or explains it",
    "run.no-findings": "no change of the I/O would save much; if the program is slow, a profiler of"
    " its computation says why",
    "run.with-settings": "a run with settings: `next` compares it with the first run",
    "run.program-failed": "the program failed: its output is in `facts`; repair the command",
    "run.not-recorded": "nothing was recorded: the command does not exist, or the program is linked"
    " statically or written in Go, which pario does not see",
    "report.findings": "as `run.findings`, for a recorded run",
    "report.no-findings": "as `run.no-findings`, for a recorded run",
    "advise.settings": "settings that repair the run: `next` runs the program with them",
    "advise.no-settings": "no settings repair the run: `next` explains how to change the program",
    "fix.faster": "the program is faster with the settings: `next` runs it with them",
    "fix.not-faster": "no gain is shown: do not use the settings; `next` reports on the first run",
    "fix.no-settings": "no settings repair the run: `next` reports on it",
    "fix.program-failed": "the program failed, as it is or with the settings: the text says which",
    "fix.not-recorded": "as `run.not-recorded`",
    "compare.faster": "the second run takes less time, by more than the known noise",
    "compare.not-faster": "no gain is shown",
    "explain.finding": "an explanation: change the program, then `next` runs it again",
    "explain.setting": "a key of pario.toml or a hint of MPI-IO",
    "explain.answer": "the meaning of an id of this list",
    "explain.unknown": "nothing has this name: `next` explains the most similar one",
    "error": "an argument is wrong: the text names it and the expected one",
}


def run(command: list[str] | str, directory: str = ".", settings: str = "") -> Answer:
    """Run a program under pario's tracer and summarise the report of its I/O.

    `command` is the program with its arguments, a list or one text with the quotes of a shell,
    `directory` its working directory, `settings` the path of a pario.toml to apply. The answer
    names the directory of the run, the verdict and the findings with their lines.
    """
    command = _split(command)
    if problem := _check(directory, command):
        return problem
    place = _new_run(directory)
    chosen = ["--with", settings] if settings else []
    done = _pario(directory, "run", "--no-report", "-o", place, *chosen, "--", *command)
    output = (done.stdout + done.stderr)[-_OUTPUT:]
    if not any(Path(directory, place).glob("*.plog")):
        text = output or "nothing was recorded"
        return _answer("run.not-recorded", text, {"status": done.returncode})
    answer = report(place, directory)
    facts = {"run": place, "status": done.returncode, "output": output, **answer["facts"]}
    if done.returncode:
        text = f"The program ended with status {done.returncode}. {answer['text']}"
        return _answer("run.program-failed", text, facts)
    if settings:
        before = _run_before(directory, place)
        step = (
            _step("compare", before=before, after=place, directory=directory)
            if before
            else _step("report", run=place, directory=directory)
        )
        return _answer("run.with-settings", answer["text"], facts, step)
    return _answer(answer["id"].replace("report", "run"), answer["text"], facts, answer["next"])


def report(run: str, directory: str = ".") -> Answer:
    """Summarise a recorded run: the verdict, and the findings with seconds, line and repairs."""
    if problem := _check(directory):
        return problem
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
        else _step("explain", name=findings[0]["rule"], run=run, directory=directory)
    )
    return _answer("report.findings", "\n".join(lines), facts, step)


def advise(
    run: str, directory: str = ".", measure_seconds: float = 30.0, allow: str = ""
) -> Answer:
    """Write settings that repair the findings of a recorded run to pario.toml in `directory`.

    Replays of the recorded calls measure the settings first, for at most `measure_seconds`; 0
    writes them by their estimates. `allow` names risky settings that may be used, such as
    handles,lazyclose: the repairs of a finding name them.
    """
    if problem := _check(directory, allow=allow):
        return problem
    words = [run, "-o", "pario.toml", "--measure", f"{measure_seconds:g}"]
    done = _pario(directory, "advise", *_allow(allow), *words)
    path = Path(directory, "pario.toml")
    if done.returncode or not path.exists():
        return _describe_error(done)
    text = path.read_text(encoding="utf-8")
    active = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    facts = {"settings": str(path.absolute()), "text": text}
    if not active:
        rules = [one["rule"] for one in report(run, directory)["facts"].get("findings", [])]
        step = _step("explain", name=rules[0], run=run, directory=directory) if rules else None
        return _answer("advise.no-settings", done.stderr.strip(), facts, step)
    command = _command_of(directory, run)
    step = _step("run", command=command, directory=directory, settings="pario.toml")
    return _answer("advise.settings", done.stderr.strip(), facts, step)


def fix(command: list[str] | str, directory: str = ".", allow: str = "") -> Answer:
    """Run a program, find settings that repair its I/O, run it with and without them, and report
    the gain. Takes at least three times as long as the program. `allow`: as in `advise`."""
    command = _split(command)
    if problem := _check(directory, command, allow):
        return problem
    place = _new_run(directory)
    done = _pario(directory, "run", "--fix", "--json", *_allow(allow), "-o", place, "--", *command)
    text = done.stderr.strip()
    first = next(iter(sorted(Path(directory, place).glob("before/**/job.json"))), None)
    if first is None or not any(first.parent.glob("*.plog")):
        return _answer("fix.not-recorded", text, {"status": done.returncode})
    before = str(first.parent.relative_to(directory))
    facts: dict[str, Any] = {"run": before, "status": done.returncode}
    if done.returncode:
        return _answer("fix.program-failed", text, facts)
    settings = Path(place, "pario.toml")
    document = json.loads(done.stdout) if done.stdout.strip() else {}
    if "faster" not in document:
        return _answer(
            "fix.no-settings", text, facts, _step("report", run=before, directory=directory)
        )
    facts |= {"settings": str(Path(directory, settings).absolute()), **_seconds(document)}
    text = f"{document['sentence']} {document['certainty']}\n{text}"
    if not document["faster"]:
        step = _step("report", run=before, directory=directory)
        return _answer("fix.not-faster", text, facts, step)
    step = _step("run", command=command, directory=directory, settings=str(settings))
    return _answer("fix.faster", text, facts, step)


def compare(before: str, after: str, directory: str = ".") -> Answer:
    """Compare two recorded runs: the gain, and whether it is more than noise."""
    if problem := _check(directory):
        return problem
    done = _pario(directory, "compare", before, after, "--json")
    if done.returncode:
        return _describe_error(done)
    document = json.loads(done.stdout)
    text = f"{document['sentence']} {document['certainty']}"
    id = "compare.faster" if document["faster"] else "compare.not-faster"
    return _answer(id, text, _seconds(document), _step("report", run=after, directory=directory))


def explain(name: str, run: str = "", directory: str = ".") -> Answer:
    """Explain a finding (by its rule, such as small-writes), a setting, a hint or the id of an
    answer. With `run`, the next step runs its program again."""
    from pario.see.analyze.rules import RULES
    from pario.see.analyze.rules.document import describe_rule
    from pario.settings import keys

    for rule in RULES:
        if rule.name == name:
            command = _command_of(directory, run) if run else []
            step = _step("run", command=command, directory=directory) if command else None
            return _answer("explain.finding", describe_rule(rule), {"rule": name}, step)
    for key in keys():
        if name in (key.name, *key.aliases):
            text = f"[{key.table}] {key.name}: {key.meaning} ({key.values}; default {key.default})"
            return _answer("explain.setting", text, {"key": key.name, "table": key.table})
    if name in ANSWERS:
        return _answer("explain.answer", ANSWERS[name], {"id": name})
    rules = [rule.name for rule in RULES]
    known = [*rules, *(key.name for key in keys()), *ANSWERS]
    similar = get_close_matches(name, known, n=1, cutoff=0)[0]
    text = f"no finding, setting or answer is called {name}; findings: {', '.join(rules)}"
    return _answer("explain.unknown", text, {}, _step("explain", name=similar))


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


def describe_wrong_call(tool: str, problem: str) -> Answer:
    """The answer to a call that fits no tool or not its arguments."""
    return _answer("error", f"tool {tool}: {problem}")


def _split(command: list[str] | str) -> list[str]:
    """The words of a command; a text with an open quote is one word."""
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _allow(keys: str) -> list[str]:
    return ["--allow", keys] if keys else []


def _check(directory: str, command: list[str] | None = None, allow: str = "") -> Answer | None:
    """The error of a working directory that is none, of an empty command, or of an unknown risky
    setting."""
    from pario.settings.keys import risky_keys

    if not Path(directory).is_dir():
        return _answer("error", f"directory {directory}: expected: an existing directory")
    if command is not None and not command:
        return _answer("error", "command: empty; expected: a program with its arguments")
    known = ["all", *risky_keys()]
    if allow and not {*allow.split(",")} <= {*known}:
        return _answer("error", f"allow {allow}: expected, joined by commas: {', '.join(known)}")
    return None


def _seconds(document: dict[str, Any]) -> dict[str, float]:
    """The wall times of both sides of a comparison: medians over their runs."""
    wall = document["measures"][0]
    return {f"{name}_seconds": median(wall[side]["values"])
            for name, side in (("before", "a"), ("after", "b"))}  # fmt: skip


def _answer(
    id: str, text: str, facts: dict[str, Any] | None = None, next: Step | None = None
) -> Answer:
    """An answer. Without a next step, the explanation of its id is the next one."""
    if next is None and not id.startswith("explain."):
        next = _step("explain", name=id)
    return {"id": id, "text": text, "facts": facts or {}, "next": next}


def _describe_error(done: subprocess.CompletedProcess[str]) -> Answer:
    return _answer("error", done.stderr.strip() or done.stdout.strip(), {"status": done.returncode})


def _step(tool: str, **arguments: Any) -> Step:
    return {"tool": tool, "arguments": arguments, "command": _write_command(tool, arguments)}


def _write_command(tool: str, arguments: dict[str, Any]) -> str:
    """The command line of a tool, to be run in its directory."""
    if tool == "explain":
        return ""
    if tool == "run":
        chosen = ["--with", arguments["settings"]] if arguments.get("settings") else []
        words = ["run", *chosen, "--", *arguments["command"]]
    elif tool == "advise":
        words = ["advise", arguments["run"], "-o", "pario.toml"]
    else:
        words = [tool, *(value for name, value in arguments.items() if name != "directory")]
    return shlex.join(["pario", *words])


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
    """Return the oldest other run of the same command in the directory; empty: there is none."""
    command = _command_of(directory, place)
    runs = sorted(
        Path(directory).glob("*.pario/**/job.json"), key=lambda path: path.stat().st_mtime
    )
    names = [str(path.parent.relative_to(directory)) for path in runs]
    same = (name for name in names if name != place and _command_of(directory, name) == command)
    return next(same, "")


def _command_of(directory: str, run: str) -> list[str]:
    path = Path(directory, run, "job.json")
    return list(json.loads(path.read_text())["command"]) if path.exists() else []
