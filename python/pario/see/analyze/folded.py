"""Rows that sum the further files of a directory, which a process had more of than the limit."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, sums
from pario.see.analyze.facts import Facts


def files_of_rows(facts: Facts) -> Floats:
    """How many files each row stands for: one; of a folded row its part of the process's folded
    files, shared out by opens."""
    many = np.ones(len(facts.file))
    rows = np.flatnonzero(facts.job.files["folded"][facts.file])
    process, opens = facts.records["process"][rows], facts.column("opens")[rows]
    all_opens = sums(process, opens, len(facts.job.processes))[process]
    files = facts.job.processes["files_folded"][process] * opens / np.maximum(all_opens, 1)
    many[rows] = np.maximum(files, 1)
    return many
