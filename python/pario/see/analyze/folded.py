"""Folded rows: each sums up the files of a directory beyond a process's limit of files."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, sums
from pario.see.analyze.facts import Facts


def files_of_rows(facts: Facts) -> Floats:
    """Return the number of files of each row: one, or for a folded row its part of the process's
    folded files, in proportion to opens (of missing files, too) or questions, if these are more."""
    many = np.ones(len(facts.file))
    rows = np.flatnonzero(facts.job.files["folded"][facts.file])
    process = facts.records["process"][rows]
    opens = facts.column("opens") + facts.column("failed_opens")
    used = np.maximum(opens, facts.column("stats"))[rows]
    every = sums(process, used, len(facts.job.processes))[process]
    files = facts.job.processes["files_folded"][process] * used / np.maximum(every, 1)
    many[rows] = np.maximum(files, 1)
    return many
