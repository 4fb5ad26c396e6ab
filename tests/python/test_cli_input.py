"""Invalid arguments of commands: one line that names the value and the expectation, exit status
2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pario.cli import main

LOGS = "expected run.pario directories"
PACKED = "expected a directory written by pario pack"
RECORDS = "expected a file or directory of records"
#: Commands with a missing path ({none}), an empty directory ({empty}) or a file of garbage
#: ({junk}), and the message.
PATHS = [
    ("report {none}", LOGS),
    ("report {empty}", LOGS),
    ("report {junk}", "expected a Darshan log"),
    ("advise {none}", LOGS),
    ("advise {empty}", LOGS),
    ("compare {none} {empty}", "expected a directory that pario run left"),
    ("compare {empty} {empty}", "expected a directory that pario run left"),
    ("export {none} --json -", LOGS),
    ("export {empty} --json -", LOGS),
    ("whatif {none}", LOGS),
    ("replay {none} --on {empty}", LOGS),
    ("tune --on {empty} {none}", LOGS),
    ("tune --on {none} {empty}", "expected one on the file system"),
    ("fs {none}", "expected an existing file or directory"),
    ("stripe show {none}", "expected an existing file or directory"),
    ("stripe restripe {none} --count 2", "expected an existing file or directory"),
    ("settings explain x --with {none}", "expected a settings file"),
    ("join {none}", "expected a file that pario's MPI-IO wrote as subfiles"),
    ("join {junk}", "does not consist of subfiles"),
    ("pack {none} -o {empty}/new", "expected a directory of files"),
    ("pack {junk} -o {empty}/new", "not a directory; expected a directory of files"),
    ("unpack {none}", PACKED),
    ("unpack {empty}", PACKED),
    ("unpack {junk}", PACKED),
    ("ls {none}", PACKED),
    ("ls {empty}", PACKED),
    ("ls {junk}", PACKED),
    ("stage in {none} --to {empty}", "expected a file or directory to copy"),
    ("stage out {none}", "expected a directory filled by pario stage in"),
    ("stage out {junk}", "expected a directory filled by pario stage in"),
    ("merge {none} -o {empty}/new", "no such file; expected two or more parts"),
    ("records stat {none}", RECORDS),
    ("records head {none}", RECORDS),
    ("records get {none} 1", RECORDS),
    ("records verify {none}", RECORDS),
    ("records index {none}", RECORDS),
    ("records pack {none} -o {empty}/new", RECORDS),
    ("records shuffle {none} -o {empty}/new", RECORDS),
    ("records split {none} --shards 2 -o {empty}/new", RECORDS),
    ("records convert {none} -o {empty}/new --to prec", RECORDS),
    ("records bench {none}", RECORDS),
    ("records stat {junk}", "or an index by pario records index --format FORMAT"),
    ("bench patterns {none}", "expected a directory on the file system to measure"),
    ("bench api {none}", "expected a directory on the file system to measure"),
    ("lab down {none}", "expected a directory mounted by pario lab up"),
]
#: Options with invalid numbers and sizes; the parser rejects them before anything starts.
VALUES = [
    ("pack {empty} --shard-size 0", "0; expected at least one byte"),
    ("pack {empty} --shard-size -4", "-4; expected bytes, or a size such as 4M"),
    ("checkpoint convert a b --shard-size 0", "0; expected at least one byte"),
    ("checkpoint convert a b --shard-bytes 0", "0; expected at least one byte"),
    ("pack {empty} --shards 0", "0; expected a number from 1 on"),
    ("checkpoint prune {empty} --keep 0", "0; expected a number from 1 on"),
    ("pack {empty} --level 99", "99; expected a number from 1 to 19"),
    ("unpack {empty} --max-size 2X", "2X; expected bytes, or a size such as 4M"),
    ("merge a b -o c --grid 2x", "2x; expected numbers from 1 on, such as 2x3x1"),
    ("records shuffle {junk} -o o --memory 0", "0; expected at least one byte"),
    ("records shuffle {junk} -o o --memory 2X", "2X; expected bytes, or a size such as 4M"),
    ("records shuffle {junk} -o o --shards 0", "0; expected a number from 1 on"),
    ("records shuffle {junk} -o o --seed -1", "-1; expected a number from 0 to 2^64 - 1"),
    ("records head {junk} -n -3", "-3; expected a number from 1 on"),
    ("bench patterns {empty} --size 0", "0; expected at least one byte"),
    ("bench api {empty} --size x", "x; expected bytes, or a size such as 4M"),
    ("stripe set {empty} --size 3Q", "3Q; expected bytes, or a size such as 4M"),
    ("stripe set {empty} --count 0", "0; expected a number from 1 on"),
    ("whatif {empty} --ranks 0", "0; expected a number from 1 to 1,000,000"),
    ("lab up {empty}/x --targets 0", "0; expected a number from 1 to 256"),
    ("lab up {empty}/x --rate 5Z", "5Z; expected bytes per second"),
    ("run --repeat 0 -- true", "0; expected a number from 1 to 1,000"),
]


@pytest.fixture
def names(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "empty").mkdir()
    (tmp_path / "junk").write_bytes(b"garbage " * 8)
    return {name: str(tmp_path / name) for name in ("none", "empty", "junk")}


@pytest.mark.parametrize(("words", "expected"), PATHS, ids=[words for words, _ in PATHS])
def test_a_wrong_path_is_named_with_the_expectation(
    words: str, expected: str, names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.format_map(names).split()) == 2
    error = capsys.readouterr().err.strip()
    wrong = next(word for word in re.findall(r"{(\w+)}", words.replace("{empty}/new", "")))
    if words.startswith("tune --on {empty}") or words.startswith("replay"):
        wrong = "none"
    assert names[wrong] in error
    assert expected.format_map(names) in error
    assert len(error.splitlines()) == 1 and "Traceback" not in error


@pytest.mark.parametrize(("words", "expected"), VALUES, ids=[words for words, _ in VALUES])
def test_an_invalid_value_is_named_with_the_expectation(
    words: str, expected: str, names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.format_map(names).split())
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err
    assert list(Path(names["empty"]).iterdir()) == []
