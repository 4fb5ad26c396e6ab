"""Files of many records: index, pack, shuffle, look into and check them (docs/records.md)."""

from __future__ import annotations

import argparse
import os
from typing import Any

from pario.cli.arguments import add_action, add_count, add_flag, add_output, add_value
from pario.cli.numbers import positive, positive_size, size
from pario.cli.one_process import RECORDS
from pario.cli.paths import path_or_url_text, path_text, require_path
from pario.messages import print_note, warnings_as_notes
from pario.wording import INTERRUPTED

FORMATS = (
    "lines",
    "fixed",
    "tfrecord",
    "tar",
    "raw",
    "directory",
    "prec",
    "parquet",
    "arrayrecord",
)

#: Actions whose arguments are local files or directories.
_LOCAL = ("pack", "bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Subcommands and options of ``pario records``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_index(actions)
    _add_pack(actions)
    _add_shuffle(actions)
    _add_looks(actions)
    _add_conversions(actions)
    text = "measure whether a shuffled copy pays on this device, or reading at random is as fast"
    bench = _action(actions, "bench", text, [("path", "a file of at least 200 MB on the device")])
    add_flag(bench, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; the exit status is 130 if it was interrupted."""
    from pario._native import KeptObjects

    try:
        with KeptObjects(), warnings_as_notes("pario records"):
            return _run_action(arguments)
    except KeyboardInterrupt:
        print_note("pario records: interrupted; nothing was left half done")
        return INTERRUPTED


def _run_action(arguments: argparse.Namespace) -> int:
    """Runs the subcommand: those that write files by all ranks of a launcher, others alone."""
    name = f"records {arguments.action}"
    paths = getattr(arguments, "paths", None) or [arguments.path]

    def require_inputs() -> None:
        for path in paths:
            require_path(path, "a file or directory of records")

    if name not in RECORDS:
        require_inputs()
        from pario.cli import records_look

        return records_look.ACTIONS[arguments.action](arguments)
    from pario.cli import records_make, records_shuffle
    from pario.cli.ranks import ranks_here

    actions = {**records_make.ACTIONS, "shuffle": records_shuffle.shuffle}
    with ranks_here(os.environ, name) as ranks:
        ranks.agree("the inputs", require_inputs)
        return actions[arguments.action](arguments, ranks)


def _action(
    actions: Any, name: str, text: str, paths: list[tuple[str, str]]
) -> argparse.ArgumentParser:
    parser = add_action(actions, name, text)
    for path, meaning in paths:
        parser.add_argument(
            path,
            nargs="+" if path.endswith("s") else None,
            type=path_text if name in _LOCAL else path_or_url_text,
            metavar=path.removesuffix("s").upper(),
            help=meaning,
        )
    return parser


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="",
        help="format of the records (default: by name and content of the file)",
    )
    add_value(parser, "--size", size, "SIZE", "bytes of each record (fixed)", 0)
    add_flag(parser, "--drop-last", "leave out an incomplete last record (fixed)")
    parser.add_argument(
        "--lengths",
        type=path_text,
        metavar="FILE",
        help="lengths of the records (raw): .npy, one number per line (.txt), or 64-bit numbers",
    )


def _add_column(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--column",
        default="",
        metavar="NAME",
        help="column of Parquet whose bytes or text are the records, instead of rows as JSON",
    )


def _add_verification(parser: argparse.ArgumentParser) -> None:
    reaction = parser.add_mutually_exclusive_group()
    text = "reaction to damaged records: end the command (raise, the default), or skip them"
    reaction.add_argument("--errors", choices=("raise", "skip"), default="raise", help=text)
    reaction.add_argument(
        "--no-verify",
        dest="errors",
        action="store_const",
        const="ignore",
        help="compare no checksums of records",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    text = "a file or URL, which has its name when it is whole"
    add_output(parser, "FILE", text, path_or_url_text, required=True)


def _add_index(actions: Any) -> None:
    parser = _action(
        actions,
        "index",
        "write indexes of the records beside their files (FILE.pidx)",
        [("paths", "a file, or a directory")],
    )
    _add_format(parser)
    add_count(parser, "--threads", 4, "threads (default 4)")
    add_flag(parser, "--update", "only the records that were appended since the index was made")
    _add_verification(parser)


def _add_pack(actions: Any) -> None:
    parser = _action(
        actions,
        "pack",
        "pack the files of a directory into one file, with names and attributes",
        [("path", "a directory")],
    )
    _add_output(parser)
    add_count(parser, "--threads", 4, "threads (default 4)")
    add_flag(parser, "--shuffle", "in random order")
    add_value(parser, "--seed", number, "N", "of the random order (default 0)", 0)


def _add_shuffle(actions: Any) -> None:
    text = (
        "write the records of a file, or of several, in random order; files may be larger than"
        " memory"
    )
    parser = _action(actions, "shuffle", text, [("paths", "a file of records")])
    _add_output(parser)
    _add_format(parser)
    add_value(parser, "--seed", number, "N", "random seed: same seed, same bytes (default 0)", 0)
    parser.add_argument(
        "--memory",
        type=positive_size,
        default=0,
        metavar="SIZE",
        help="memory to use, page cache included (default: half)",
    )
    parser.add_argument(
        "--tmp",
        type=path_text,
        metavar="DIR",
        help="where the temporary file goes (default: beside the output)",
    )
    parser.add_argument("--compress", choices=("lz4",), help="the temporary file")
    shards = parser.add_mutually_exclusive_group()
    add_count(shards, "--shards", 1, "write N files, FILE-00000-of-0000N and so on")
    add_value(shards, "--shard-size", positive_size, "SIZE", "write files of about SIZE each", 0)
    add_count(parser, "--threads", 0, "threads (default: chosen by the plan)")
    _add_verification(parser)
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--way",
        choices=("automatic", "memory", "gather", "buckets"),
        default="automatic",
        help="instead of the best one",
    )
    text = (
        "write each record once, in buckets that pario.records.Loader puts in order: half the"
        " reading and writing"
    )
    way.add_argument("--fused", dest="way", action="store_const", const="fused", help=text)
    add_flag(parser, "--explain", "print the plan and its reasons, and do nothing")


def _add_looks(actions: Any) -> None:
    stat = _action(
        actions,
        "stat",
        "count the records, and describe their lengths",
        [("paths", "a file of records")],
    )
    add_flag(stat, "--json", "print JSON")
    head = _action(actions, "head", "print the first records", [("path", "a file of records")])
    head.add_argument(
        "-n", "--number", type=positive, default=10, metavar="N", help="how many (default 10)"
    )
    _add_column(head)
    _add_verification(head)
    get = _action(
        actions,
        "get",
        "write the data of records to standard output",
        [("path", "a file of records")],
    )
    get.add_argument(
        "records",
        nargs="+",
        type=int,
        metavar="RECORD",
        help="its number, from 0 on; -1 is the last",
    )
    _add_column(get)
    _add_verification(get)
    verify = _action(
        actions,
        "verify",
        "read everything and verify all checksums",
        [("paths", "a file of records")],
    )
    add_count(verify, "--threads", 4, "threads (default 4)")


def _add_conversions(actions: Any) -> None:
    split = _action(
        actions, "split", "divide a file into several, in order", [("path", "a file of records")]
    )
    split.add_argument("--shards", type=positive, required=True, metavar="N", help="how many files")
    _add_output(split)
    merge = _action(
        actions,
        "merge",
        "join files of one format, in the order given",
        [("paths", "a file of records")],
    )
    _add_output(merge)
    text = "write records in another format"
    convert = _action(actions, "convert", text, [("paths", "a file of records, or a directory")])
    _add_output(convert)
    _add_column(convert)
    for parser in (split, merge, convert):
        _add_verification(parser)
    convert.add_argument(
        "--to",
        choices=("lines", "tfrecord", "tar", "raw", "prec"),
        required=True,
        help="format of the output",
    )


def number(text: str) -> int:
    """A number from 0 to 2^64 - 1."""
    if not text.isdecimal() or int(text) >= 1 << 64:
        raise argparse.ArgumentTypeError(f"{text}; expected a number from 0 to 2^64 - 1")
    return int(text)
