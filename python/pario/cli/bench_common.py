"""Parts shared by the comparisons of ``pario bench``: directory, history, comparison with an old
result."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pario.cli.arguments import add_count, add_flag, add_launcher, add_value
from pario.cli.paths import path, require_directory
from pario.errors import ParioError, name_errors
from pario.messages import print_lines, print_note
from pario.publishing import write_text
from pario.scratch import scratch

_LAST = Path()


def add_place(parser: argparse.ArgumentParser, repeat: int) -> None:
    """The directory, and --repeat."""
    parser.add_argument(
        "directory",
        nargs="?",
        type=path,
        default=Path(),
        metavar="DIR",
        help="where to write: on the file system in question (default: here)",
    )
    add_count(parser, "--repeat", repeat, f"repetitions, medians are shown (default {repeat})")


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """--json and --compare: the file for the result, and the earlier result."""
    add_value(parser, "--json", path, "FILE", "write the result there, too")
    parser.add_argument(
        "--compare",
        nargs="?",
        type=path,
        const=_LAST,
        metavar="FILE",
        help=(
            "show the changes since this result; without FILE, since the last one on the same"
            " file system with the same settings"
        ),
    )


def add_ranks(parser: argparse.ArgumentParser, ranks: int) -> None:
    """--ranks and the launcher of MPI."""
    add_count(parser, "--ranks", ranks, f"MPI processes (default {ranks})")
    add_flag(parser, "--mpiio", "with pario's MPI-IO instead of the MPI's own")
    add_launcher(parser)


@contextmanager
def place_below(directory: Path) -> Iterator[Path]:
    """A temporary directory on the file system to measure. Raises ParioError if it cannot be
    used."""
    require_directory(directory, "a directory on the file system to measure")
    with name_errors(directory), scratch(directory, "pario-bench") as made:
        yield made


def earlier(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Reads the result to compare with; None if none is named. Checks before the measurement that
    the new result can be written. Raises ParioError."""
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        raise ParioError(f"cannot write {arguments.json}: no directory {arguments.json.parent}")
    if arguments.compare is None or arguments.compare == _LAST:
        return None
    before, expected = _read(arguments.compare), f"pario-bench-{arguments.action}"
    if before["format"] != expected:
        raise ParioError(
            f"{arguments.compare}: a result of {before['format']}; expected {expected}"
        )
    return before


def _read(path: Path) -> dict[str, Any]:
    from pario.prove.bench.history import read

    try:
        return read(path)
    except OSError as error:
        raise ParioError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ParioError(f"{path}: no JSON; expected a result that --json has written") from error
    except KeyError as error:
        raise ParioError(
            f"{path}: {error} is missing; expected a result that --json has written"
        ) from error
    except ValueError as error:
        raise ParioError(f"{path}: {error}") from error


def keep(
    arguments: argparse.Namespace, result: Mapping[str, Any], before: dict[str, Any] | None
) -> None:
    """Prints the changes since an earlier result if requested, then adds the result to the history
    of the file system."""
    from pario import state
    from pario.prove.bench import history
    from pario.prove.calibration import file_system

    folder = state.folder("bench") / file_system(arguments.directory)
    if arguments.compare == _LAST:
        found = history.last(folder, result)
        if found is None:
            print(f"No earlier result with these settings in {folder}.")
        else:
            print(f"Since {found[0]}:")
            before = found[1]
    if before is not None:
        print_lines(list_changes(before, result))
    try:
        history.keep(folder, result)
    except ParioError as error:
        print_note(f"pario bench: the result is not kept: {error}")
    if arguments.json:
        write_text(arguments.json, json.dumps(result, indent=1) + "\n")


def list_changes(before: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    """Yields the rates that changed by more than repetitions differ."""
    from pario.prove.bench import history

    for key in history.different(before, result):
        yield f"The earlier result has other {key}: {before.get(key)}, now {result.get(key)}."
    found = list(history.changes(history.series_of(before), history.series_of(result)))
    for change in found:
        if change.clear:
            yield f"{change.name}: {change.factor:.2f} times the earlier rate"
    alike = sum(not change.clear for change in found)
    yield (
        f"{alike} of {len(found)} rates do not differ clearly from the earlier ones (their"
        " repetitions overlap, or there is only one)."
    )
