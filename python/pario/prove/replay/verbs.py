"""The verbs that play the functions named in logs."""

from __future__ import annotations

import re
from functools import cache

_PLAYED = (
    ("open", r"open(at)?(64)?|__open(at)?(64)?_2|creat(64)?|mko?stemps?(64)?"),
    ("close", r"close"),
    ("dup", r"dup[23]?"),
    ("read", r"read|__read_chk|readv|(sendfile|splice)_source"),
    ("write", r"write|writev|v?dprintf|__v?dprintf_chk|sendfile(64)?|splice"),
    (
        "pread",
        r"pread(64)?|__pread(64)?_chk|preadv(64)?(v?2)?|aio_return(64)?"
        r"|copy_file_range_source|DXT_read",
    ),
    ("pwrite", r"pwrite(64)?|pwritev(64)?(v?2)?|aio_return_write|copy_file_range|DXT_write"),
    ("lseek", r"lseek(64)?"),
    ("fstat", r"fstat(64)?|__fxstat(64)?"),
    ("fsync", r"fsync"),
    ("fdatasync", r"fdatasync|sync_file_range"),
    ("ftruncate", r"ftruncate(64)?"),
    ("posix_fallocate", r"(posix_)?fallocate(64)?"),
    ("stat", r"l?stat(64)?|fstatat(64)?|statx|__l?xstat(64)?|__fxstatat(64)?"),
    (
        "access",
        r"(f|e|euid)?access(at)?|readlink(at)?|realpath|__realpath_chk|l?(get|list)xattr",
    ),
    ("unlink", r"unlink(at)?|remove"),
    ("fopen", r"fopen(64)?|freopen(64)?|tmpfile(64)?"),
    ("fdopen", r"fdopen"),
    ("fclose", r"fclose"),
    ("setvbuf", r"setvbuf|setbuf(fer)?|setlinebuf"),
    ("fgetc", r"f?getw?c(har)?(_unlocked)?|_IO_getc|__uflow"),
    ("fputc", r"f?putw?c(har)?(_unlocked)?|_IO_putc|__overflow"),
    ("ungetc", r"ungetw?c"),
    (
        "fread",
        r"fread(_unlocked)?|__fread(_unlocked)?_chk|fgetw?s(_unlocked)?"
        r"|__fgetw?s(_unlocked)?_chk|(__)?get(line|delim)",
    ),
    ("fread", r"(__isoc\d+_)?v?f?w?scanf"),
    ("fwrite", r"fwrite(_unlocked)?|fputw?s(_unlocked)?|puts"),
    ("fprintf", r"(__)?v?f?w?printf(_chk)?"),
    ("fseeko", r"fseeko?(64)?|fsetpos(64)?|rewind"),
    ("ftello", r"ftello?(64)?|fgetpos(64)?"),
    ("fflush", r"fflush(_unlocked)?"),
)

#: Verbs that open a file, that take a path, that close a file, and (with their counterpart) that
#: use the descriptor's own offset.
OPENING = frozenset({"attach", "open", "dup", "fopen", "fdopen"})
ON_PATHS = frozenset({"stat", "access", "unlink"})
CLOSING = frozenset({"close", "fclose"})
AT_OFFSET = {"read": "pread", "write": "pwrite"}
#: Verbs whose length is the size of a buffer in memory.
MOVING = frozenset(
    {
        "read",
        "write",
        "pread",
        "pwrite",
        "fread",
        "fwrite",
        "fprintf",
        "mpi_transfer",
        "mpi_transfer_at",
    }
)


@cache
def verb_of(function: str) -> str:
    """The verb of a function; empty if it is not played."""
    return next((verb for verb, names in _PLAYED if re.fullmatch(names, function)), "")


@cache
def numbers() -> dict[str, int]:
    """The number of each verb."""
    from pario._native import replay_verbs

    return {name: number for number, name in enumerate(replay_verbs())}
