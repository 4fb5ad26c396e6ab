"""Archives on other hosts: packed into, and unpacked from, ``host:path``.

A transfer has a directory of its own at both ends, beside the archive and beside the packed or
unpacked directory. A killed command leaves them; the same command continues with their contents and
removes them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pario import locks
from pario.errors import ParioError, raise_error
from pario.move.archive import Archive, Packing, pack
from pario.move.rsync import (
    HostPath,
    list_files,
    require_rsync,
    run_remotely,
    transfer,
)
from pario.progress import Show, show_progress
from pario.wording import printable

_MAGIC = b"PIOPACK1"

# Exit statuses of the scripts.
_NO_RSYNC, _EXISTS, _NO_ARCHIVE = 97, 98, 99
_BEGIN_SENDING = f"""
command -v rsync >/dev/null || exit {_NO_RSYNC}
[ ! -e "$1" ] && [ ! -L "$1" ] || exit {_EXISTS}
[ -d "$2" ] || {{ mkdir -- "$2" && rmdir -- "$2"; }}
"""
_MAKE_PART = '[ -d "$1" ] || mkdir -- "$1"'
# Removes files of an earlier archive. Two senders cannot publish under one name (-n).
_PUBLISH = f"""
target=$1 part=$2; shift 2
for path in "$part"/*; do
  case " $* " in (*" ${{path##*/}} "*) ;; (*) rm -rf -- "$path" || exit;; esac
done
sync -- "$part"/* || exit
mv -nT -- "$part" "$target" && [ ! -e "$part" ] || exit {_EXISTS}
sync -- "$target"
"""
_BEGIN_FETCHING = f"""
command -v rsync >/dev/null || exit {_NO_RSYNC}
[ -f "$1/index" ] || exit {_NO_ARCHIVE}
"""


@dataclass(frozen=True)
class Sending:
    """The result of packing to another host. ``packing``: None if an archive was sent."""

    packing: Packing | None
    size: int  # bytes of the archive
    sent: int  # bytes of it that were missing there


def send(directory: str, target: HostPath, transfers: int, **options: int) -> Sending:
    """Packs a directory into a new archive on another host, or sends an archive that exists, and
    shows the progress.

    ``options``: those of :func:`pack`. The archive appears when it is complete and on the disk.
    Raises ParioError that names host, path and cause, or the local file.
    """
    require_rsync()
    part = target.sibling(f".{target.name}.{_sender_of(directory)}.pario-transfer")
    _run(target, _BEGIN_SENDING, target.local, part.local)
    if _is_archive(directory):
        with show_progress(directory):
            Archive(directory).verify()
        return _send_archive(Path(directory), target, part, None, transfers)
    with _work_directory(directory) as work:
        with show_progress(directory) as show:
            packing = _pack_once(directory, work, show, options)
        return _send_archive(work / "pack", target, part, packing, transfers)


@contextmanager
def fetch(source: HostPath, output: str, transfers: int) -> Iterator[Path]:
    """Copies an archive from another host, and shows the progress. Yields the copy, beside the
    directory ``output`` into which the body unpacks it; it is removed when the body succeeds.

    Raises ParioError that names host, path and cause, or ``output`` if it exists.
    """
    require_rsync()
    if os.path.lexists(output):
        raise ParioError(f"{printable(output)} exists; expected the name of a new directory")
    _run(source, _BEGIN_FETCHING, source.local)
    with _work_directory(output) as work:
        copy = work / "pack"
        copy.mkdir(exist_ok=True)
        listing = list_files(source)
        with show_progress(str(source)) as show:
            transfer(source, copy, listing, transfers, show)
        for other in copy.iterdir():
            if other.name not in listing:
                other.unlink()
        yield copy


def _send_archive(
    archive: Path,
    target: HostPath,
    part: HostPath,
    packing: Packing | None,
    transfers: int,
) -> Sending:
    _run(target, _MAKE_PART, part.local)
    listing = list_files(archive)
    with show_progress(str(target)) as show:
        sent = transfer(archive, part, listing, transfers, show)
    _run(target, _PUBLISH, target.local, part.local, *listing)
    return Sending(packing, sum(size for size, _ in listing.values()), sent)


def _run(place: HostPath, script: str, *arguments: str) -> None:
    """Runs a script of this module on a host. Raises ParioError for each of its exit statuses."""
    status, reason = run_remotely(place.host, script, *arguments)
    if not status:
        return
    texts = {
        _NO_RSYNC: "rsync is not installed there",
        _EXISTS: "it exists; expected the name of a new directory",
        _NO_ARCHIVE: "no such archive; expected a directory written by pario pack",
    }
    named = printable(place.host if status == _NO_RSYNC else str(place))
    raise ParioError(f"{named}: {texts.get(status, reason)}")


def _sender_of(directory: str) -> str:
    """Digits that differ between senders, so that two have different parts of one archive."""
    name = f"{socket.gethostname()}:{os.path.realpath(directory)}"
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:8]


def _is_archive(directory: str) -> bool:
    try:
        with Path(directory, "index").open("rb") as index:
            return index.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _pack_once(directory: str, work: Path, show: Show, options: Mapping[str, int]) -> Packing:
    """Packs a directory, unless a killed command has packed it and it has not changed since."""
    archive, begun = work / "pack", work / "begun"
    if archive.exists():
        if _last_change(directory) < begun.stat().st_mtime_ns:
            return _describe_archive(archive)
        shutil.rmtree(archive)
    begun.touch()
    return pack(directory, archive, show=show, **options)


def _last_change(directory: str) -> int:
    """The newest time of change in a tree, which no program can set, in nanoseconds."""
    newest = os.stat(directory).st_ctime_ns  # noqa: PTH116
    for _, directories, files, descriptor in os.fwalk(directory, onerror=raise_error):
        for name in (*directories, *files):
            facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            newest = max(newest, facts.st_ctime_ns)
    return newest


def _describe_archive(path: Path) -> Packing:
    archive = Archive(path)
    size = sum(member.size for member in archive if stat.S_ISREG(member.mode))
    packed = sum(shard.stat().st_size for shard in path.glob("*.tar.zst"))
    return Packing(len(archive), size, packed, archive.shards)


@contextmanager
def _work_directory(beside: str) -> Iterator[Path]:
    """The directory of a transfer, for this process alone; removed when the body succeeds, or has
    left nothing with which the next command could continue."""
    place = Path(os.path.abspath(beside))  # noqa: PTH100  it may be a link
    work = place.parent / f".{place.name}.pario-transfer"
    descriptor = _lock(work)
    done = False
    try:
        yield work
        done = True
    finally:
        if done or not any(work.glob("pack/*")):
            shutil.rmtree(work)
        os.close(descriptor)


def _lock(work: Path) -> int:
    """Makes and locks a directory. Raises ParioError if another process uses it."""

    def open_directory() -> int:
        work.mkdir(mode=0o700, exist_ok=True)
        return os.open(work, os.O_RDONLY | os.O_DIRECTORY)

    try:
        return locks.hold(work, open_directory, alone=True)
    except FileNotFoundError:
        raise ParioError(f"{printable(str(work.parent))}: no such directory") from None
    except BlockingIOError:
        raise ParioError(f"{printable(str(work))} is in use by another transfer") from None
