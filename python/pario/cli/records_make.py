"""``pario records``: actions that write files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.ranks import find_first_text, require_local, require_shared, show_together
from pario.cli.records_look import say_skipped
from pario.errors import ParioError
from pario.messages import print_note
from pario.paths import is_url
from pario.progress import show_progress
from pario.ranks import OneRank, Ranks
from pario.scratch import scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pario.records.foreign import Foreign


def format_of(path: str, asked: str) -> str:
    """The requested format, or that of the file's suffix or first bytes. Refuses formats of
    groups."""
    from pario._native import guess_record_format
    from pario.records.foreign import refuse, refuse_compressed

    refuse(path, asked)
    found = asked or guess_record_format(os.fsencode(path))
    if not found and not is_url(path):
        os.stat(path)  # noqa: PTH116  says so if there is no such file
    if found in ("", "lines"):
        refuse_compressed(path)
    if not found:
        raise ParioError(
            f"{wording.printable(path)}: its format is not known; say --format lines, or which"
        )
    return found


def known_format(path: str, asked: str) -> str:
    """As :func:`format_of`, else the format of the index of a file whose format does not show."""
    from pario._native import guess_record_format

    if asked or guess_record_format(os.fsencode(path)) or not _has_index(path):
        return format_of(path, asked)
    return _format_of_index(path)


def _lengths(path: str | None) -> NDArray[Any]:
    import numpy as np

    from pario.records.lengths import read_lengths

    return read_lengths(path) if path else np.empty(0, dtype=np.uint64)


def _index_one(
    path: str, arguments: argparse.Namespace, ranks: Ranks, *, threads: int, update: bool
) -> None:
    """Writes one index. ``arguments``: format, size, lengths and errors as of ``pario records
    index``. Collective if there are several ranks, which must be for a file of lines."""
    from pario._native import write_record_index
    from pario.records.foreign import foreign_format

    if foreign := foreign_format(path, arguments.format):
        _index_groups(path, foreign)
        return
    with show_together(path, ranks) as show:
        kind = format_of(path, arguments.format)
        lengths = _lengths(arguments.lengths)
        form = (kind, arguments.size, arguments.drop_last, lengths, arguments.errors)
        records, size, place = write_record_index(
            os.fsencode(path), form, threads, update, show, ranks
        )
    if not ranks.is_first:
        return
    each = f" ({_bytes_each(size / records)} B each)" if records else ""
    index = f"index of {wording.size(size)}{each}{_elsewhere(path, place)}"
    print_note(f"{path}: {wording.plural(records, 'record')} ({kind}), {index}")


def _bytes_each(size: float) -> str:
    return f"{size:.2g}" if size < 99.5 else wording.count(size)


def _elsewhere(path: str, place: bytes) -> str:
    """Names the index file if it is not beside its file."""
    beside = path.rstrip("/") + ".pidx"
    return "" if os.fsdecode(place) == beside else f" in {os.fsdecode(place)}"


def _index_groups(path: str, foreign: Foreign) -> None:
    from pario.records.groups import write_index

    with show_progress(path):
        records, groups, size, place = write_index(path, foreign)
    found = (
        f"{wording.plural(records, 'record')} ({foreign.name}) in {wording.plural(groups, 'group')}"
    )
    print_note(f"{path}: {found}, index of {wording.size(size)}{_elsewhere(path, place)}")


def _index(arguments: argparse.Namespace, ranks: Ranks) -> int:
    """The ranks index large files of lines together, and each rank some of the other files."""
    require_shared(ranks, arguments.paths, arguments.paths[0] + ".pidx")
    divided = _find_divided(arguments, ranks)
    for path in divided:
        _index_one(path, arguments, ranks, threads=arguments.threads, update=arguments.update)
    others = [path for path in arguments.paths if path not in divided]

    def work() -> None:
        for path in others[ranks.rank :: ranks.size]:
            _index_one(
                path, arguments, OneRank(), threads=arguments.threads, update=arguments.update
            )

    ranks.agree("pario records index", work)
    return 0


def _find_divided(arguments: argparse.Namespace, ranks: Ranks) -> list[str]:
    """The local files of lines that are larger than a rank's share of all files. Collective."""
    if ranks.size == 1:
        return []

    def find() -> list[str]:
        if not ranks.is_first:
            return []
        sizes = {}
        for path in arguments.paths:
            with show_progress(path):
                if not is_url(path):
                    sizes[path] = Path(path).stat().st_size
        share = sum(sizes.values()) / ranks.size
        return [
            path
            for path, size in sizes.items()
            if size > share and _is_of_lines(path, arguments.format)
        ]

    return ranks.together("the files of lines", find, lambda found: found[0])


def _is_of_lines(path: str, asked: str) -> bool:
    from pario.records.foreign import foreign_format

    return not foreign_format(path, asked) and format_of(path, asked) == "lines"


@contextmanager
def local_outputs(outputs: Sequence[bytes], directory: str = "") -> Iterator[list[bytes]]:
    """The local files that become these outputs: for URLs temporary files in ``directory``, or in
    that of ``TMPDIR``, which are uploaded after the body, each after its index."""
    from pario import objects

    if not objects.is_url(os.fsdecode(outputs[0])):
        yield list(outputs)
        return
    with TemporaryDirectory(dir=directory or None, prefix="pario-records-") as temporary:
        names = {os.fsencode(Path(temporary, Path(os.fsdecode(one)).name)): one for one in outputs}
        yield list(names)
        for name, url in names.items():
            for ending in (b".pidx", b""):
                if os.path.exists(name + ending):  # noqa: PTH110
                    objects.upload(os.fsdecode(name + ending), os.fsdecode(url + ending))


def _pack(arguments: argparse.Namespace, ranks: Ranks) -> int:
    from pario._native import pack_records

    require_local(arguments.output, ranks)
    require_shared(ranks, [arguments.path], arguments.output)
    outputs = [os.fsencode(arguments.output)]
    with show_together(arguments.output, ranks) as show, local_outputs(outputs) as (output,):
        records = pack_records(
            os.fsencode(arguments.path),
            output,
            arguments.shuffle,
            arguments.seed,
            arguments.threads,
            show,
            ranks,
        )
        if not ranks.is_first:
            return 0
        size = Path(os.fsdecode(output)).stat().st_size
    print_note(f"{arguments.output}: {wording.plural(records, 'file')}, {wording.size(size)}")
    return 0


def shard_names(output: str, shards: int) -> list[bytes]:
    """``out.txt`` unchanged if there is one shard; else ``out-00000-of-00004.txt`` and so on."""
    if shards == 1:
        return [os.fsencode(output)]
    stem, ending = os.path.splitext(output)  # noqa: PTH122  the directory stays as it is written
    return [os.fsencode(f"{stem}-{number:05d}-of-{shards:05d}{ending}") for number in range(shards)]


def index_missing(arguments: argparse.Namespace) -> None:
    """Makes the indices that the inputs lack."""
    for path in arguments.paths:
        if not _has_index(path):
            _index_one(path, arguments, OneRank(), threads=4, update=False)


def _has_index(path: str) -> bool:
    """True if an index is beside the file, in it, or in the cache directory."""
    from pario._native import find_record_index

    return bool(find_record_index(os.fsencode(path)))


def raise_file_limit(files: int) -> None:
    """Raises the limit of open files for shards written at the same time. Raises ParioError if the
    hard limit is too low."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = files + 64
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise ParioError(f"{files} shards are more files than may be open: {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _convert_into(
    paths: Sequence[str], outputs: list[bytes], kind: str, errors: str, ranks: Ranks
) -> int:
    from pario._native import convert_records

    name = os.fsdecode(outputs[0])
    raise_file_limit(2 * len(outputs))
    with show_together(name, ranks) as show, local_outputs(outputs) as files:
        inputs = [os.fsencode(path) for path in paths]
        records, skipped, first = convert_records(inputs, files, kind, errors, show, ranks)
    first = find_first_text(ranks, first)
    if not ranks.is_first:
        return 0
    more = f" and {len(outputs) - 1} more files" if len(outputs) > 1 else ""
    print_note(f"{name}{more}: {wording.plural(records, 'record')} ({kind})")
    say_skipped(name, skipped, first)
    return 0


def _prepare(arguments: argparse.Namespace, paths: Sequence[str], ranks: Ranks) -> list[str]:
    """Makes missing indexes of files, on the first rank; returns the formats of the files.
    Collective."""
    require_local(arguments.output, ranks)
    require_shared(ranks, paths, arguments.output)
    return ranks.together(
        "the indexes of the inputs",
        lambda: _index_files(paths, arguments.errors) if ranks.is_first else [],
        lambda found: found[0],
    )


def _index_files(paths: Sequence[str], errors: str) -> list[str]:
    """Makes missing indexes of files; returns the formats of the files."""
    from pario.records.foreign import refuse

    plain = argparse.Namespace(format="", size=0, drop_last=False, lengths=None, errors=errors)
    kinds = []
    for path in paths:
        refuse(path)
        if not _has_index(path) and format_of(path, "") != "prec":
            _index_one(path, plain, OneRank(), threads=4, update=False)
        kinds.append(_format_of_index(path))
    return kinds


def _format_of_index(path: str) -> str:
    from pario._native import open_records

    with show_progress(path):
        return open_records(os.fsencode(path), False).format


def _split(arguments: argparse.Namespace, ranks: Ranks) -> int:
    (kind,) = _prepare(arguments, [arguments.path], ranks)
    outputs = shard_names(arguments.output, arguments.shards)
    return _convert_into([arguments.path], outputs, _writable(kind), arguments.errors, ranks)


def _merge(arguments: argparse.Namespace, ranks: Ranks) -> int:
    kinds = set(_prepare(arguments, arguments.paths, ranks))
    if len(kinds) > 1:
        raise ParioError(
            f"the files are of several formats: {', '.join(sorted(kinds))}; pario records convert"
            " writes them in one"
        )
    outputs = [os.fsencode(arguments.output)]
    kind = _writable(kinds.pop())
    return _convert_into(arguments.paths, outputs, kind, arguments.errors, ranks)


def _writable(kind: str) -> str:
    return "prec" if kind == "directory" else kind


def _convert(arguments: argparse.Namespace, ranks: Ranks) -> int:
    from pario.records.foreign import foreign_format

    own = [path for path in arguments.paths if not foreign_format(path)]
    if arguments.column and own:
        raise ParioError(f"{own[0]}: --column is for Parquet")
    _prepare(arguments, own, ranks)
    with ExitStack() as temporary:

        def find_paths() -> list[str]:
            if not ranks.is_first:
                return []
            return [
                path if path in own else temporary.enter_context(_as_raw(path, arguments))
                for path in arguments.paths
            ]

        paths = ranks.together("the inputs", find_paths, lambda found: found[0])
        outputs = [os.fsencode(arguments.output)]
        return _convert_into(paths, outputs, arguments.to, arguments.errors, ranks)


@contextmanager
def _as_raw(path: str, arguments: argparse.Namespace) -> Iterator[str]:
    """Copies the records of a foreign format to a raw file beside the output, for the body."""
    from array import array

    import numpy as np

    from pario._native import write_record_index
    from pario.records.foreign import foreign_format
    from pario.records.groups import GroupedFile

    found = foreign_format(path)
    assert found
    lengths = array("Q")
    skipped: list[tuple[int, str]] = []
    output = arguments.output
    directory = Path(gettempdir()) if is_url(output) else Path(output).parent
    name = Path(path).name
    with (
        scratch(directory, name, interrupts=False) as folder,
        (folder / name).open("wb") as raw,
    ):
        with show_progress(path):
            file = GroupedFile(path, found, arguments.column, verify=arguments.errors != "ignore")
            for memory, offsets in file.all_pieces(skipped if arguments.errors == "skip" else None):
                raw.write(memory[offsets[0] : offsets[-1]].data)
                lengths.extend(np.diff(offsets).tolist())
        say_skipped(path, sum(records for records, _ in skipped), skipped[0][1] if skipped else "")
        raw.flush()
        form = ("raw", 0, False, np.array(lengths), "raise")
        write_record_index(os.fsencode(raw.name), form, 1, False, lambda *_: None, OneRank())
        yield raw.name


ACTIONS: dict[str, Callable[[argparse.Namespace, Ranks], int]] = {
    "index": _index,
    "pack": _pack,
    "split": _split,
    "merge": _merge,
    "convert": _convert,
}
