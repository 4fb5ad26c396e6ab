"""``pario stripe advise``: proposes the number of stripes of a future file, or of the files of a
recorded run."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import filesystems, wording
from pario.cli.arguments import add_action, add_count, add_flag, add_value
from pario.cli.numbers import size
from pario.cli.paths import path_text
from pario.cli.stripe_change import set_one
from pario.errors import ParioError
from pario.messages import print_json, print_line, print_lines

if TYPE_CHECKING:
    from pario.fix.stripe.policy import Advice, Choice, Expected

#: Rows of the table that a log gives; all with --all.
ROWS = 20


def add_arguments(actions: Any) -> None:
    """The subcommand and its options."""
    text = "propose the number of stripes of a file, with the reason"
    parser = add_action(actions, "advise", text)
    parser.add_argument(
        "paths",
        nargs="*",
        type=path_text,
        metavar="PATH",
        help="where the file will be; or, without --size, the log of a run: run.pario, a.darshan",
    )
    add_value(parser, "--size", size, "SIZE", "bytes of the future file")
    add_count(parser, "--writers", 0, "processes that use it at a time (default: --ranks, or 1)")
    add_count(parser, "--ranks", 0, "ranks of the job (default: --writers)")
    add_count(parser, "--files", 1, "such files at the same time (default 1)")
    add_count(parser, "--targets", 0, "targets of the file system (default: it is asked)")
    parser.add_argument(
        "--kind",
        choices=[row.kind for row in filesystems.ROWS if row.settable],
        help="file system that the commands are for (default: PATH's)",
    )
    add_flag(parser, "--set", "do it: create the file so, or have the directory's new files so")
    add_flag(parser, "--all", "all files of a log, not the largest")
    add_flag(parser, "--rules", "print the table of choices in Markdown")
    add_flag(parser, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints advice for paths or for a recorded run; with --set, follows it."""
    if arguments.rules:
        print(table_of_rules())
        return 0
    if arguments.size is not None:
        return max([_advise_path(arguments, path) for path in arguments.paths])
    if not arguments.paths or any(
        not (Path(path).is_dir() or path.endswith(".darshan")) for path in arguments.paths
    ):
        raise ParioError("give the size that the file will have (--size), or the log of a run")
    return _advise_log(arguments)


def table_of_rules() -> str:
    """The table of choices in Markdown."""
    from pario.fix.stripe.layout import TO_THE_END
    from pario.fix.stripe.policy import rules

    lines = [
        "| rule | bytes of the file | processes | stripes | each holds at least | unit | because |",
        "|---|---|---|---|---|---|---|",
    ]
    for rule in rules():
        begin, end = wording.size(rule.begin), wording.size(rule.end)
        sizes = f"from {begin}" if rule.end == TO_THE_END else f"{begin} to {end}"
        stripes = str(rule.most) if rule.least == rule.most else f"{rule.least} to {rule.most}"
        least = wording.block(rule.per_target) if rule.per_target else ""
        users = wording.count(rule.writers) if rule.writers else "any"
        lines.append(
            f"| {rule.name} | {sizes} | {users} | {stripes} | {least} | {wording.block(rule.unit)}"
            f" | {rule.reason} |"
        )
    return "\n".join(lines)


def _advise_path(arguments: argparse.Namespace, path: str) -> int:
    from pario.fix.stripe.commands import commands
    from pario.fix.stripe.filesystem import facts_of
    from pario.fix.stripe.layout import place_of
    from pario.fix.stripe.policy import Expected, choose, load_sweeps, make_request

    facts = facts_of(place_of(path))
    kind = arguments.kind or facts.stripes.kind
    writers = arguments.writers or arguments.ranks or 1
    expected = Expected(
        arguments.size,
        writers,
        arguments.ranks or writers,
        arguments.targets or facts.targets,
        arguments.files,
        (facts.mount.type, facts.mount.point),
    )
    choice = choose(expected, load_sweeps())
    lines = commands(kind, path, Path(path).is_dir(), make_request(choice))
    if arguments.json:
        print_json({"path": path, "kind": kind, **_document(expected, choice), "commands": lines})
    else:
        print_lines(_advice(path, kind, expected, choice, lines))
        if expected.files == 1:
            _say_prediction(path, expected, choice)
    if arguments.set:
        return set_one(path, make_request(choice))
    return 0


def _say_prediction(path: str, expected: Expected, choice: Choice) -> None:
    """Prints the predicted seconds of writing with the chosen stripes and with one, if the rates of
    the file system were measured."""
    from pario.fix.stripe.layout import Part, place_of
    from pario.prove.calibration import kept_machine
    from pario.prove.sweep import predict_write

    machine = kept_machine(place_of(path))
    if machine is None or not expected.size:
        return
    chosen, one = (
        wording.seconds(
            predict_write(
                machine, expected.size, expected.writers, Part(count=count, unit=choice.unit)
            )
        )
        for count in (choice.count, 1)
    )
    also = f", {one} with one stripe" if choice.count > 1 else ""
    print_line(
        f"  predicted, with the measured rates of the file system: written in {chosen}{also}"
    )


def _document(expected: Expected, choice: Choice) -> dict[str, Any]:
    return {"expected": dataclasses.asdict(expected), "choice": dataclasses.asdict(choice)}


def _advice(
    path: str, kind: str, expected: Expected, choice: Choice, lines: Sequence[str]
) -> Iterator[str]:
    from pario.fix.stripe.commands import hints, short
    from pario.fix.stripe.policy import make_request

    users = wording.plural(expected.writers, "process", "processes")
    many = f", {wording.count(expected.files)} such files at a time" if expected.files > 1 else ""
    known = (
        f"{wording.count(expected.targets)} targets"
        if expected.targets
        else "an unknown number of targets"
    )
    yield f"{path}: {wording.plural(choice.count, 'stripe')} of {wording.block(choice.unit)}"
    yield (
        f"  for {wording.size(expected.size)}, {users} at a time of"
        f" {wording.plural(expected.ranks, 'rank')}{many}, {known}"
    )
    yield f"  because {choice.reason} (rule {choice.rule})"
    if not lines:
        yield f"  its file system (kind {kind}) has no stripes that can be set: nothing to do"
        return
    yield f"  $ pario stripe set --count {choice.count} --size {short(choice.unit)} {path}"
    yield from (f"  $ {line}" for line in lines)
    yield (
        f"  $ pario run {hints(make_request(choice).parts[0])} -- ...   # at each file that a"
        " program creates"
    )


def _advise_log(arguments: argparse.Namespace) -> int:
    from pario.fix.stripe.policy import advise
    from pario.progress import progress
    from pario.see.tables import read

    with progress("pario: reading the logs"):
        found = advise(read([Path(path) for path in arguments.paths]), arguments.targets)
    if arguments.json:
        print_json([_advice_document(advice) for advice in found])
    else:
        print_lines(_advice_table(found, arguments))
    return 0


def _advice_document(advice: Advice) -> dict[str, Any]:
    has = (
        None
        if advice.has is None
        else {
            "count": advice.has.stripe_count,
            "unit": advice.has.stripe_size,
            "kind": advice.has.kind,
        }
    )
    return {
        "path": advice.path,
        "has": has,
        "change": advice.change,
        **_document(advice.expected, advice.choice),
    }


def _advice_table(found: Sequence[Advice], arguments: argparse.Namespace) -> Iterator[str]:
    from pario.see.report.table import BLOCK, BYTES, COUNT, Column, Table
    from pario.see.report.text_table import lines, terminal_width

    if not found:
        yield "no files that were written, and no large ones that were read"
        return
    shown = found if arguments.all else found[:ROWS]
    columns: tuple[Column[Advice], ...] = (
        Column("File", lambda advice: advice.path, flexible=True),
        Column("size", lambda advice: advice.expected.size, BYTES, zeros=True),
        Column("processes", lambda advice: advice.expected.writers, COUNT, zeros=True),
        Column("stripes", lambda advice: advice.has and advice.has.stripe_count, COUNT, zeros=True),
        Column("should be", lambda advice: advice.choice.count, COUNT, zeros=True),
        Column("of", lambda advice: advice.choice.unit, BLOCK, zeros=True),
        Column("rule", lambda advice: advice.choice.rule),
    )
    table = Table("Stripes", columns, shown)
    yield from (line.plain for line in lines(table, terminal_width()))
    if len(found) > len(shown):
        yield f"and {wording.plural(len(found) - len(shown), 'more file')}: --all"
    yield from _advice_commands(shown, arguments.kind)


def _advice_commands(shown: Sequence[Advice], kind: str | None) -> Iterator[str]:
    """Yields the commands that stripe directories as advised for their largest file: of files whose
    stripes should change, or of all files if ``kind`` is given."""
    from pario.fix.stripe.commands import commands
    from pario.fix.stripe.policy import make_request

    lines: dict[str, list[str]] = {}
    for advice in shown:
        words = kind or (advice.has.kind if advice.has and advice.change else "")
        directory = str(Path(advice.path).parent)
        if words:
            lines.setdefault(
                directory, commands(words, directory, True, make_request(advice.choice))
            )
    if lines:
        yield ""
        yield "For new files in these directories (existing ones: pario stripe restripe):"
        yield from (f"  $ {line}" for own in lines.values() for line in own)
    elif all(advice.has is None for advice in shown):
        yield ""
        yield (
            "The stripes that these files have are not in the log; --kind lustre (ceph, beegfs)"
            " prints the commands."
        )
    else:
        yield ""
        yield "Nothing to change."
