"""The command line as a whole: help, unknown commands, imports."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from pario import cli
from pario.cli import COMMANDS, GROUPS, build_parser, main

#: Modules of pario.cli that are parts of commands.
PARTS = {
    "__main__",
    "arguments",
    "bench_api",
    "bench_calibrate",
    "bench_common",
    "bench_patterns",
    "bench_s3d",
    "console",
    "fix",
    "follow",
    "mcp_tools",
    "key_texts",
    "measured",
    "numbers",
    "one_process",
    "options",
    "pages",
    "paths",
    "progress",
    "records_look",
    "records_make",
    "ranks",
    "records_shuffle",
    "standard",
    "stripe_advise",
    "stripe_change",
    "stripe_sweep",
    "threshold",
}


def test_help_groups_all_commands_and_begins_with_three(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    start = lines.index("start here:")
    assert [line.split("  ")[1] for line in lines[start + 1 : start + 4]] == [
        "pario run -- ./app",
        "pario report run.pario",
        "pario run --fix -- ./app",
    ]
    for group, commands in GROUPS.items():
        first = lines.index(f"{group}:") + 1
        listed = [line.split()[0] for line in lines[first : first + len(commands)]]
        assert listed == list(commands)
    assert max(map(len, lines)) <= 80


def test_each_module_is_a_command_of_the_table_or_a_part_of_one() -> None:
    modules = {module.name for module in pkgutil.iter_modules(cli.__path__)}
    assert modules - PARTS == set(COMMANDS)
    assert all(cli.module_of(name).__doc__ for name in COMMANDS)


def test_help_imports_no_command_and_a_command_only_its_own() -> None:
    code = (
        "import sys\nfrom pario.cli import COMMANDS, main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([c for c in COMMANDS if f'pario.cli.{c}' in sys.modules], file=sys.stderr)\n"
        "print([m for m in ('numpy', 'rich', 'jinja2') if m in sys.modules], file=sys.stderr)\n"
    )
    for words, imported in ((["--help"], []), (["export", "--help"], ["export"])):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert done.stderr.splitlines() == [str(imported), "[]"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["reprot"], "unknown command reprot: did you mean report?"),
        (["xyzzy"], "unknown command xyzzy: pario --help lists the commands"),
        (["\x1b[31m"], "unknown command \\x1b[31m: pario --help lists the commands"),
        ([], "start here:"),
        (["--nosuch"], "COMMAND"),
    ],
)
def test_without_a_command_pario_prints_the_expectation(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


def test_the_parser_of_all_commands_knows_each() -> None:
    assert all(build_parser([name]).format_usage() for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["run", "--foo", "--", "true"], "usage: pario run "),
        (["report", "--foo", "x"], "usage: pario report "),
        (["stripe", "show", "--foo", "."], "usage: pario stripe show "),
    ],
)
def test_an_unknown_option_prints_the_usage_of_its_command(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    text = capsys.readouterr().err
    assert ended.value.code == 2
    assert text.startswith(usage)
    assert "unrecognized arguments: --foo" in text


@pytest.mark.parametrize(
    ("words", "name", "expected"),
    [
        ("unpack a.pack --stdout x y", "members", ["x", "y"]),
        ("unpack a.pack x -o d y --strict z", "members", ["x", "y", "z"]),
        ("unpack a.pack --stdout -- -rf", "members", ["-rf"]),
        ("unpack a.pack x --stdout -- -rf y", "members", ["x", "-rf", "y"]),
        ("ls -l a.pack x", "patterns", ["x"]),
        ("ls a.pack -l x", "patterns", ["x"]),
        ("fs a --json b", "paths", ["a", "b"]),
        ("fs --json", "paths", ["."]),
    ],
)
def test_words_may_stand_behind_options(words: str, name: str, expected: list[str]) -> None:
    found = getattr(build_parser().parse_args(words.split()), name)
    assert [str(one) for one in found] == expected


def test_a_wrong_word_behind_an_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fs", "a", "--json", "s3://b"])
    assert "argument PATH: s3://b: 's3:' is not supported" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["run", "add_arguments"])
def test_an_interrupted_command_says_so_in_one_line(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"pario.cli.advise.{place}", interrupt)
    assert main(["advise", "run.pario"]) == 130
    assert capsys.readouterr().err == "pario advise: interrupted\n"
