"""The settings file: strict parsing, precedence, the variables for the library, and ``pario
settings``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pario.cli import main
from pario.settings import (
    Key,
    Line,
    Proposal,
    SettingsError,
    SettingsFile,
    explain,
    keys,
    load,
    variables,
    write,
)
from pario.settings.globs import literal, selects
from pario.settings.lines import line_of
from tests.support.commands import run_command

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"

GOOD = """\
[run]
files_limit = 10

[[file]]
match = "*.h5"
mpiio = { cb_buffer_size = "16M", cb_nodes = 4 }
striping = { stripe_count = 8 }

[[file]]
match = "/scratch/*.log"
[file.streams]
size = "8M"
sync = true
[file.stdio]
mode = "full"

[[file]]
match = "*"
mpiio.cb_buffer_size = 4194304
streams.count = 2
"""


def read(tmp_path: Path, text: str) -> SettingsFile:
    path = tmp_path / "pario.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


# --- parsing


def test_a_file_is_read_with_sections_in_their_order(tmp_path: Path) -> None:
    file = read(tmp_path, GOOD)
    assert [(one.key.name, one.text) for one in file.run] == [("files_limit", "10")]
    assert [section.match for section in file.sections] == ["*.h5", "/scratch/*.log", "*"]
    assert [(one.key.table, one.key.name, one.text) for one in file.sections[1].settings] == [
        ("streams", "size", "8M"),
        ("streams", "sync", "yes"),
        ("stdio", "mode", "full"),
    ]


def test_another_name_of_a_key_is_the_key(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD).sections[0].of("striping")[0].key.name == "striping_factor"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[[file]]\nmatch = "*"\nmpiio = { cb_nods = 4 }', 3, ["cb_nods", "did you mean cb_nodes"]),
        ('[[file]]\nmatch = "*"\n\n[file.streams]\nsize = 1', 5, ["size", "4 KiB to 2 GiB"]),
        (
            '[[file]]\nmatch = "*"\n[[file]]\nmatch = "*.h5"\n[file.mpiio]\ncb_nodes = -1',
            6,
            ["cb_nodes", "0 to 1048576"],
        ),
        ('[[file]]\nmatch = "*"\n[file.mpiio]\nsize = 4', 4, ["size", "belongs to streams"]),
        ('[[file]]\nmatch = "*"\nsize = 4', 3, ["size", "did you mean streams = { size"]),
        ('[[file]]\nmatch = "*"\nstream = { size = 4 }', 3, ["stream", "did you mean streams"]),
        ('[[file]]\nmatch = "*"\nstreams = 4', 3, ["streams", "[file.streams]"]),
        ('[[file]]\nmatch = "*"\n[file.streams]\nsync = "yes"', 4, ["sync", "true or false"]),
        ('[[file]]\nmatch = "*"\n[file.streams]\ncount = "4"', 4, ["count", "number, 1 to 1024"]),
        ('[[file]]\nmatch = "*"\n[file.streams]\nsize = 4.5', 4, ["size = 4.5"]),
        (
            '[[file]]\nmatch = "*"\n[file.stdio]\nmode = "ful"',
            4,
            ["mode = ful", "full, line, none or as_is"],
        ),
        ('[[file]]\nmatch = "a,b"', 2, ["','", "?"]),
        ('[[file]]\nmatch = "C:/x"', 2, ["':'", "?"]),
        ('[[file]]\nmatch = ""', 2, ["expected a pattern"]),
        ('[[file]]\nstreams = { size = "8M" }', 1, ["without match"]),
        ('[file]\nmatch = "*"', 1, ["two brackets"]),
        ("[run]\nmpiio = 1", 2, ["mpiio = 1", "true or false"]),
        ("[run]\nfiles_limit = 0", 2, ["files_limit"]),
        ("[ruin]\nmpiio = true", 1, ["ruin", "did you mean run"]),
        ("[run\n", 0, ["line 1"]),
    ],
)
def test_errors_are_named_with_their_line(
    tmp_path: Path, text: str, line: int, words: list[str]
) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(
        f"{tmp_path / 'pario.toml'}:{line}: " if line else f"{tmp_path / 'pario.toml'}: "
    )
    assert [word for word in words if word not in said] == []


#: A value that no key of a kind accepts.
WRONG = {
    "choice": '"sometimes"',
    "bytes": "-2",
    "count": "-2",
    "seconds": '"soon"',
    "flag": '"yes"',
    "text": "7",
    "mode": '"ful"',
}


def parametrize_keys(*wanted: Key) -> pytest.MarkDecorator:
    """Parametrizes a test with these keys."""
    return pytest.mark.parametrize("key", wanted, ids=lambda key: f"{key.table}.{key.name}")


EVERY_KEY = parametrize_keys(*keys())


def refusal(tmp_path: Path, key: Key, name: str, value: str) -> str:
    """Returns the message about one line of a file, without the place, which has to be that
    line."""
    head = "\n[run]\n" if key.table == "run" else f'[[file]]\nmatch = "*"\n[file.{key.table}]\n'
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, f"{head}{name} = {value}\n")
    place, _, said = str(caught.value).partition(": ")
    assert place == f"{tmp_path / 'pario.toml'}:{3 if key.table == 'run' else 4}"
    return said


@EVERY_KEY
def test_every_key_refuses_invalid_values_and_names_the_valid_ones(
    tmp_path: Path, key: Key
) -> None:
    said = refusal(tmp_path, key, key.name, WRONG[key.kind])
    assert said.startswith(key.name)
    assert "expected" in said


@parametrize_keys(*(key for key in keys() if key.kind in ("bytes", "count")))
def test_every_number_has_its_range(tmp_path: Path, key: Key) -> None:
    said = refusal(tmp_path, key, key.name, str(key.most + 1 if key.most else 1 << 62))
    assert said.startswith(key.name)
    assert " to " in said


@EVERY_KEY
def test_every_mistyped_key_gets_a_suggestion(tmp_path: Path, key: Key) -> None:
    said = refusal(tmp_path, key, f"{key.name[:-1]}x", "1")
    assert said == f"unknown key {key.name[:-1]}x in {key.table}; did you mean {key.name}?"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")


def test_a_line_is_found_in_all_ways_to_write_a_key() -> None:
    text = (
        "[[file]]\nmatch='a'\n[[file]]\nmatch = 'b'\nstreams.size = 1\nmpiio = { cb_nodes = 1"
        " }\n[file.stdio]\n\"mode\" = 'full'\n"
    )
    places = [
        ("file", 1, "streams", "size"),
        ("file", 1, "mpiio", "cb_nodes"),
        ("file", 1, "stdio", "mode"),
        ("file", 0, "match"),
    ]
    assert [line_of(text, place) for place in places] == [5, 6, 8, 2]


# --- variables for the library


def test_hints_are_passed_in_reverse_because_the_last_wins_and_streams_in_order(
    tmp_path: Path,
) -> None:
    told = variables(read(tmp_path, GOOD), {})
    assert (
        told["PARIO_HINTS"]
        == "*:cb_buffer_size=4194304,*.h5:cb_buffer_size=16M:cb_nodes=4:striping_factor=8"
    )
    assert told["PARIO_STREAMS"] == "/scratch/*.log:size=8M:sync=yes:stdio=full,*:count=2"
    assert told["PARIO_TRACE_FILES_LIMIT"] == "10"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    environment = {
        "PARIO_HINTS": "*:cb_nodes=2",
        "PARIO_STREAMS": "*:size=1M",
        "PARIO_MPIIO": "no",
        "PARIO_TRACE_FILES_LIMIT": "5",
    }
    told = variables(read(tmp_path, GOOD), environment)
    assert told["PARIO_HINTS"].endswith(",*:cb_nodes=2")
    assert told["PARIO_STREAMS"].startswith("*:size=1M,")
    assert told["PARIO_MPIIO"] == "no"
    assert "PARIO_TRACE_FILES_LIMIT" not in told


def test_sections_for_mpiio_enable_it_unless_the_file_disables_it(tmp_path: Path) -> None:
    assert variables(read(tmp_path, GOOD), {})["PARIO_MPIIO"] == "yes"
    assert (
        variables(read(tmp_path, GOOD.replace("[run]", "[run]\nmpiio = false")), {})["PARIO_MPIIO"]
        == "no"
    )
    for other in ("streams = { count = 2 }", "striping = { striping_factor = 2 }"):
        assert "PARIO_MPIIO" not in variables(read(tmp_path, f'[[file]]\nmatch = "*"\n{other}'), {})


# --- precedence


def applied_settings(
    path: str, file: SettingsFile | None, environment: dict[str, str]
) -> dict[str, str]:
    return {
        f"{row.table}.{row.key}": row.value
        for row in explain(path, file, environment)
        if not row.overruled
    }


def test_hints_are_chosen_key_by_key_and_streams_as_a_whole(tmp_path: Path) -> None:
    file = read(tmp_path, GOOD)
    assert applied_settings("/work/a.h5", file, {}) == {
        "mpiio.cb_buffer_size": "16M",
        "mpiio.cb_nodes": "4",
        "striping.striping_factor": "8",
        "streams.count": "2",
    }
    assert applied_settings("/scratch/a.log", file, {}) == {
        "mpiio.cb_buffer_size": "4194304",
        "streams.size": "8M",
        "streams.sync": "yes",
        "stdio.mode": "full",
    }


def test_every_row_names_its_source_and_its_override(tmp_path: Path) -> None:
    file = read(tmp_path, GOOD)
    rows = explain("/work/a.h5", file, {"PARIO_HINTS": "*.h5:cb_nodes=2"})
    nodes = [(row.value, row.origin, row.overruled) for row in rows if row.key == "cb_nodes"]
    assert nodes == [
        ("2", "PARIO_HINTS, *.h5", ""),
        ("4", f'{file.path}:6, match = "*.h5"', "PARIO_HINTS, *.h5"),
    ]


def test_variables_of_others_are_explained_too(tmp_path: Path) -> None:
    hints = tmp_path / "romio"
    hints.write_text("cb_nodes 3\n# a comment\nstriping_unit 65536\n")
    environment = {
        "ROMIO_HINTS": str(hints),
        "MPICH_MPIIO_HINTS": "*:cb_nodes=5",
        "IOBUF_PARAMS": "*.h5:size=32M:verbose",
    }
    assert applied_settings("/work/a.h5", None, environment) == {
        "mpiio.cb_nodes": "5",
        "striping.striping_unit": "65536",
        "streams.size": "32M",
        "streams.verbose": "yes",
    }


@pytest.mark.parametrize(
    ("glob", "path", "meant"),
    [
        ("*", "/a/b", True),
        ("*.h5", "/a/b.h5", True),
        ("b.h5", "/a/b.h5", True),
        ("a/b.h5", "/a/b.h5", False),
        ("/a/*", "/a/b/c", True),
        ("?.h5", "/a/b.h5", True),
        ("[b].h5", "/a/b.h5", False),
        ("*", "%stdout", False),
        ("%stdout", "%stdout", True),
    ],
)
def test_patterns_match_as_in_the_library(glob: str, path: str, meant: bool) -> None:
    assert selects(glob, path) == meant


@given(st.text(alphabet="ab*?,: /.x", min_size=1))
def test_a_pattern_made_of_a_path_means_the_path_and_can_travel(name: str) -> None:
    path = "/" + name
    assert selects(literal(path), path)
    assert not set(literal(path)) & set(",: ")


# --- writing


def test_written_settings_are_read_back(tmp_path: Path) -> None:
    h5 = (
        Line("mpiio", "cb_buffer_size", "16M"),
        Line("streams", "count", "2"),
        Line("streams", "ignoreflush", "yes", applied=False),
    )
    proposals = [
        Proposal("", (Line("run", "mpiio", "yes"),), ("why",)),
        Proposal('/out/a"b*.h5', h5, ("9 s", "x\ny")),
        Proposal("*.log", (Line("streams", "ignoreflush", "yes", applied=False),), ("risky",)),
    ]
    text = write(["A head."], proposals)
    file = read(tmp_path, text)
    assert [(one.key.name, one.text) for one in file.run] == [("mpiio", "yes")]
    assert [
        (section.match, [one.text for one in section.settings]) for section in file.sections
    ] == [('/out/a"b*.h5', ["16M", "2"])]
    assert text.splitlines().count("# streams.ignoreflush = true") == 2
    assert text.endswith('# risky\n# [[file]]\n# match = "*.log"\n# streams.ignoreflush = true\n')


# --- commands


def test_the_reference_in_the_document_is_that_of_the_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["settings", "reference", "--markdown"])
    printed = capsys.readouterr().out
    assert DOCUMENT.read_text(encoding="utf-8").endswith(printed), (
        "run pario settings reference --markdown"
    )


def test_the_reference_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    main(["settings", "reference"])
    lines = capsys.readouterr().out.splitlines()
    assert [key.name for key in keys() if f"  {key.name}" not in lines] == []


def test_an_unknown_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "reference", "stream"]) == 2
    assert "expected run, mpiio, striping, streams, stdio" in capsys.readouterr().err


def test_explain_shows_the_settings_of_a_file_and_their_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pario.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARIO_STREAMS", "*.h5:size=2M")
    assert main(["settings", "explain", "a.h5", "--with", "pario.toml"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{tmp_path}/a.h5\n")
    assert 'pario.toml:6, match = "*.h5"' in out
    assert "not used: PARIO_STREAMS, *.h5 decides" in out
    assert "pario's MPI-IO is on" in out


@pytest.mark.parametrize(
    ("table", "key", "value", "path"),
    [
        ("mpiio", "cb_nodes", "4", "a.h5"),
        ("striping", "striping_factor", "8", "a.h5"),
        ("streams", "size", "8M", "/scratch/a.log"),
        ("stdio", "mode", "full", "/scratch/a.log"),
    ],
)
def test_every_table_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, key: str, value: str, path: str
) -> None:
    (tmp_path / "pario.toml").write_text(GOOD)
    main(["settings", "explain", path, "--with", str(tmp_path / "pario.toml")])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [table, key, value, "applies"] in [row[:4] for row in rows]


def test_a_file_without_settings_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    main(["settings", "explain", "%stdout"])
    assert "nothing is set for it" in capsys.readouterr().out


@pytest.mark.system
def test_a_run_gets_the_settings_as_variables_and_options_win(tmp_path: Path) -> None:
    (tmp_path / "pario.toml").write_text(GOOD)
    command = [
        sys.executable,
        "-m",
        "pario",
        "run",
        "--no-report",
        "--with",
        "pario.toml",
        "--hint",
        "cb_nodes=9",
        "--",
        "env",
    ]
    done = run_command(command, cwd=tmp_path, env={**os.environ, "PARIO_HINTS": "*:cb_nodes=2"})
    lines = done.stdout.splitlines()
    (hints,) = (line for line in lines if line.startswith("PARIO_HINTS="))
    assert hints.endswith(",*:cb_nodes=2,*:cb_nodes=9")
    assert hints.startswith("PARIO_HINTS=*:cb_buffer_size=4194304,")
    assert "PARIO_STREAMS=/scratch/*.log:size=8M:sync=yes:stdio=full,*:count=2" in lines
    assert "PARIO_MPIIO=1" in lines


def refuse_run(place: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program with the settings of a folder, which must be refused before it starts."""
    words = ["run", "--with", "pario.toml", "--", "touch", "started"]
    done = run_command([sys.executable, "-m", "pario", *words], cwd=place)
    assert done.returncode == 2
    assert not (place / "started").exists()
    return done


def test_settings_that_are_too_long_for_their_variable_do_not_start_a_run(tmp_path: Path) -> None:
    (tmp_path / "pario.toml").write_text(
        "".join(f'[[file]]\nmatch = "/{number:0100}"\nstreams.count = 2\n' for number in range(20))
    )
    done = refuse_run(tmp_path)
    assert "PARIO_STREAMS" in done.stderr


@pytest.mark.system
def test_a_run_with_a_bad_file_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "pario.toml").write_text('[[file]]\nmatch = "*"\nstreams = { sise = 4 }\n')
    done = refuse_run(tmp_path)
    assert "pario.toml:3: unknown key sise in streams; did you mean size?" in done.stderr
