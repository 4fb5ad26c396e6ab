"""The manifest of a directory of checkpoints: their generations, as checksummed text. Pure.

pario-manifest 1
last 17
15 step-00000100.h5 5f0c1d6a3b1e4c55a4f1c3d2e7b80912
17 step-00000120 0d9be4f1a7c2431b8c6e5a902f4d7e31
checksum 90d5c3a1b2e4f687
"""

from __future__ import annotations

from dataclasses import dataclass

from pario.checkpoint.checksum import checksum_bytes

NAME = "MANIFEST"
_HEAD, _LAST, _CHECKSUM = "pario-manifest 1", "last ", "checksum "
#: Stands for the save of a file without identity record.
_NO_SAVE = "-"


@dataclass(frozen=True)
class Listed:
    """A complete checkpoint."""

    generation: int
    name: str  # of the file or the directory
    save: str  # as in its identity record; empty where it has none


@dataclass(frozen=True)
class Manifest:
    """``last`` is the highest generation that was ever published, also of removed checkpoints."""

    last: int = 0
    listed: tuple[Listed, ...] = ()

    def generation_of(self, name: str) -> int:
        """0 where the checkpoint is not listed."""
        return next((one.generation for one in self.listed if one.name == name), 0)


def encode(manifest: Manifest) -> bytes:
    """The manifest as text."""
    rows = [f"{one.generation} {one.name} {one.save or _NO_SAVE}" for one in manifest.listed]
    text = "\n".join([_HEAD, f"{_LAST}{manifest.last}", *rows, ""])
    return f"{text}{_CHECKSUM}{checksum_bytes(text.encode()):016x}\n".encode()


def decode(content: bytes) -> Manifest:
    """Raises ValueError where the text is no manifest, is damaged, or has a later version."""
    text = content.decode("ascii", "strict")
    body, mark, end = text.rpartition(_CHECKSUM)
    if not mark or end != f"{checksum_bytes(body.encode()):016x}\n":
        raise ValueError("its checksum does not match")
    head, last, *rows = body.splitlines()
    if head != _HEAD or not last.startswith(_LAST):
        raise ValueError(f"it begins with {head!r}; expected {_HEAD!r}")
    return Manifest(int(last.removeprefix(_LAST)), tuple(_decode_row(row) for row in rows))


def _decode_row(row: str) -> Listed:
    generation, name, save = row.split(" ")
    return Listed(int(generation), name, "" if save == _NO_SAVE else save)
