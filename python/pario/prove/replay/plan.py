"""Makes a script from a log: chooses the calls to play, their files and their order."""

from __future__ import annotations

import os
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay import collective, missing, order
from pario.prove.replay.beginning import Beginning, count_space, cut, end_of_beginning
from pario.prove.replay.collective import MPIIO
from pario.prove.replay.errors import ReplayError
from pario.prove.replay.prepared import (
    find_directories,
    find_existing_files,
    sizes_at_first,
)
from pario.prove.replay.script import (
    AS_MPIIO,
    AS_POSIX,
    BARRIER,
    END,
    NOT_OF_FILES,
    OPERATION,
    WAIT,
    Script,
    count_calls,
)
from pario.prove.replay.slots import Assignment, Calls, assign
from pario.prove.replay.verbs import CLOSING, ON_PATHS, OPENING, numbers, verb_of
from pario.see.analyze.cells import find_rows
from pario.see.analyze.scope import MISSING
from pario.see.analyze.split import Times
from pario.see.tables.model import EXEC, FILE_LAYERS, LAYERS, Job

_FAILED, _IN_MPIIO, _IN_MPI = 1, 2, 4
_STDIO = LAYERS.index("stdio")
_NANOSECONDS = 1e9
#: The most bytes of one fprintf, which returns an int; a damaged log may hold more.
_MOST_TEXT = 2**31 - 1
#: The order of operations with the same start time.
_FIRST, _BEFORE, _CALL, _AFTER = range(4)


def script_of(job: Job, *, partial: bool = False, beginning: Beginning | None = None) -> Script:
    """Make the script of a job, or of its ``beginning``. Raises ReplayError, with the missing data,
    unless ``partial`` allows to play only the recorded calls."""
    times = Times(job)
    lacks = list(missing.missing(job, times))
    if lacks and not (partial and "events" in job.has):
        messages = "".join(f"; {message}" for message in job.messages)
        raise ReplayError(
            f"{job.source}: it cannot be replayed: {'; '.join(lacks)}{messages}; expected:"
            f" {missing.remedy(job)}"
        )
    plan = _Plan(job, times, complete=not lacks, beginning=beginning)
    if not len(plan.rows):
        raise ReplayError(f"{job.source}: there is no I/O to storage to replay")
    return plan.script()


class _Plan:
    def __init__(
        self, job: Job, times: Times, *, complete: bool, beginning: Beginning | None
    ) -> None:
        self._job, self._times, self._complete = job, times, complete
        self._beginning = beginning
        self._lanes = times.lanes.of(job.events["process"])
        self._why_not = ""
        self.rows = self._choose_events()
        self._played = np.ones(len(self.rows), bool)  # without the calls that are left out

    def _choose_events(self) -> NDArray[Any]:
        """The rows of the events to play, in order of time: MPI-IO calls if they can be played,
        else their POSIX calls."""
        events = self._job.events
        own = (events["layer"] < len(FILE_LAYERS)) & (events["file"] >= 0) & (self._lanes >= 0)
        own[own] = (self._times.scope.origin <= MISSING)[events["file"][own]]
        own &= ((events["flags"] & (_IN_MPI | _IN_MPIIO)) != _IN_MPI) | (events["layer"] == MPIIO)
        rows = np.flatnonzero(own)
        upper = rows[events["layer"][rows] == MPIIO]
        nested = (events["flags"][rows] & _IN_MPIIO) != 0
        if not len(upper):
            return np.asarray(rows)
        # In an incomplete log, ranks could wait for a call that is missing.
        self._why_not = (
            collective.why_not(self._job, upper) if self._complete else "the log lacks some calls"
        )
        through = (
            np.isin(events["file"][rows], events["file"][upper])
            if self._job.format == "darshan"
            else nested
        )
        lower = events["layer"][rows] != MPIIO
        return np.asarray(rows[lower if self._why_not else ~(through & lower)])

    def script(self) -> Script:
        files = np.unique(self._job.events["file"][self.rows])
        number = {int(file): place for place, file in enumerate(files)}
        made, directories = find_existing_files(self._job, self.rows, number)
        script = Script(
            [],
            [self._job.path(int(file)) for file in files],
            made,
            self._job.ranks if self._times.lanes.mpi else 0,
        )
        script.directories = directories
        operations, moments, ties, lanes = self._operations(
            script, np.searchsorted(files, self._job.events["file"][self.rows])
        )
        sequence = np.lexsort((ties, moments, lanes))
        operations, lanes = operations[sequence], lanes[sequence]
        end = self._end()
        if self._beginning:
            kept = cut(script, operations, lanes, moments[sequence] < end)
            operations, lanes = operations[kept], lanes[kept]
            used = {*operations["path"][~np.isin(operations["verb"], NOT_OF_FILES)].tolist()}
            script.files = [file for file in script.files if file.path in used]
            script.share = float(np.mean(kept))
        script.written, script.seconds = self._sum_up(end)
        script.whole_seconds = self._sum_up(inf)[1]
        seats = range(script.ranks) if script.ranks else np.unique(lanes).tolist()
        script.seats = [
            operations[np.searchsorted(lanes, seat) : np.searchsorted(lanes, seat, "right")]
            for seat in seats
        ]
        return script

    @cached_property
    def _space(self) -> NDArray[np.float64]:
        """The bytes that each call takes from the space of the file system."""
        return count_space(self._job, self.rows)

    def _end(self) -> float:
        """The time from which on calls are not played."""
        rows, space = self.rows[self._played], self._space[self._played]
        beginning = self._beginning or Beginning()
        return end_of_beginning(self._job.events[rows], self._lanes[rows], space, beginning)

    def _sum_up(self, end: float) -> tuple[int, float]:
        """The space that the played calls before a time take, and the seconds that they took in the
        process that spent most in them."""
        early = self._played & (self._job.events["start"][self.rows] < end)
        played = self.rows[early]
        events = self._job.events[played]
        seconds = np.bincount(
            self._lanes[played], np.maximum(events["end"] - events["start"], 0.0), minlength=1
        )
        return int(self._space[early].sum()), float(seconds.max(initial=0.0))

    def _operations(self, script: Script, paths: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The operations, with the start time, the order at equal times and the lane of each."""
        events = self._job.events[self.rows]
        upper = events["layer"] == MPIIO
        made = np.zeros(len(self.rows), OPERATION)
        played = np.ones(len(self.rows), bool)
        made[~upper], played[~upper], attached, closed = self._low(
            script, events[~upper], np.flatnonzero(~upper)
        )
        if np.any(upper):
            of_file, played[upper] = collective.operations(
                self._job, self.rows[upper], self._lanes[self.rows[upper]], script
            )
            made[upper] = of_file
        if self._why_not or np.any(upper):
            script.mpiio = f"{AS_POSIX}{self._why_not}" if self._why_not else AS_MPIIO
        made["path"] = paths
        for extra in (attached, closed):
            extra["path"] = paths[extra["path"]]
        self._played = played
        kept = self.rows[played]
        barriers = self._barriers(script, kept)
        pauses = self._pauses(np.concatenate([kept, *(rows for _, rows, _ in barriers)]))
        made["pause"][played] = pauses[kept]
        for operations, rows, _ in barriers:
            operations["pause"] = pauses[rows]
        functions = np.array(self._job.function_names)[events["function"]]
        script.left_out = count_calls(
            functions[~played & ~np.char.endswith(functions.astype(str), "_end")]
        )
        before, after = self.rows[attached["other"]], self.rows[closed["other"]]
        attached["other"] = closed["other"] = 0
        parts = [
            (made[played], kept, _CALL),
            (attached, before, _BEFORE),
            (closed, after, _AFTER),
            *barriers,
        ]
        if not script.ranks:
            parts += self._processes(script, kept)
        return tuple(
            np.concatenate(columns)
            for columns in zip(
                *(
                    (ops, self._job.events["start"][at], np.full(len(ops), tie), self._lanes[at])
                    for ops, at, tie in parts
                ),
                strict=True,
            )
        )

    def _low(
        self, script: Script, events: NDArray[Any], places: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The operations of POSIX and stdio calls, the mask of the played ones, the operations that
        attach descriptors (``path`` and ``other``: the event that they precede), and those that
        close descriptors (after that event)."""
        known = numbers()
        table = np.array(
            [known.get(verb_of(name), -1) for name in self._job.function_names] or [-1]
        )
        verb = table[events["function"]]
        failed = (events["flags"] & _FAILED) != 0
        may = np.isin(verb, [known[name] for name in (*ON_PATHS, "open", "fopen")])
        played = (verb >= 0) & (~failed | may)
        if (removals := verb == known["unlink"]).any():  # of files, with unlinkat() of directories
            played &= ~(removals & np.isin(events["file"], [*find_directories(self._job)]))
        chosen = np.flatnonzero(played & ~failed)
        files = collective.number_files(events)
        calls = events[chosen]
        found = assign(
            Calls(
                verb[chosen],
                files[chosen],
                calls["layer"] == _STDIO,
                calls["offset"],
                calls["length"],
            )
        )
        made = np.zeros(len(events), OPERATION)
        made["offset"], made["length"], made["may_fail"] = (
            events["offset"],
            events["length"],
            failed,
        )
        made["verb"] = np.maximum(verb, 0)
        single = np.isin(verb, [known["fgetc"], known["fputc"]])
        # A call that reaches the end of the file returns no byte, but is a call.
        made["length"][single] = np.maximum(events["length"], events["count"])[single]
        text = verb == known["fprintf"]
        made["length"][text] = np.clip(events["length"][text], 0, _MOST_TEXT)
        # Renames are not played, so that the name may exist.
        made["offset"][~failed & (verb == known["open"])] &= ~os.O_EXCL
        made["verb"][chosen], made["slot"][chosen], made["other"][chosen] = (
            found.verb,
            found.slot,
            found.source,
        )
        made["slot"][failed] = found.count
        played[chosen[found.dropped]] = False
        made["verb"][self._at_end(events, verb == known["lseek"])] = known["lseek_end"]
        self._buffers(events, made, verb == known["setvbuf"])
        script.slots = found.count + 1
        attached = self._make_attachments(found, calls, places[chosen])
        return made, played, attached, self._close_at_exec(found, calls, places[chosen])

    def _at_end(self, events: NDArray[Any], seeks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The mask of seeks to the end of a file that no process writes. They are played relative
        to the end, as most likely in the program, because this queries the file system."""
        sizes = np.zeros(len(self._job.files), np.int64)
        for file, size in sizes_at_first(self._job).items():
            sizes[file] = size
        sizes[self._job.records["file"][self._job.records["writes"] > 0]] = 0
        return np.asarray(
            seeks & (events["offset"] > 0) & (events["offset"] == sizes[events["file"]])
        )

    def _buffers(self, events: NDArray[Any], made: NDArray[Any], rows: NDArray[np.bool_]) -> None:
        """Set the sizes of stdio buffers, which files' records hold, but not events."""
        of_file = self._job.records[
            find_rows(self._job.records, events["process"][rows], events["file"][rows], _STDIO)
        ]
        made["length"][rows], made["other"][rows] = (
            np.maximum(of_file["buffer_size"], 1),
            of_file["buffer_mode"],
        )

    def _make_attachments(
        self, found: Assignment, events: NDArray[Any], places: NDArray[Any]
    ) -> NDArray[Any]:
        """The operations that attach descriptors and streams, and those that close descriptors
        that no call closes."""
        closing, slots = (np.array(found.closed, int).reshape(-1, 2)).T
        calls = np.concatenate([np.array(found.attach, int), closing])
        count = len(found.attach)
        attached = np.zeros(len(calls), OPERATION)
        attached["verb"][:count], attached["verb"][count:] = numbers()["attach"], numbers()["close"]
        attached["slot"] = np.concatenate([found.slot[calls[:count]], slots])
        attached["offset"] = os.O_RDWR | os.O_CREAT
        of_stream = np.flatnonzero(events["layer"][calls[:count]] == _STDIO)
        reads = np.isin(found.verb[calls[of_stream]], [numbers()["fread"], numbers()["fgetc"]])
        attached["verb"][of_stream] = numbers()["fopen"]
        attached["offset"][of_stream] = np.where(reads, os.O_RDONLY, os.O_RDWR | os.O_APPEND)
        attached["path"] = attached["other"] = places[calls]
        return attached

    def _close_at_exec(
        self, found: Assignment, events: NDArray[Any], places: NDArray[Any]
    ) -> NDArray[Any]:
        """The operations that close the descriptors of a process that starts another program. Those
        that it inherits are attached again."""
        names, processes = list(numbers()), events["process"]
        dropped = {*found.dropped}
        left: dict[int, dict[int, int]] = {}  # by process: slots, and the call that opened each
        last: dict[int, int] = {}
        execs = self._job.processes["end_kind"] == EXEC
        for call in np.flatnonzero(execs[processes] & (events["layer"] != _STDIO)).tolist():
            if call in dropped:
                continue
            process, verb, slot = int(processes[call]), names[found.verb[call]], found.slot[call]
            last[process] = call
            if verb in OPENING:
                left.setdefault(process, {})[int(slot)] = call
            elif verb in CLOSING:
                left.get(process, {}).pop(int(slot), None)
        pairs = [
            (slot, call, last[process])
            for process, slots in left.items()
            for slot, call in slots.items()
        ]
        slots, opening, after = np.array(pairs, int).reshape(-1, 3).T
        closed = np.zeros(len(pairs), OPERATION)
        closed["verb"], closed["slot"] = numbers()["close"], slots
        closed["path"], closed["other"] = places[opening], places[after]
        return closed

    def _pauses(self, kept: NDArray[Any]) -> NDArray[Any]:
        """The nanoseconds without I/O and communication before each played call and barrier, by the
        row of its event.
        """
        events, lanes = self._job.events, self._lanes
        sequence = np.argsort(lanes, kind="stable")
        start, end, lane = events["start"][sequence], events["end"][sequence], lanes[sequence]
        pauses = np.zeros(len(events))
        for seat in np.unique(lane[lane >= 0]):
            mine = slice(
                int(np.searchsorted(lane, seat)), int(np.searchsorted(lane, seat, "right"))
            )
            idle = np.maximum(start[mine][1:] - np.maximum.accumulate(end[mine])[:-1], 0.0)
            pauses[sequence[mine]] = np.append(0.0, np.cumsum(idle))
        kept = np.sort(kept)
        by_lane = kept[np.argsort(lanes[kept], kind="stable")]
        since = np.diff(pauses[by_lane], prepend=0.0)
        since[np.flatnonzero(np.diff(lanes[by_lane], prepend=-1))] = 0.0
        found = np.zeros(len(events), np.uint64)
        found[by_lane] = (since * _NANOSECONDS).astype(np.uint64)
        return found

    def _barriers(
        self, script: Script, kept: NDArray[Any]
    ) -> list[tuple[NDArray[Any], NDArray[Any], int]]:
        if not script.ranks:
            return []
        found = []
        for ranks, rows in order.find_barriers(
            self._job, self._lanes, script.ranks, np.sort(self._job.events["start"][kept])
        ):
            operations = np.zeros(len(rows), OPERATION)
            operations["verb"], operations["path"] = (
                BARRIER,
                collective.group_number(script, tuple(sorted(ranks))),
            )
            found.append((operations, rows, _BEFORE))
        return found

    def _processes(
        self, script: Script, kept: NDArray[Any]
    ) -> list[tuple[NDArray[Any], NDArray[Any], int]]:
        """The operations that order processes without MPI: waits and ends."""
        processes, first = np.unique(self._job.events["process"][kept], return_index=True)
        if len(processes) < 2:
            return []
        last = (
            len(kept) - 1 - np.unique(self._job.events["process"][kept][::-1], return_index=True)[1]
        )
        ends = np.zeros(len(processes), OPERATION)
        ends["verb"], ends["other"] = END, processes
        waiting = order.waits(
            self._job, processes, self._times.lanes.of(np.arange(len(self._job.processes)))
        )
        begins = np.zeros(len(waiting), OPERATION)
        begins["verb"], begins["path"] = WAIT, np.arange(len(waiting))
        script.waits = list(waiting.values())
        where = kept[first[np.searchsorted(processes, np.array(list(waiting), int))]]
        return [(ends, kept[last], _AFTER), (begins, where, _FIRST)]
