"""Show, set, measure, advise and change how files are striped over the targets of a file system
(Lustre, CephFS, BeeGFS)."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import filesystems, wording
from pario.cli import stripe_sweep
from pario.cli.arguments import add_action
from pario.cli.numbers import positive, size
from pario.cli.paths import path_text, require_path
from pario.errors import ParioError
from pario.messages import print_json

if TYPE_CHECKING:
    from pario.fix.stripe.layout import Part, Stripes, Wanted
    from pario.fix.stripe.policy import Advice, Choice, Expected

#: Rows of the table that a log gives; all with --all.
ROWS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Subcommands and options of ``pario stripe``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = _action(
        actions,
        "show",
        "show the stripes of files, and what new files in directories get",
        "a file or directory",
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    setting = _action(
        actions,
        "set",
        "create striped files, or set what new files in directories get",
        "a new file, or a directory",
    )
    _stripe_options(setting)
    setting.add_argument(
        "--inherit", action="store_true", help="a directory has the stripes of the one above again"
    )
    moving = _action(
        actions,
        "restripe",
        "copy files to other stripes; the complete copy replaces the file",
        "a file",
    )
    _stripe_options(moving)
    moving.add_argument(
        "--threads", type=positive, default=4, metavar="N", help="threads that copy (default 4)"
    )
    moving.add_argument(
        "--force", action="store_true", help="also files that are striped so already"
    )
    moving.add_argument(
        "--discard",
        action="store_true",
        help="remove what interrupted copies left, and copy nothing",
    )
    stripe_sweep.add_arguments(actions)
    _advise_options(actions)


def _action(actions: Any, name: str, text: str, paths: str) -> argparse.ArgumentParser:
    parser = add_action(actions, name, text)
    parser.add_argument(
        "paths",
        nargs="*" if name == "advise" else "+",
        type=path_text,
        metavar="PATH",
        help=paths,
    )
    return parser


def _stripe_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--count",
        type=_count,
        default=0,
        metavar="N",
        help="stripes of a file: targets it is spread over; or: all",
    )
    parser.add_argument(
        "--size", type=size, default=0, metavar="SIZE", help="bytes per stripe, a multiple of 64K"
    )
    parser.add_argument(
        "--start", type=_number, default=-1, metavar="T", help="first target (Lustre)"
    )
    parser.add_argument(
        "--targets",
        type=_numbers,
        default=(),
        metavar="T,T,...",
        help="exactly these targets, in this order (Lustre)",
    )
    parser.add_argument(
        "--overstripe",
        action="store_true",
        help="several stripes on one target are allowed (Lustre)",
    )
    parser.add_argument(
        "--pool",
        default="",
        metavar="NAME",
        help="targets of this pool (Lustre), or this data pool (CephFS)",
    )
    parser.add_argument(
        "--object-size", type=size, default=0, metavar="SIZE", help="bytes per object (CephFS)"
    )
    parser.add_argument(
        "--part",
        action="append",
        type=_part,
        default=[],
        metavar="END:COUNT[:SIZE]",
        help=(
            "the bytes up to END, so striped; may be repeated, the last one up to `end` (Lustre:"
            " composite files)"
        ),
    )


def _advise_options(actions: Any) -> None:
    text = "propose the number of stripes of a file, with the reason"
    parser = _action(
        actions,
        "advise",
        text,
        "where the file will be; or, without --size, the log of a run: run.pario, a.darshan",
    )
    parser.add_argument("--size", type=size, metavar="SIZE", help="bytes of the future file")
    parser.add_argument(
        "--writers",
        type=positive,
        default=0,
        metavar="N",
        help="processes that use it at a time (default: --ranks, or 1)",
    )
    parser.add_argument(
        "--ranks",
        type=positive,
        default=0,
        metavar="N",
        help="ranks of the job (default: --writers)",
    )
    parser.add_argument(
        "--files",
        type=positive,
        default=1,
        metavar="N",
        help="such files at the same time (default 1)",
    )
    parser.add_argument(
        "--targets",
        type=positive,
        default=0,
        metavar="N",
        help="targets of the file system (default: it is asked)",
    )
    parser.add_argument(
        "--kind",
        choices=[row.kind for row in filesystems.ROWS if row.settable],
        help="file system that the commands are for (default: PATH's)",
    )
    parser.add_argument(
        "--set",
        action="store_true",
        help="do it: create the file so, or have the directory's new files so",
    )
    parser.add_argument("--all", action="store_true", help="all files of a log, not the largest")
    parser.add_argument(
        "--rules", action="store_true", help="print the table of choices in Markdown"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; returns 1 if the result differs from the request."""
    return {
        "show": _show,
        "set": _set,
        "restripe": _restripe,
        "sweep": stripe_sweep.run,
        "advise": _advise,
    }[arguments.action](arguments)


def _count(text: str) -> int:
    from pario.fix.stripe.layout import ALL

    return ALL if text in ("all", "-1") else positive(text)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}; expected a number")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(_number, text.split(",")))


def _part(text: str) -> Part:
    from pario.fix.stripe.layout import TO_THE_END, Part

    end, _, rest = text.partition(":")
    count, _, unit = rest.partition(":")
    if not count:
        raise argparse.ArgumentTypeError(f"{text}; expected END:COUNT or END:COUNT:SIZE")
    return Part(
        end=TO_THE_END if end == "end" else size(end),
        count=_count(count),
        unit=size(unit) if unit else 0,
    )


def _make_request(arguments: argparse.Namespace) -> Wanted:
    from dataclasses import replace

    from pario.fix.stripe.layout import GRANULE, Part, Wanted, parts_in_order

    every = {"pool": arguments.pool, "overstriped": arguments.overstripe}
    if arguments.part and (
        arguments.count or arguments.size or arguments.targets or arguments.start >= 0
    ):
        raise ParioError(
            "--part says count and size itself; leave out --count, --size, --start and --targets"
        )
    if arguments.targets and (
        arguments.count not in (0, len(arguments.targets)) or arguments.start >= 0
    ):
        raise ParioError(
            "--targets says how many and which is first; leave out --count and --start"
        )
    one = Part(
        unit=arguments.size, count=arguments.count, start=arguments.start, targets=arguments.targets
    )
    parts = tuple(replace(part, **every) for part in parts_in_order(arguments.part) or (one,))
    wanted = Wanted(parts, arguments.object_size)
    if wanted == Wanted():
        raise ParioError(
            "nothing is asked for; give --count, --size, --start, --targets, --pool, --object-size"
            " or --part"
        )
    for part in parts:
        if part.unit % GRANULE:
            raise ParioError(
                f"stripes of {part.unit} bytes; expected a multiple of {wording.block(GRANULE)}"
            )
    return wanted


def _show(arguments: argparse.Namespace) -> int:
    from pario.fix.stripe.layout import stripes_of

    for path in arguments.paths:
        require_path(path, "an existing file or directory")
    found = [stripes_of(path) for path in arguments.paths]
    if arguments.json:
        print_json([dataclasses.asdict(stripes) for stripes in found])
    for stripes in found if not arguments.json else []:
        _say("\n".join(_lines(stripes)))
    return 0


def _say(text: str, stream: Any = None) -> None:
    print("\n".join(map(wording.printable, text.split("\n"))), file=stream or sys.stdout)


def _lines(stripes: Stripes) -> Iterator[str]:
    from pario.fix.stripe.layout import describe, end_text

    lead = f"{stripes.path}: " + ("new files have " if stripes.directory and stripes.parts else "")
    rest = f", objects of {wording.block(stripes.object_size)}" if stripes.object_size else ""
    rest += f", as {stripes.inherited} says" if stripes.inherited else ""
    if not stripes.parts:
        what = "does not tell its stripes" if stripes.settable else "no stripes"
        yield f"{lead}{what} (file system of kind {stripes.kind})"
    elif len(stripes.parts) == 1:
        yield lead + describe(stripes.parts[0], stripes.kind) + rest
    else:
        yield lead + f"{len(stripes.parts)} parts" + rest
        yield from (
            f"  up to {end_text(part.end)}: {describe(part, stripes.kind)}"
            for part in stripes.parts
        )


def _set(arguments: argparse.Namespace) -> int:
    from pario.fix.stripe.layout import inherit_stripes

    if arguments.inherit:
        for path in arguments.paths:
            _say("\n".join(_lines(inherit_stripes(path))))
        return 0
    wanted = _make_request(arguments)
    return max([_set_one(path, wanted) for path in arguments.paths])


def _set_one(path: str, wanted: Wanted) -> int:
    from pario.fix.stripe.layout import set_stripes

    old = Path(path).is_file()
    return _report(wanted, set_stripes(path, wanted), old)


def _report(wanted: Wanted, got: Stripes, old: bool) -> int:
    """Prints the stripes of a path; returns 1 if they differ from the request."""
    from pario.fix.stripe.layout import differences

    _say("\n".join(_lines(got)))
    other = differences(wanted, got)
    if other:
        more = (
            "; a file keeps the stripes it has: pario stripe restripe copies it to others"
            if old
            else ""
        )
        _say(f"pario stripe: {got.path}: {'; '.join(other)}{more}", sys.stderr)
    return 1 if other else 0


def _restripe(arguments: argparse.Namespace) -> int:
    from pario.fix.stripe.restripe import discard, restripe
    from pario.progress import Line

    if arguments.discard:
        for path in arguments.paths:
            _say(f"{path}: {'removed what was left' if discard(path) else 'nothing was left'}")
        return 0
    wanted, status = _make_request(arguments), 0
    for path in arguments.paths:
        require_path(path, "an existing file or directory")
    for path in arguments.paths:
        line = Line(path)
        try:
            outcome = restripe(path, wanted, line.show, arguments.threads, force=arguments.force)
        except KeyboardInterrupt:
            line.clear()
            _say(
                f"\npario stripe: {path} is unchanged; the same command continues the copy,"
                " --discard removes it",
                sys.stderr,
            )
            return 130
        finally:
            line.clear()
        _say("\n".join(_lines(outcome.stripes)) + ("" if outcome.moved else ", as it was"))
        for note in outcome.notes:
            _say(f"pario stripe: {note}", sys.stderr)
            status = 1
    return status


def _advise(arguments: argparse.Namespace) -> int:
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
        _say("\n".join(_advice(path, kind, expected, choice, lines)))
        if expected.files == 1:
            _say_prediction(path, expected, choice)
    if arguments.set:
        return _set_one(path, make_request(choice))
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
    _say(f"  predicted, with the measured rates of the file system: written in {chosen}{also}")


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
        _say("\n".join(_advice_table(found, arguments)))
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
        yield "\nFor new files in these directories (existing ones: pario stripe restripe):"
        yield from (f"  $ {line}" for own in lines.values() for line in own)
    elif all(advice.has is None for advice in shown):
        yield (
            "\nThe stripes that these files have are not in the log; --kind lustre (ceph, beegfs)"
            " prints the commands."
        )
    else:
        yield "\nNothing to change."
