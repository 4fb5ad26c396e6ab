"""``pario checkpoint``: lists, shows, verifies, compares, merges, draws and removes checkpoints
(docs/checkpoint.md)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pario import wording
from pario.cli.arguments import add_action, add_count, add_flag, add_output, add_value
from pario.cli.numbers import positive, positive_size
from pario.cli.paths import path_or_url_text, path_text
from pario.cli.standard import print_finding
from pario.messages import print_json, print_line, print_note
from pario.paths import is_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Subcommands and options of ``pario checkpoint``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _action(actions, "ls", "list the checkpoints of a directory", "path")
    shown = _action(actions, "show", "show the contents of a checkpoint", "path")
    add_flag(shown, "--quick", "read no arrays: without least, mean and most")
    for one in (listed, shown):
        add_flag(one, "--json", "print JSON")
    verify = _action(actions, "verify", "read everything and compare it with the checksums", "path")
    add_flag(verify, "--all", "all checkpoints of the directory, not only the newest")
    diff = _action(actions, "diff", "show the differences of two checkpoints", "path", "other")
    diff.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="X",
        help="relative difference of numbers that does not count (default 0)",
    )
    _add_prune(actions)
    merge = _action(
        actions,
        "merge",
        "make one file, of the newest format; by several ranks: mpiexec -n N pario ...",
        "path",
    )
    add_output(merge, "FILE", "(default: the file replaces the parts)", path_text)
    add_count(
        merge,
        "--threads",
        None,
        "threads of each process (default: 4; 1 if several processes merge)",
    )
    convert = _action(
        actions,
        "convert",
        "convert the state of a checkpoint of pario, PyTorch (DCP), Orbax, or of safetensors files",
        "source",
        "target",
    )
    convert.add_argument(
        "--to",
        choices=["pario", "dcp", "orbax", "safetensors"],
        help="format of TARGET (default: safetensors for this ending, else pario)",
    )
    add_value(convert, "--select", str, "KEY", "only this part of the state, such as model", "")
    convert.add_argument(
        "--shard-size",
        "--shard-bytes",  # the name of earlier versions
        dest="shard_bytes",
        type=positive_size,
        default=5 * 10**9,
        metavar="SIZE",
        help="most bytes of each safetensors file in a directory (default: 5000000000)",
    )
    convert.add_argument(
        "--compress", choices=["zstd"], help="compress the arrays of a checkpoint of pario"
    )
    add_flag(
        convert,
        "--allow-pickle",
        "also load pickles that may run any code; only for checkpoints that you trust",
    )
    plot = _action(
        actions,
        "plot",
        "draw an array, or a slice of it, as PNG (needs matplotlib)",
        "path",
        "array",
    )
    add_output(plot, "FILE", "(default: ARRAY.png)", path_text)
    add_value(plot, "--axis", int, "N", "the axis to cut, from 0 on (default 0)", 0)
    add_value(plot, "--index", int, "N", "the index of the cut (default: in the middle)")
    for one in (shown, verify, merge, convert, plot):
        add_value(one, "--step", int, "N", "step in the directory (default: the newest)")


def _add_prune(actions: Any) -> None:
    prune = _action(actions, "prune", "remove the checkpoints that no rule keeps", "path")
    prune.add_argument(
        "--keep",
        type=positive,
        required=True,
        metavar="N",
        help="keep the newest N; damaged ones do not count",
    )
    add_count(prune, "--every", None, "also keep steps that are multiples of N")
    add_count(prune, "--best", None, "also keep those with the N best values of --metric")
    add_value(prune, "--metric", str, "NAME", "attribute of the checkpoints with a number", "")
    add_flag(prune, "--highest", "the highest values are the best, not the lowest")


#: Actions that change a directory, which must be local.
_LOCAL = ("merge", "prune")


def _action(actions: Any, name: str, text: str, *paths: str) -> argparse.ArgumentParser:
    parser = add_action(actions, name, text)
    for path in paths:
        kind, text = (
            (str, "array")
            if path == "array"
            else (path_text, "a directory of checkpoints, or a file")
            if name in _LOCAL
            else (path_or_url_text, "a directory of checkpoints, or a file, or the URL of one")
        )
        parser.add_argument(path, type=kind, metavar=path.upper(), help=text)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand. Returns 1 if verify or diff have found something."""
    actions = {
        "ls": _ls,
        "show": _show,
        "verify": _verify,
        "diff": _diff,
        "prune": _prune,
        "merge": _merge,
        "convert": _convert,
        "plot": _plot,
    }
    return actions[arguments.action](arguments)


#: Copies of objects, until the command ends.
_copies: list[Any] = []


def _found(path: str, step: int | None = None) -> Any:
    """The header of a checkpoint. Prints messages about skipped ones to standard error."""
    from pario.checkpoint.header import find
    from pario.checkpoint.remote import Copies

    if is_url(path):
        _copies.append(Copies(path))
        header, skipped = _copies[-1].find(step, verify=True)
    else:
        header, skipped = find(path, step)
    for message in skipped:
        print_note(f"pario checkpoint: {message}")
    return header


def _ls(arguments: argparse.Namespace) -> int:
    from pario.checkpoint.store import Store

    if is_url(arguments.path):
        rows = _rows_of_objects(arguments.path)
    else:
        store = Store(arguments.path)
        rows = [
            _row(found, _state(found.path))
            for found in store.complete() or _itself(Path(arguments.path))
        ]
        rows += [_row(found, "not finished") for found in store.list_unfinished()]
    if arguments.json:
        print_json(rows)
        return 0 if rows else 1
    for row in rows:
        print_line(
            f"{row['step']:>10}  {wording.size(row['bytes']):>8}  {row['saved']} "
            f" {row['file']}  {row['state']}".rstrip()
        )
    if not rows:
        is_there = is_url(arguments.path) or Path(arguments.path).exists()
        what = "no checkpoints" if is_there else "no such file or directory"
        print_note(f"{arguments.path}: {what}")
    return 0 if rows else 1


def _itself(path: Path) -> list[Any]:
    """The checkpoint at a path; empty if the path is a directory of checkpoints."""
    from pario.checkpoint.errors import CheckpointError
    from pario.checkpoint.header import read_header
    from pario.checkpoint.identity import read_identity
    from pario.checkpoint.store import Found, document

    try:
        header = read_header(path)
    except CheckpointError:
        return []
    identity = read_identity(document(path))
    generation, save = (identity.generation, identity.save) if identity else (0, "")
    return [Found(header.step, path, generation, save)]


def _rows_of_objects(url: str) -> list[dict[str, Any]]:
    """The rows of listed checkpoints; their bytes are not read."""
    from pario import objects
    from pario.checkpoint.remote import open_store

    rows = []
    for found in open_store(url).complete():
        try:
            size, modified, _ = objects.facts_of(f"{url.rstrip('/')}/{found.path.name}")
            rows.append(_row(found, "", size, modified))
        except OSError as error:
            rows.append(_row(found, f"damaged: {error.strerror}", 0, 0))
    return rows


def _row(
    found: Any, state: str, size: int | None = None, modified: int | None = None
) -> dict[str, Any]:
    from datetime import UTC, datetime

    seconds = (found.modified if modified is None else modified) / 1e9
    when = datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")
    return {
        "step": found.step,
        "generation": found.generation,
        "file": found.path.name,
        "bytes": found.size if size is None else size,
        "saved": when,
        "state": state,
    }


def _state(path: Any) -> str:
    from pario.checkpoint.errors import CheckpointError
    from pario.checkpoint.header import read_header

    try:
        read_header(path)
    except CheckpointError as error:
        return f"damaged: {error}"
    return ""


def _show(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from pario.checkpoint.examine import figures

    header = _found(arguments.path, arguments.step)
    rows = []
    for name, entry in header.entries.items():
        layout = entry.layout
        facts = None if arguments.quick else figures(header, entry)
        rows.append(
            {
                "name": name,
                "shape": list(layout.shape),
                "dims": list(layout.dims),
                "type": layout.note or str(layout.dtype),
                "bytes": layout.nbytes,
                "stored_bytes": entry.stored_bytes,
                "blocks": len(layout.blocks),
                "attrs": dict(layout.attrs),
                **(asdict(facts) if facts else {}),
            }
        )
    if arguments.json:
        document = {
            "path": header.name,
            "format": header.format,
            "step": header.step,
            "attrs": header.attrs,
            "about": header.about,
            "arrays": rows,
        }
        print_json(document, lambda value: value.tolist())
        return 0
    total, stored = (sum(row[size] for row in rows) for size in ("bytes", "stored_bytes"))
    compressed = f" ({_compression(total, stored)})" if stored != total else ""
    print_line(f"{header.name}: step {header.step}, {wording.size(total)}{compressed}")
    about = header.about
    if about:
        print_line(
            f"  saved {about['saved']} by {wording.plural(about['ranks'], 'rank')} on"
            f" {', '.join(about['hosts'])}, pario {about['pario']}"
        )
    for name, value in header.attrs.items():
        print_line(f"  {name} = {value!r}")
    _print_arrays(rows)
    return 0


def _print_arrays(rows: list[dict[str, Any]]) -> None:

    width = max((len(wording.printable(row["name"])) for row in rows), default=0)
    for row in rows:
        shape = (
            " × ".join(
                f"{length} {dim}".rstrip()
                for length, dim in zip(row["shape"], row["dims"], strict=True)
            )
            or "one"
        )
        blocks = wording.plural(row["blocks"], "block") if row["blocks"] else ""
        if row["stored_bytes"] != row["bytes"]:
            blocks += f"  {_compression(row['bytes'], row['stored_bytes'])}"
        print(
            f"  {wording.printable(row['name']):<{width}}  {row['type']:<8}"
            f" {wording.size(row['bytes']):>8}  {shape}  {blocks}".rstrip()
        )
        if row.get("least") is not None:
            missing = (
                f", {wording.count(row['not_numbers'])} not numbers" if row["not_numbers"] else ""
            )
            print(
                f"  {'':<{width}}  least {row['least']:.6g}, mean {row['mean']:.6g}, most"
                f" {row['most']:.6g}{missing}"
            )


def _compression(size: int, stored: int) -> str:
    """The size of compressed elements in the file, and their ratio."""
    ratio = size / stored
    text = f"{ratio:.3g}" if ratio < 1000 else wording.count(ratio)
    return f"{wording.size(stored)} compressed, ratio {text}"


def _verify(arguments: argparse.Namespace) -> int:
    from pario.checkpoint.errors import CheckpointError
    from pario.checkpoint.header import read_header
    from pario.checkpoint.remote import open_store

    bad, base = 0, arguments.path.rstrip("/") if is_url(arguments.path) else ""
    found = open_store(arguments.path).complete() if arguments.all else []
    paths = [f"{base}/{one.path}" if base else str(one.path) for one in found]
    for path in paths or [arguments.path]:
        try:
            is_listed = paths and not base
            bad += _verify_one(read_header(path) if is_listed else _found(path, arguments.step))
        except CheckpointError as error:
            if not paths:
                raise
            print_finding(str(error))
            bad += 1
    return 1 if bad else 0


def _verify_one(header: Any) -> int:
    from pario.checkpoint.examine import damages
    from pario.progress import RateLine

    line, bad = RateLine(header.name), 0
    for text in damages(header, line.show):
        line.clear()
        print_finding(f"{header.name}: {text}")
        bad += 1
    line.clear()
    blocks = sum(len(entry.layout.blocks) for entry in header.entries.values() if len(entry.sums))
    if not blocks:
        print_finding(f"{header.name}: has no checksums: it was not saved by pario")
    elif not bad:
        arrays = wording.plural(len(header.entries), "array")
        print_finding(f"{header.name}: {wording.plural(blocks, 'block')} of {arrays} are well")
    return bad


def _diff(arguments: argparse.Namespace) -> int:
    from pario.checkpoint.examine import differences
    from pario.progress import RateLine

    one, other = _found(arguments.path), _found(arguments.other)
    line, count = RateLine(one.name), 0
    for text in differences(one, other, arguments.tolerance, line.show):
        line.clear()
        print_finding(text)
        count += 1
    line.clear()
    return 1 if count else 0


def _prune(arguments: argparse.Namespace) -> int:
    from pario.checkpoint.errors import CheckpointError
    from pario.checkpoint.retention import Keep, Retention
    from pario.checkpoint.store import Store

    rules = Keep(
        arguments.keep, arguments.every, arguments.best, arguments.metric, arguments.highest
    )
    if not Path(arguments.path).is_dir():
        raise CheckpointError(f"{arguments.path}: no such directory")
    if _itself(Path(arguments.path)):
        raise CheckpointError(f"{arguments.path}: is a checkpoint; expected a directory of them")
    store, retention = Store(arguments.path), Retention(rules)
    store.claim(torn=False)
    try:
        retention.require_metrics(store.complete())
        for path in store.prune(
            lambda found: retention.select_removable(found, lambda one: not _state(one.path))
        ):
            print_line(f"removed {path}")
    finally:
        store.release()
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    """Merges a checkpoint; only the first rank prints."""
    import os

    from pario.checkpoint.merge import merge
    from pario.cli.ranks import ranks_here, show_together

    with ranks_here(os.environ, "checkpoint merge") as ranks:
        with show_together(arguments.path, ranks) as show:
            path = merge(
                ranks,
                lambda: _found(arguments.path, arguments.step),
                arguments.output,
                threads=arguments.threads or (4 if ranks.size == 1 else 1),
                show=show,
            )
        if ranks.is_first:
            print_line(str(path))
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    from pario.checkpoint.convert import convert

    path, others = convert(
        arguments.source,
        arguments.target,
        arguments.to or "",
        step=arguments.step,
        select=arguments.select,
        allow_pickle=arguments.allow_pickle,
        shard_bytes=arguments.shard_bytes,
        compress=arguments.compress,
    )
    if others:
        print_note(
            f"pario checkpoint: {wording.plural(len(others), 'value')} without elements left out:"
            f" {', '.join(others[:5])}{', ...' if others[5:] else ''}"
        )
    print_line(str(path))
    return 0


def _plot(arguments: argparse.Namespace) -> int:
    from pario.checkpoint.examine import slice_of
    from pario.see.report.picture import pyplot, save

    plotter = pyplot()
    header = _found(arguments.path, arguments.step)
    data = slice_of(header, arguments.array, arguments.axis, arguments.index)
    figure, axes = plotter.subplots(figsize=(8, 6))
    if data.ndim == 1:
        axes.plot(data)
    else:
        figure.colorbar(axes.imshow(data, origin="lower", aspect="auto"))
    axes.set_title(f"{arguments.array}, step {header.step}")
    output = arguments.output or arguments.array.replace("/", "-") + ".png"
    save(figure, Path(output))
    print(output)
    return 0
