"""One Darshan log through the C library behind PyDarshan, a module at a time as one numpy array.

PyDarshan's own loops cost 19 us and 0.7 KB per DXT segment; here a record's segments are one copy.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.errors import ParioError
from pario.see.tables.darshan import header
from pario.see.tables.errors import ReadError

_STRUCTS = {
    "POSIX": "struct darshan_posix_file",
    "STDIO": "struct darshan_stdio_file",
    "MPI-IO": "struct darshan_mpiio_file",
    "DFS": "struct darshan_dfs_file",
    "DAOS": "struct darshan_daos_object",
    "H5F": "struct darshan_hdf5_file",
    "H5D": "struct darshan_hdf5_dataset",
    "PNETCDF_FILE": "struct darshan_pnetcdf_file",
    "PNETCDF_VAR": "struct darshan_pnetcdf_var",
}
#: Fields of records before and behind the counters.
_BEFORE = {name: [("file_id", "<u8")] for name in ("H5D", "PNETCDF_VAR")}
_BEHIND = {"DFS": [("uuids", "V32")], "DAOS": [("uuids", "V32"), ("object", "V16")]}
_NODE_NAME = 128  # bytes of a record of APMPI
_SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])


@dataclass(frozen=True)
class Module:
    """A module's entry in the log's index."""

    name: str
    index: int
    version: int
    length: int
    partial: bool


@dataclass(frozen=True)
class Segments:
    """A DXT record: the traced calls of one rank on one file."""

    id: int
    rank: int
    host: str
    writes: NDArray[Any]
    reads: NDArray[Any]


@dataclass(frozen=True)
class Heat:
    """A record of HEATMAP: the bytes that one rank moved in intervals from the start of the job."""

    id: int
    rank: int
    width: float  # seconds of an interval
    writes: NDArray[Any]
    reads: NDArray[Any]


@dataclass(frozen=True)
class Stripes:
    """A component of a Lustre layout."""

    id: int
    counters: dict[str, int]
    pool: str
    targets: tuple[int, ...]


def _backend() -> Any:
    try:
        with _imported_later("pandas"):  # two thirds of the time of this import; not needed here
            from darshan.backend import cffi_backend
    except ImportError as error:
        raise ParioError(
            f"reading Darshan logs needs the package darshan ({error}): pip install darshan"
        ) from error
    return cffi_backend


@contextmanager
def _imported_later(name: str) -> Iterator[None]:
    """Modules that import ``name`` during the block get a module that imports it at its first
    use. importlib.util.LazyLoader imports at once, when an import statement reads its attributes.
    """
    later = ModuleType(name)
    later.__getattr__ = lambda attribute: getattr(  # type: ignore[method-assign]
        importlib.import_module(name), attribute
    )
    is_new = sys.modules.setdefault(name, later) is later
    try:
        yield
    finally:
        if is_new:
            del sys.modules[name]


@contextmanager
def _captured_errors(texts: list[str]) -> Iterator[None]:
    """Collect the output of the C library on standard error during the block."""
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            texts += [
                line.strip()
                for line in file.read().decode("utf-8", "replace").splitlines()
                if line.strip()
            ]


class Log:
    """An open Darshan log; a context manager. Errors of the library are collected in ``errors``.

    ``job`` is the job record (uid, start_time_sec, start_time_nsec, nprocs, jobid, run_time,
    log_ver, metadata), ``command`` the command line, ``mounts`` the types by mount point, ``names``
    the paths by record id, ``modules`` the modules by name. Only one module may be read at a time.
    """

    def __init__(self, path: Path) -> None:
        header.check(path)
        self.path = path
        self.errors: list[str] = []
        self._b = _backend()
        with _captured_errors(self.errors):
            self._log = self._b.log_open(str(path))
        if self._log["handle"] == self._b.ffi.NULL:
            raise self._make_error()
        # Read all of these at once and before the records: the library has a single file position,
        # which it loses if regions are read alternately.
        self.job: dict[str, Any] = self._ask(self._b.log_get_job)
        self.command = str(self._ask(self._b.log_get_exe)).strip()
        self.mounts = dict(self._ask(self._b.log_get_mounts))
        self.names: dict[int, str] = self._ask(self._b.log_get_name_records)
        found = self._ask(self._b.log_get_modules)
        self.modules = {
            name: Module(name, m["idx"], m["ver"], m["len"], m["partial_flag"])
            for name, m in found.items()
        }

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        with _captured_errors(self.errors):
            self._b.log_close(self._log)

    def _ask(self, function: Any) -> Any:
        """Return the answer of a function of the backend; ReadError on failure."""
        count = len(self.errors)
        with _captured_errors(self.errors):
            answer = function(self._log)
        if len(self.errors) > count:
            raise self._make_error()
        return answer

    def _make_error(self) -> ReadError:
        return ReadError(
            self.path,
            f"a damaged log ({'; '.join(self.errors) or 'the library cannot open it'})",
            header.EXPECTED,
        )

    def _records(self, module: Module) -> Iterator[Any]:
        """Yield pointers to the records of a module, each valid until the next one."""
        next_record, free, handle = (
            self._b.libdutil.darshan_log_get_record,
            self._b.libdutil.darshan_free,
            self._log["handle"],
        )
        buffer = self._b.ffi.new("void **")
        with _captured_errors(self.errors):
            while next_record(handle, module.index, buffer) > 0:
                yield buffer[0]
                free(buffer[0])
                buffer[0] = self._b.ffi.NULL

    def counters(self, module: Module) -> NDArray[Any]:
        """Return all records of a module in ``_STRUCTS``: ``id``, ``rank``, and a field for every
        counter, without the module's prefix."""
        prefix = module.name.replace("-", "") + "_"
        names = [(name.removeprefix(prefix), "<i8") for name in self._b.counter_names(module.name)]
        names += [
            (name.removeprefix(prefix), "<f8") for name in self._b.fcounter_names(module.name)
        ]
        before, behind = _BEFORE.get(module.name, []), _BEHIND.get(module.name, [])
        dtype = np.dtype([("id", "<u8"), ("rank", "<i8"), *before, *names, *behind])
        size = self._b.ffi.sizeof(_STRUCTS[module.name])
        if size != dtype.itemsize:
            raise ParioError(
                f"the darshan package has {module.name} records of {size} bytes; expected"
                f" {dtype.itemsize}"
            )
        return self._table(module, dtype)

    def mpi_counters(self, module: Module) -> NDArray[Any]:
        """Return the records of APMPI, one per rank, without the first, which is their header. The
        library knows the header only in the first log that a process reads."""
        groups = ("mpiop_totaltime_", "mpiop_synctime_", "mpi_global_")
        names = [(name, "<u8") for name in self._b.counter_names(module.name)]
        for group in groups:
            names += [(name, "<f8") for name in self._b.counter_names(module.name, True, group)]
        dtype = np.dtype([("id", "<u8"), ("rank", "<i8"), *names, ("node", f"V{_NODE_NAME}")])
        return self._table(module, dtype)[1:]

    def heat(self, module: Module) -> Iterator[Heat]:
        """Yield the records of the HEATMAP module: bytes per interval of a rank."""
        for pointer in self._records(module):
            record = self._b.ffi.cast("struct darshan_heatmap_record *", pointer)
            bins = [
                np.frombuffer(bytes(self._b.ffi.buffer(part, 8 * record.nbins)), "<i8")
                for part in (record.write_bins, record.read_bins)
            ]
            yield Heat(record.base_rec.id, record.base_rec.rank, record.bin_width_seconds, *bins)

    def _table(self, module: Module, dtype: np.dtype[Any]) -> NDArray[Any]:
        view, size = self._b.ffi.buffer, dtype.itemsize
        records = (bytes(view(record, size)) for record in self._records(module))
        return np.frombuffer(b"".join(records), dtype)

    def segments(self, module: Module) -> Iterator[Segments]:
        """Yield the records of a DXT module."""
        ffi = self._b.ffi
        head = ffi.sizeof("struct dxt_file_record")
        for pointer in self._records(module):
            record = ffi.cast("struct dxt_file_record *", pointer)
            writes, count = record.write_count, record.write_count + record.read_count
            data = bytes(ffi.buffer(ffi.cast("char *", pointer) + head, count * _SEGMENT.itemsize))
            rows = np.frombuffer(data, _SEGMENT)
            host = ffi.string(record.hostname, 64).decode("utf-8", "replace")
            yield Segments(
                record.base_rec.id, record.base_rec.rank, host, rows[:writes], rows[writes:]
            )

    def stripes(self, module: Module) -> Iterator[list[Stripes]]:
        """Yield the records of the LUSTRE module: the components of each file's layout."""
        ffi = self._b.ffi
        names = [name.removeprefix("LUSTRE_COMP_") for name in self._b.counter_names("LUSTRE_COMP")]
        for pointer in self._records(module):
            record = ffi.cast("struct darshan_lustre_record *", pointer)
            targets = (
                ffi.unpack(record.ost_ids, record.num_stripes) if record.num_stripes > 0 else []
            )
            components, first = [], 0
            for i in range(record.num_comps):
                counters = dict(zip(names, list(record.comps[i].counters), strict=True))
                last = first + max(counters["STRIPE_COUNT"], 0)
                pool = ffi.string(record.comps[i].pool_name, 16).decode("utf-8", "replace")
                components.append(
                    Stripes(record.base_rec.id, counters, pool, tuple(targets[first:last]))
                )
                first = last
            yield components
