"""The marker of a directory with one checkpoint, for programs that expect files of DCP.

Such programs take a directory with a file ``.metadata`` for a complete checkpoint.
"""

from __future__ import annotations

from pathlib import Path

from pario.checkpoint.errors import CheckpointError
from pario.publishing import replacing

METADATA = ".metadata"
_CONTENT = b'{"pario": "load this directory with pario.checkpoint.dcp.Reader"}\n'


def write_marker(directory: Path, *, durable: bool) -> None:
    """Marks the checkpoint in a directory as complete. Raises CheckpointError."""
    with replacing(directory / METADATA, CheckpointError, durable=durable) as file:
        file.write(_CONTENT)


def has_marker(directory: Path) -> bool:
    """True for the directory of one checkpoint of pario."""
    return _read_start(directory) == _CONTENT


def is_of_dcp(directory: Path) -> bool:
    """True for the directory of a checkpoint of DCP itself, whose metadata is a pickle."""
    return _read_start(directory) not in (None, _CONTENT)


def _read_start(directory: Path) -> bytes | None:
    """The first bytes of the metadata; None if there is no such file."""
    path = directory / METADATA
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(len(_CONTENT))
