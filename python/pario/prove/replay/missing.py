"""The data that a log lacks for a replay, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.split import Times
from pario.see.tables.model import EVENT_KINDS, FILE_LAYERS, Job

#: Calls that have an event each, in logs that hold them.
_SEEN = {"pario": ("opens", "closes", "reads", "writes"), "darshan": ("reads", "writes")}
_KIND = {"opens": "open", "closes": "close", "reads": "read", "writes": "write"}


def missing(job: Job, times: Times) -> Iterator[str]:
    """Yield the reasons why a job cannot be replayed; none if the log holds an event for each
    call."""
    if "events" not in job.has:
        yield "it has counters only, no events"
        return
    # The calls of an MPI's launcher are not played: a signal may have interrupted its tracer.
    processes = job.processes[times.lanes.of_process >= 0]
    texts = {
        "events_merged": "{} calls have no event of their own (the limit for events was near)",
        "lost": "{} calls were not counted",
        "files_folded": "the names of {} files are not kept (more files than the limit)",
    }
    totals = {name: int(processes[name].sum()) for name in texts}
    yield from (texts[name].format(total) for name, total in totals.items() if total)
    if not any(totals.values()):
        yield from _without_event(job, times)
    absent = (
        job.ranks - len(np.unique(processes["rank"][processes["rank"] >= 0]))
        if times.lanes.mpi
        else 0
    )
    if absent > 0:
        yield f"the logs of {absent} of {wording.plural(job.ranks, 'rank')} are not here"


def remedy(job: Job) -> str:
    """Describe how to record a complete log."""
    if job.format == "darshan":
        return (
            "record again with DXT_ENABLE_IO_TRACE=1 and enough of Darshan's memory"
            " (DARSHAN_MODMEM), or with pario run"
        )
    return (
        "record again with pario run, if necessary with a larger --events-limit and --files-limit"
    )


def _without_event(job: Job, times: Times) -> Iterator[str]:
    """Yield descriptions of calls that have been counted, but have no event."""
    events, records = job.events, times.job.records
    stored = times.storage[records["file"]]
    own = (
        (events["layer"] < len(FILE_LAYERS))
        & (events["file"] >= 0)
        & (times.lanes.of(events["process"]) >= 0)
    )
    own[own] = times.storage[events["file"][own]]
    for layer, name in enumerate(FILE_LAYERS):
        for counter in _SEEN[job.format]:
            counted = int(records[counter][stored & (records["layer"] == layer)].sum())
            kind = (
                own
                & (events["layer"] == layer)
                & (events["kind"] == EVENT_KINDS.index(_KIND[counter]))
                & ((events["flags"] & 1) == 0)
            )
            seen = int(events["count"][kind].sum(dtype=np.int64))
            if seen < counted and not (counter == "closes" and name == "stdio"):
                yield f"{counted - seen} of {counted} {counter} ({name}) have no event"
