"""From rules to findings: the rules claim seconds in the order of their table, and findings with
too few seconds are left out."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints
from pario.see.analyze.call_sites import CallSites
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Ledger
from pario.see.analyze.model import Finding, Fix
from pario.see.analyze.rules import RULES
from pario.see.analyze.rules.base import Candidate, Rule, code
from pario.see.analyze.rules.repairs import (
    are_buffered,
    fixes_by,
    reason_against,
    settings_for,
)
from pario.see.tables.model import Job

#: Findings worth less of the wall time than this, or fewer seconds, are not shown. In a short run,
#: fewer seconds suffice if they are a larger share of it.
MIN_SHARE, MIN_SECONDS = 0.01, 0.05
SHORT_MIN_SHARE, SHORT_MIN_SECONDS = 0.04, 0.02
#: The upper end of an estimate's range relative to the lower one; docs/predictions.md counts the
#: gains within it.
RANGE = 2.0
#: The part of a file's bytes and calls that buffers serve where they repair it.
SERVED = 0.9
#: Time between calls that a promise does not contain is named from this part of the run on.
UNCOUNTED = 0.1


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Return all findings, most seconds first."""
    ledger = Ledger(facts)
    minimum = least_seconds(facts.wall)
    sites = CallSites(facts)
    found: list[Finding] = []
    own: list[tuple[Candidate, float]] = []  # with the computation that each finding claims
    environment = facts.job.metadata.get("env", {}) | (
        {"PARIO_MPIIO": "1"} if facts.has("own_mpiio") else {}
    )
    buffered, repaired = find_buffered(facts.job), find_repaired(facts)
    for rule in RULES:
        if rule.alone and found:
            continue
        for candidate in rule.find(facts):
            if _has_buffers(rule) and repaired.issuperset(candidate.files or ("",)):
                continue
            lanes = _find_lanes(candidate)
            before = ledger.sum_claimed_computation(lanes)
            worth = ledger.grant(candidate.claims, minimum)
            if worth > 0:
                made = _finding(rule, candidate, worth, environment, buffered, sites)
                least, most = estimate_range(worth)
                found.append(replace(made, least=least, most=min(most, facts.wall)))
                own.append((candidate, ledger.sum_claimed_computation(lanes) - before))
    found = [
        replace(made, cause=f"{made.cause}{_describe_rest(candidate, made, ledger, claimed)}")
        for made, (candidate, claimed) in zip(found, own, strict=True)
    ]
    return tuple(sorted(found, key=lambda finding: -finding.seconds))


def _find_lanes(candidate: Candidate) -> Ints:
    """Return the lanes with time between the candidate's calls that it does not claim."""
    lanes = [claim.rows for claim in candidate.claims if claim.beyond]
    return np.unique(np.concatenate(lanes)) if lanes else np.zeros(0, np.int64)


def least_seconds(wall: float) -> float:
    """Return the seconds that a finding must be worth in a run."""
    short = max(SHORT_MIN_SHARE * wall, SHORT_MIN_SECONDS)
    return max(MIN_SHARE * wall, min(MIN_SECONDS, short))


def estimate_range(seconds: float) -> tuple[float, float]:
    """Return the ends of the range of estimated seconds, which are its geometric mean."""
    return seconds / math.sqrt(RANGE), seconds * math.sqrt(RANGE)


def _finding(
    rule: Rule,
    candidate: Candidate,
    seconds: float,
    environment: Mapping[str, str],
    buffered: Collection[str],
    sites: CallSites,
) -> Finding:
    repairs = () if candidate.why_not else rule.repairs
    settings = settings_for(repairs, candidate, environment, buffered)
    places = (
        sites.of_functions(candidate.functions, candidate.processes)
        if candidate.functions
        else sites.of_claims(candidate.claims, by_calls=rule.by_calls)
    )
    return Finding(
        rule=rule.name,
        title=candidate.title,
        cause=candidate.cause,
        seconds=seconds,
        method=candidate.method,
        confidence=candidate.confidence,
        evidence=(*candidate.evidence, *places.evidence),
        fixes=(*fixes_by(settings), *_fixes(rule, candidate, buffered)),
        files=candidate.files,
        file_count=candidate.file_count,
        ranks=candidate.ranks,
        pace=candidate.pace,
        remedy=candidate.remedy or rule.remedy,
        settings=settings,
        sites=places.named,
        why_not=""
        if settings
        else candidate.why_not or reason_against(rule.repairs, candidate) or rule.why_not,
    )


def _describe_rest(candidate: Candidate, finding: Finding, ledger: Ledger, own: float) -> str:
    """Return a sentence on the time between the calls of an interpreter that no promise contains,
    if it is long: its packages may prepare calls in it, or parse their results. ``own``: the
    computation that this finding claims; others may claim the same time between the calls."""
    others = ledger.sum_claimed_computation(_find_lanes(candidate)) - own
    beyond = sum(claim.beyond for claim in candidate.claims) - others
    beyond = min(beyond, ledger.wall - finding.seconds)
    if beyond < max(finding.seconds, UNCOUNTED * ledger.wall):
        return ""
    return (
        f" Another {wording.seconds(beyond)} pass between these calls: if packages prepare the"
        " calls or parse their results meanwhile, the change saves more."
    )


def find_buffered(job: Job) -> frozenset[str]:
    """Return the files for which the settings of the run asked for pario's buffers."""
    return frozenset(
        it.path for it in job.audit if (it.table, it.key) == ("streams", "buffers") and it.applied
    )


def find_repaired(facts: Facts) -> frozenset[str]:
    """Return the files whose calls pario's buffers served (nearly) all, with few calls of their
    own: a finding that buffers repair is repaired."""
    whole = facts.posix | facts.stdio
    calls = facts.per_file(facts.reads + facts.writes, whole)
    below = facts.per_file(facts.column("system_reads") + facts.column("system_writes"))
    moved = facts.per_file(facts.column("bytes_read") + facts.column("bytes_written"), whole)
    buffered = facts.column("buffered_read_bytes") + facts.column("buffered_write_bytes")
    through = facts.per_file(buffered, whole)
    served = (through > 0) & (through >= SERVED * moved) & (below <= (1 - SERVED) * calls)
    return frozenset(facts.path(int(file)) for file in np.flatnonzero(served))


def _has_buffers(rule: Rule) -> bool:
    return any(repair.buffers for repair in rule.repairs)


def _fixes(rule: Rule, candidate: Candidate, buffered: Collection[str]) -> tuple[Fix, ...]:
    """Return the repairs by hand: for files with buffers, no further buffer."""
    if not _has_buffers(rule) or not are_buffered(candidate, buffered):
        return candidate.fixes
    return (
        code(
            "pario buffers the file already, so that the time left is that of the calls: move whole"
            " arrays with one call."
        ),
    )
