"""The manifest of a directory of checkpoints: the complete ones, and the highest generation ever
published (docs/checkpoint-format.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pario.checkpoint.checksum import checksum_bytes
from pario.checkpoint.errors import CheckpointError
from pario.copying import write_all
from pario.publishing import Identity, identity_of, new_file, remove

#: The name of the manifest, and the beginnings of its lines.
MANIFEST = "MANIFEST"
_HEAD, _LAST, _CHECKSUM_LINE = "pario-manifest 1", "last ", "checksum "
#: In the manifest, the save of a file without identity record.
_NO_SAVE = "-"


@dataclass(frozen=True)
class Listed:
    """A complete checkpoint in the manifest."""

    generation: int
    name: str  # of the file or the directory
    save: str  # as in its identity record; empty without record


@dataclass(frozen=True)
class Manifest:
    """``last``: the highest generation ever published here, also of removed checkpoints."""

    last: int = 0
    listed: tuple[Listed, ...] = ()

    def generation_of(self, name: str) -> int:
        """The generation of a checkpoint; 0 if it is not listed."""
        return next((one.generation for one in self.listed if one.name == name), 0)


class ManifestFile:
    """The manifest of a directory. ``durable``: it is flushed to the disk."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self._path, self._durable = directory / MANIFEST, durable
        #: The file that was read last, which is replaced and never changed, and its manifest.
        self._identity: Identity | None = None
        self._manifest = Manifest()

    def read(self) -> tuple[Manifest, str]:
        """The manifest, and the reason why it cannot be used; then it is empty."""
        try:
            identity = identity_of(self._path)
            if identity is None or identity != self._identity:
                self._manifest = decode_manifest(self._path.read_bytes())
                self._identity = identity
            return self._manifest, ""
        except (FileNotFoundError, NotADirectoryError):
            return Manifest(), ""
        except OSError as error:
            return Manifest(), f"{self._path}: {error.strerror}"
        except ValueError as error:
            return Manifest(), f"{self._path}: {error}"

    @contextmanager
    def replacing(self, listed: Sequence[Listed]) -> Iterator[None]:
        """Writes a manifest of these checkpoints, which replaces the existing one at the end of the
        body. Raises CheckpointError, before the body, if it cannot be written."""
        last = max([self.read()[0].last, *(one.generation for one in listed)])
        with ExitStack() as stack:
            try:
                new = stack.enter_context(new_file(self._path))
                write_all(new.descriptor, 0, encode_manifest(Manifest(last, tuple(listed))))
                if self._durable:
                    os.fsync(new.descriptor)
            except OSError as error:
                raise CheckpointError(f"{self._path}: {error.strerror}") from error
            yield
            new.replace(CheckpointError)

    def remove_unpublished(self) -> None:
        """Removes new manifests that killed processes, of any host and version, have left. For the
        process that has locked the directory."""
        for path in self._path.parent.glob(f".{MANIFEST}.*part"):
            remove(path)


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest as text with a checksum."""
    rows = [f"{one.generation} {one.name} {one.save or _NO_SAVE}" for one in manifest.listed]
    text = "\n".join([_HEAD, f"{_LAST}{manifest.last}", *rows, ""])
    return f"{text}{_CHECKSUM_LINE}{checksum_bytes(text.encode()):016x}\n".encode()


def decode_manifest(content: bytes) -> Manifest:
    """Raises ValueError where the text is not a manifest, is damaged, or has a later version."""
    text = content.decode("ascii", "strict")
    body, mark, end = text.rpartition(_CHECKSUM_LINE)
    if not mark or end != f"{checksum_bytes(body.encode()):016x}\n":
        raise ValueError("its checksum does not match")
    head, last, *rows = body.splitlines()
    if head != _HEAD or not last.startswith(_LAST):
        raise ValueError(f"it begins with {head!r}; expected {_HEAD!r}")
    return Manifest(int(last.removeprefix(_LAST)), tuple(_decode_row(row) for row in rows))


def _decode_row(row: str) -> Listed:
    generation, name, save = row.split(" ")
    return Listed(int(generation), name, "" if save == _NO_SAVE else save)
