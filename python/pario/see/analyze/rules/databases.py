"""Files of databases: their library makes the calls, in an order on which its recovery depends."""

from __future__ import annotations

import re

import numpy as np

from pario.see.analyze.arrays import Mask
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Fix
from pario.see.analyze.rules.base import Scene, code

#: The end of the names of the files beside an SQLite database.
_SQLITE = re.compile(r"-(journal|wal|shm)$")
_DUCKDB = ".duckdb.wal", ".db.wal"
#: The repairs for reads and for writes of pages.
OF_READS = (
    "an index for the columns that the queries compare, and a larger cache of pages (PRAGMA"
    " cache_size, mmap_size)."
)
OF_WRITES = (
    "many statements in one transaction (BEGIN ... COMMIT): each transaction writes whole pages"
    " once."
)
#: The reason why no setting of pario changes the calls of a database.
WHY_NOT = "the database orders its own writes, so that it survives a crash"
#: That for the pages that a database reads again.
WHY_NOT_CACHED = "the database decides which pages it keeps, as other processes may change them"


def find_sqlite(facts: Facts) -> Mask:
    """True for rows of the files that SQLite writes: a database, and the files beside it."""
    names = [facts.job.paths[number] for number in facts.job.files["path"].tolist()]
    databases = {_SQLITE.sub("", name) for name in names if _SQLITE.search(name)}
    found = [_SQLITE.sub("", name) in databases for name in names]
    return np.asarray(np.array(found or [False])[facts.file])


def is_of_sqlite(subject: Scene) -> bool:
    """Tell whether SQLite makes calls of a finding."""
    return bool(find_sqlite(subject.facts)[subject.rows].any())


def has_journal(subject: Scene) -> bool:
    """Tell whether the files of a finding include one that SQLite makes beside a database."""
    return any(_SQLITE.search(path) for path in subject.paths)


def fixes_of_sqlite(subject: Scene, text: str) -> tuple[Fix, ...]:
    """Return a repair for SQLite if it makes the calls."""
    return (code(f"SQLite: {text}"),) if is_of_sqlite(subject) else ()


def fixes_of_duckdb(subject: Scene) -> tuple[Fix, ...]:
    """Return a repair for DuckDB if a file is the log of its transactions."""
    text = (
        "DuckDB: many statements in one transaction (BEGIN ... COMMIT), or one INSERT of many rows."
    )
    return (code(text),) if any(path.endswith(_DUCKDB) for path in subject.paths) else ()
