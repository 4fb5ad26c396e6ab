"""The rule about processes that each ask the file system for the same installed software."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Mask, unique_pairs
from pario.see.analyze.cells import META, READ
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    code,
    fact,
    scene,
    sum_seconds,
)

MANY_PROCESSES = 4
MANY_FILES = 50
MOST_TREES = 8
#: The directory of installed packages in a name of their files.
_PACKAGES = re.compile(r"^(/.+?/(?:site-packages|dist-packages|lib/python\d[\d.]*))/")
_MODULE = re.compile(r"\.(py|pyc|pyd|so[.\d]*)$")


def find_packages(facts: Facts) -> Mask:
    """True for rows of installed packages of Python, which the import of modules looks up."""
    found = [_PACKAGES.match(f"{path}/") is not None for path in facts.job.paths]
    return np.asarray(np.array(found or [False])[facts.job.files["path"]][facts.file])


def _repeated_imports(facts: Facts) -> Iterator[Candidate]:
    trees = _trees_of_files(facts)
    software = np.array([tree != "" for tree in trees] or [False])
    mask = facts.stored & facts.network[facts.file] & software[facts.file]
    mask &= facts.records["process"] >= 0
    if not mask.any():
        return
    processes = _count_processes(facts, mask)
    mask &= processes[facts.file] >= MANY_PROCESSES
    if len(np.unique(facts.file[mask])) >= MANY_FILES:
        yield _imports(facts, mask, processes, trees)


def _trees_of_files(facts: Facts) -> list[str]:
    """Return, per row of files, the directory of the software that a module belongs to, or that of
    installed packages; empty for other files."""
    paths = set(facts.job.paths)
    known: dict[str, str] = {}
    names = [facts.job.paths[number] for number in facts.job.files["path"].tolist()]
    return [_tree_of(path, paths, known) for path in names]


def _tree_of(path: str, paths: set[str], known: dict[str, str]) -> str:
    if found := _PACKAGES.match(path):
        return found[1]
    if not _MODULE.search(path):
        return ""
    folder = path.rpartition("/")[0].removesuffix("/__pycache__")
    if folder not in known:
        top = folder
        while f"{top}/__init__.py" in paths:
            top = top.rpartition("/")[0]
        known[folder] = top
    return known[folder]


def _count_processes(facts: Facts, mask: Mask) -> Floats:
    """Return the number of processes that use each file."""
    files, _ = unique_pairs(facts.file[mask], facts.records["process"][mask])
    return np.bincount(files, minlength=len(facts.job.files)).astype(float)


def _imports(facts: Facts, mask: Mask, processes: Floats, trees: list[str]) -> Candidate:
    subject = scene(facts, mask, facts.meta_seconds)
    rows = subject.rows
    count = len(np.unique(facts.records["process"][rows]))
    calls = sum(subject.total(name) for name in ("opens", "failed_opens", "stats", "lists"))
    took = sum_seconds(facts, rows, *META, READ)
    places = sorted({trees[file] for file in facts.file[rows].tolist()})
    outer = [one for one in places if not any(one.startswith(f"{tree}/") for tree in places)]
    candidate = subject.candidate(
        title=(
            f"{wording.count(count)} processes look up the same"
            f" {wording.count(len(np.unique(facts.file[rows])))} files of software in"
            f" {wording.name(outer[0])}"
        ),
        cause=(
            "Each process that imports modules asks the file system for the same names, and reads"
            " the same files again."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(calls)} calls about names, {wording.seconds(took)} in them and in"
                f" reads{facts.over_all}",
                calls=float(calls),
                processes=float(count),
            ),
        ),
        fixes=(
            code("Import before starting workers: forked processes have the modules already."),
            code("Or install the software on a local disk, or in one image file (SquashFS)."),
        ),
        claims=claim_all(facts, rows, (*META, READ), 1.0 - 1.0 / processes[facts.file[rows]]),
        method="time in calls on these files, of all processes of each file but one",
    )
    return replace(candidate, files=tuple(outer[:MOST_TREES]))


IMPORTS = Rule(
    name="repeated-imports",
    remedy="asking once per node for installed software",
    sees="Processes that each look up and read the same modules on a network file system.",
    threshold=(
        f"At least {MANY_FILES} files of software, each used by {MANY_PROCESSES} processes, on a"
        " network file system."
    ),
    estimate="Time in calls on these files, of all processes of each file but one.",
    advice="Imports before workers start, a local installation, or one image file.",
    control="The same modules on a local disk, or imported by one process.",
    find=_repeated_imports,
    repairs=(repairs.CACHED_TREES,),
)
