"""Requests of PnetCDF that the program starts and never awaits: their data may be lost."""

from __future__ import annotations

import numpy as np

from pario import wording
from pario.see.analyze.facts import Facts
from pario.see.tables.model import LAYERS

PNETCDF = LAYERS.index("pnetcdf")


def explain_pending(facts: Facts) -> tuple[str, ...]:
    """Return a message for each file of which no process awaits its requests."""
    of_library = facts.library & (facts.records["layer"] == PNETCDF)
    requests = facts.column("nonblocking_calls")
    started: dict[str, float] = {}
    for row in np.flatnonzero(of_library & (requests > 0)):
        file = facts.path(int(facts.file[row])).rpartition(":")[0]
        started[file] = started.get(file, 0.0) + float(requests[row])
    # ncmpi_wait and ncmpi_wait_all count as flushes of the file.
    awaited = {
        facts.path(int(facts.file[row]))
        for row in np.flatnonzero(of_library & (facts.column("flushes") > 0))
    }
    return tuple(
        f"{wording.count(count)} requests of PnetCDF (ncmpi_iput_*, ncmpi_iget_*) on {file} were"
        " never awaited: ncmpi_wait_all moves their data, ncmpi_close does not"
        for file, count in started.items()
        if file not in awaited
    )
