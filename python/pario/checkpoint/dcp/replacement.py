"""pario's files for programs that save by DCP and choose no storage, such as torchtitan,
Lightning and Accelerate."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch.distributed import checkpoint
from torch.distributed.checkpoint import _storage_utils, filesystem, format_utils
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.storage import WriteResult

from pario.checkpoint.dcp.reader import Reader
from pario.checkpoint.dcp.storage import place_of
from pario.checkpoint.dcp.writer import Writer
from pario.checkpoint.marker import is_of_dcp, write_marker
from pario.ranks import PATIENCE

#: The modules in which PyTorch and its users look up the two classes.
_MODULES = (checkpoint, _storage_utils, format_utils)
_reading: dict[str, Any] = {}
_writing: dict[str, Any] = {}


def replace_file_system_storage(
    *,
    files: int | str = 1,
    durable: bool = True,
    safetensors: bool | None = None,
    compress: str | None = None,
    verify: bool = True,
    allow_pickle: bool = False,
    cast: bool = False,
    patience: float = PATIENCE,
) -> ExitStack:
    """Makes DCP save in pario's files wherever it would use its own, in this process.

    For programs whose checkpoints are saved by a library that chooses the storage: torchtitan,
    Lightning, Accelerate. Call it on all ranks before the first save. Each checkpoint is a
    directory of its own, as with DCP, with one of pario's checkpoints, so that the library finds
    it, adds its files and removes it as before. Directories of DCP itself are loaded as before.
    The ranks are those of the default process group.

    Parameters
    ----------
    files, durable, safetensors, compress, patience
        As for :class:`Writer`.
    verify, allow_pickle, cast
        As for :class:`Reader`.

    Returns
    -------
    contextlib.ExitStack
        Its ``close()``, or the end of a ``with`` block, restores DCP's own files.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> import torch.distributed.checkpoint as dcp
    >>> from pario.checkpoint.dcp import replace_file_system_storage
    >>> loaded = {"weight": torch.zeros(2)}
    >>> with replace_file_system_storage(), tempfile.TemporaryDirectory() as path:
    ...     saved = dcp.save({"weight": torch.ones(2)}, checkpoint_id=f"{path}/step-10")
    ...     dcp.load(loaded, checkpoint_id=f"{path}/step-10")
    >>> loaded
    {'weight': tensor([1., 1.])}
    """
    undo = ExitStack()
    _set_options(
        undo,
        _writing,
        files=files,
        durable=durable,
        safetensors=safetensors,
        compress=compress,
        patience=patience,
    )
    _set_options(
        undo, _reading, verify=verify, allow_pickle=allow_pickle, cast=cast, patience=patience
    )
    for module in _MODULES:
        for name, storage in (("FileSystemWriter", _Writer), ("FileSystemReader", _Reader)):
            undo.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, storage)
    return undo


def _set_options(undo: ExitStack, options: dict[str, Any], **new: Any) -> None:
    undo.callback(options.update, dict(options))
    options.update(new)


class _Writer(Writer):
    """Saves a checkpoint to a directory of its own. Takes the arguments of FileSystemWriter; those
    about its files have no effect."""

    def __init__(self, path: str | os.PathLike[str], *_: Any, **__: Any) -> None:
        super().__init__(path, keep=1, **_writing)

    def _place(self) -> tuple[Path, int | None]:
        return Path(self._id or ""), place_of(self._id or "")[1]

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Marks the published checkpoint, as DCP does by its metadata."""
        write_marker(self._place()[0], durable=self._options["durable"])


class _Reader(Reader):
    """Loads the checkpoint of a directory; one of DCP itself by DCP's own reader."""

    def __new__(cls, path: str | os.PathLike[str], *options: Any, **named: Any) -> Any:
        if is_of_dcp(Path(path)):
            return filesystem.FileSystemReader(path, *options, **named)
        return super().__new__(cls)

    def __init__(self, path: str | os.PathLike[str], *_: Any, **__: Any) -> None:
        super().__init__(path, **_reading)

    def _place(self) -> tuple[Path, int | None]:
        return Path(self._id or ""), None
