"""The settings that the last tune of a pattern found, and those that a run of the program has shown
not to pay, kept between runs by file system."""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pario import state
from pario.documents import Format
from pario.errors import ParioError
from pario.prove.calibration import file_system
from pario.prove.tune.choice import Choice
from pario.see.analyze.split import Times
from pario.see.tables.model import LAYERS, Job

_TUNED = Format("pario-tune", "settings", 1)
_REJECTED = Format("pario-rejected", "settings", 1)
#: The days after which rejected settings are measured again.
DAYS = 7
#: Table, key and value.
Setting = tuple[str, str, str]
#: Stands in kept patterns for the directory of the run's files.
_HERE = "{files}"


def last_choice(job: Job, directory: Path) -> Choice | None:
    """The settings of the last tune of the same pattern on a file system; None without any."""
    with suppress(OSError, ParioError):
        return _TUNED.read(_path(job, directory), lambda fields: _parse(fields, _home(job)))
    return None


def keep_choice(job: Job, directory: Path, choice: Choice) -> None:
    """Keep the result of a tune; an empty choice removes the last one. Raises OSError or
    ParioError."""
    path, home = _path(job, directory), _home(job)
    if not choice.sections:
        path.unlink(missing_ok=True)
        return
    sections = [[match.replace(home, _HERE, 1), settings] for match, settings in choice.sections]
    _TUNED.write(path, {"sections": sections})


def find_rejected(job: Job, directory: Path) -> frozenset[Setting]:
    """The settings of the pattern with which the program was not faster in the last days; later
    they are measured again, because machines and programs change."""
    with suppress(OSError, ParioError):
        path = rejections(job, directory)
        kept = _REJECTED.read(path, lambda fields: frozenset(map(_setting, fields["settings"])))
        if kept and time.time() - path.stat().st_mtime < DAYS * 86400:
            return kept
    return frozenset()


def keep_rejected(job: Job, directory: Path, settings: Iterable[Setting], *, paid: bool) -> None:
    """Keep the settings of a run of the program that was not faster with them; those that paid are
    rejected no more. Raises OSError or ParioError."""
    path, before = rejections(job, directory), find_rejected(job, directory)
    after = before - frozenset(settings) if paid else before | frozenset(settings)
    if not after:
        path.unlink(missing_ok=True)
        return
    _REJECTED.write(path, {"settings": sorted(after)})


def rejections(job: Job, directory: Path) -> Path:
    """The file of the settings of a pattern that were not faster."""
    path = _path(job, directory)
    return path.with_name(f"rejected-{path.name}")


def _setting(words: Sequence[Any]) -> Setting:
    table, key, value = map(str, words)
    return table, key, value


def _parse(fields: dict[str, Any], home: str) -> Choice:
    return Choice(
        tuple(
            (str(match).replace(_HERE, home, 1), tuple(map(_setting, settings)))
            for match, settings in fields["sections"]
        )
    )


def _path(job: Job, directory: Path) -> Path:
    name = hashlib.sha256("\n".join(_describe(job)).encode()).hexdigest()[:16]
    return state.folder("tune") / file_system(directory) / f"{name}.json"


def _home(job: Job) -> str:
    """The directory of the run's files; a run in another one has the same pattern."""
    paths = [job.path(int(file)) for file in _files(job)]
    folders = [str(Path(path).parent) for path in paths if path.startswith("/")]
    return os.path.commonpath(folders) if folders else "/"


def _files(job: Job) -> np.ndarray:
    """The files on storage that the run read or wrote."""
    times = Times(job)
    records = times.job.records
    moved = (records["bytes_read"] > 0) | (records["bytes_written"] > 0)
    files: np.ndarray = np.unique(records["file"][moved & times.storage[records["file"]]])
    return files


def _describe(job: Job) -> Iterator[str]:
    """Yield the pattern of a run: its ranks, and for each kind of files (with names that differ
    only in numbers) the layers, and bytes and calls as powers of two."""
    home, kinds = _home(job), dict[tuple[str, str], list[int]]()
    wanted = set(map(int, _files(job)))
    for row in job.records:
        if int(row["file"]) in wanted:
            name = job.path(int(row["file"])).removeprefix(home)
            key = re.sub(r"\d+", "#", name), LAYERS[row["layer"]]
            moved = [row["bytes_written"], row["bytes_read"], row["writes"], row["reads"]]
            kinds[key] = [a + int(b) for a, b in zip(kinds.get(key, [0] * 4), moved, strict=True)]
    yield f"{job.ranks} ranks, {len(job.processes)} processes"
    for (name, layer), sums in sorted(kinds.items()):
        yield " ".join([name, layer, *(str(round(math.log2(value + 1))) for value in sums)])
