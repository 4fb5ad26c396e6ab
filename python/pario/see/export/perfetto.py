"""A job's events as a trace for ui.perfetto.dev and chrome://tracing (Chrome's JSON trace
format)."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pario.paths import local_path
from pario.publishing import open_output
from pario.see.tables.model import EVENT_KINDS, LAYERS, Job

_ROWS_AT_A_TIME = 1 << 16
_RATE_BINS = 1000
_SHORTEST = 1e-6  # seconds: bytes of shorter calls are spread over this much
_COMMUNICATION = 255
_JOB = 0  # the pid of the counters; processes have their row plus one


def perfetto(job: Job, path: str | os.PathLike[str]) -> None:
    """Write the trace: a process per rank, a track per thread, a slice per call, and bytes per
    second of the whole job.

    The file is compressed if ``path`` ends in .gz. It is written piece by piece, so that memory
    does not grow with the number of events, and published when it is complete. Raises ParioError.
    """
    with _open(local_path(path)) as file:
        file.write(
            '{"displayTimeUnit":"ms","otherData":'
            + json.dumps({"command": job.command, "source": job.source})
            + ',"traceEvents":[\n'
        )
        separator = ""
        for lines in _pieces(job):
            file.write(separator + ",\n".join(lines))
            separator = ",\n"
        file.write("\n]}\n")


@contextmanager
def _open(path: Path) -> Iterator[IO[str]]:
    with open_output(path) as file, ExitStack() as stack:
        binary: IO[bytes] | gzip.GzipFile = file
        if path.suffix == ".gz":
            binary = stack.enter_context(gzip.GzipFile(path.name, "wb", 4, file))
        yield stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8"))


def _pieces(job: Job) -> Iterator[list[str]]:
    yield list(_names(job))
    rates = list(_rates(job))
    if rates:
        yield rates
    describe = _Slices(job)
    for first in range(0, len(job.events), _ROWS_AT_A_TIME):
        yield [describe.slice(*row) for row in job.events[first : first + _ROWS_AT_A_TIME].tolist()]


def _metadata(kind: str, pid: int, value: dict[str, Any], tid: int = 0) -> str:
    return json.dumps({"name": kind, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": value})


def _names(job: Job) -> Iterator[str]:
    """Yield the names and the order of processes and threads."""
    yield _metadata("process_name", _JOB, {"name": "job"})
    for row, process in enumerate(job.processes):
        program = (
            Path(job.programs[process["exe"]]).name
            if 0 <= process["exe"] < len(job.programs)
            else "process"
        )
        who = (
            f"rank {process['rank']}"
            if process["rank"] >= 0
            else f"{program} (pid {process['pid']})"
        )
        host = (
            f" on {job.hosts[process['host']]}"
            if len(job.hosts) > 1 and process["host"] >= 0
            else ""
        )
        yield _metadata("process_name", row + 1, {"name": who + host})
        yield _metadata("process_sort_index", row + 1, {"sort_index": row + 1})
    for process, thread in np.unique(job.events[["process", "thread"]]).tolist():
        yield _metadata("thread_name", process + 1, {"name": f"thread {thread}"}, thread)


class _Slices:
    """Converts rows of events to slices; repeated parts are encoded once."""

    def __init__(self, job: Job) -> None:
        self._functions = [json.dumps(name) for name in job.function_names]
        self._files = [json.dumps(job.path(file)) for file in range(len(job.files))]
        self._layers = [f'"{layer}"' for layer in LAYERS]
        names, categories = job.functions["name"], job.functions["category"]
        self._point_to_point = {
            int(name) for name in np.unique(names[(categories == "p2p") | (categories == "wait")])
        }
        self._communicators = [str(communicator.id) for communicator in job.communicators]

    def slice(
        self,
        process: int,
        thread: int,
        flags: int,
        kind: int,
        layer: int,
        function: int,
        file: int,
        count: int,
        start: float,
        end: float,
        duration: float,
        offset: int,
        length: int,
    ) -> str:
        """Return one complete event. The parameters are those of EVENT."""
        if layer == _COMMUNICATION:
            category, arguments = '"mpi"', self._communication(function, file, offset)
        else:
            category = self._layers[layer]
            name = self._files[file] if 0 <= file < len(self._files) else '""'
            arguments = f'"file":{name},"kind":"{EVENT_KINDS[kind]}"' + (
                f',"offset":{offset}' if offset >= 0 else ""
            )
        if count > 1:
            arguments += f',"calls":{count},"busy_us":{duration * 1e6:.3f}'
        if flags & 1:
            arguments += ',"failed":true'
        return (
            f'{{"name":{self._functions[function]},"cat":{category},"ph":"X",'
            f'"pid":{process + 1},"tid":{thread},'
            f'"ts":{start * 1e6:.3f},"dur":{(end - start) * 1e6:.3f},'
            f'"args":{{{arguments},"bytes":{length}}}}}'
        )

    def _communication(self, function: int, communicator: int, offset: int) -> str:
        known = (
            self._communicators[communicator]
            if 0 <= communicator < len(self._communicators)
            else "null"
        )
        if offset < 0:
            return f'"communicator":{known}'
        if function in self._point_to_point:
            tag = _to_signed(offset & 0xFFFFFFFF)
            return f'"communicator":{known},"peer":{offset >> 32},"tag":{tag}'
        return f'"communicator":{known},"sequence":{offset}'


def _to_signed(word: int) -> int:
    """Convert a 32-bit word to a signed number: MPI_ANY_TAG is negative."""
    return word - (1 << 32) if word >= 1 << 31 else word


def _rates(job: Job) -> Iterator[str]:
    """Yield counters: bytes per second read and written in each layer."""
    edges = np.linspace(0.0, max(job.wall, _SHORTEST), _RATE_BINS + 1)
    for number, layer in enumerate(LAYERS):
        for kind in ("read", "write"):
            events = job.events[
                (job.events["layer"] == number) & (job.events["kind"] == EVENT_KINDS.index(kind))
            ]
            if not len(events):
                continue
            rates = np.diff(_bytes_until(events, edges)) / (edges[1] - edges[0])
            name = json.dumps(f"{layer} {kind}, B/s")
            for start, rate in zip(
                edges.tolist(), [*np.maximum(np.round(rates), 0).tolist(), 0.0], strict=True
            ):
                yield (
                    f'{{"name":{name},"ph":"C","pid":{_JOB},"ts":{start * 1e6:.3f},'
                    f'"args":{{"B/s":{rate:.0f}}}}}'
                )


def _bytes_until(events: NDArray[Any], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the bytes moved until each moment; those of an event are spread evenly over its
    time."""
    starts = events["start"]
    ends = np.maximum(events["end"], starts + _SHORTEST)
    rates = events["length"] / (ends - starts)
    return _ramps(starts, rates, moments) - _ramps(ends, rates, moments)


def _ramps(
    starts: NDArray[np.float64], slopes: NDArray[np.float64], moments: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return, for each moment, the sum of slope * (moment - start) over all ramps with an earlier
    start, in one pass over the sorted starts."""
    order = np.argsort(starts, kind="stable")
    slope = np.concatenate([[0.0], np.cumsum(slopes[order])])
    level = np.concatenate([[0.0], np.cumsum((slopes * starts)[order])])
    begun = np.searchsorted(starts[order], moments)
    total: NDArray[np.float64] = slope[begun] * moments - level[begun]
    return total
