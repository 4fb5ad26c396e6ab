"""The rule about asynchronous requests that are awaited one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Mask, ratio
from pario.see.analyze.cells import READ, WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, scene, sum_seconds

MANY_REQUESTS = 500
SHALLOW = 2.0  # requests in flight
#: Requests that a device serves side by side at least (assumed).
PARALLEL = 4.0
LEAST_LATENCY = 20e-6  # seconds: faster requests come from a cache
LEAST_SIZE, LARGE = 512, 1 << 20  # bytes of a request


def _mean(facts: Facts, name: str) -> Floats:
    """Return a counter per asynchronous request; 0 without requests."""
    return ratio(facts.column(name), facts.column("async_requests"), 0.0)


def find_asynchronous(facts: Facts) -> Mask:
    """Return, per row, True if most calls are asynchronous requests."""
    return np.asarray(facts.column("async_requests") > 0.5 * (facts.reads + facts.writes))


def find_deep_queues(facts: Facts) -> Mask:
    """Return, per row, True if most calls are asynchronous requests with others in flight."""
    deep = _mean(facts, "queue_depth_sum") >= SHALLOW
    return np.asarray(find_asynchronous(facts) & deep)


def _shallow_queues(facts: Facts) -> Iterator[Candidate]:
    requests = facts.column("async_requests")
    size = ratio(facts.column("bytes_read") + facts.column("bytes_written"), requests, 0.0)
    mask = facts.posix & (requests >= MANY_REQUESTS)
    mask &= (_mean(facts, "queue_depth_sum") < SHALLOW) & (size >= LEAST_SIZE) & (size < LARGE)
    mask &= _mean(facts, "async_latency") >= LEAST_LATENCY
    if mask.any():
        yield _shallow_queue(
            facts, scene(facts, mask, facts.cells[:, READ] + facts.cells[:, WRITE])
        )


def _shallow_queue(facts: Facts, subject: Scene) -> Candidate:
    rows, count = subject.rows, max(float(subject.total("async_requests")), 1.0)
    depth = subject.total("queue_depth_sum") / count
    latency = float(facts.column("async_latency")[rows].sum()) / count
    moved = subject.total("bytes_read") + subject.total("bytes_written")
    took = sum_seconds(facts, rows, READ, WRITE)
    return subject.candidate(
        title=(
            f"{wording.count(count)} asynchronous requests of {wording.size(moved / count)} on"
            f" {subject.place}, {depth:.2g} in flight"
        ),
        cause=(
            f"The program waits for each request ({wording.seconds(latency)}) before it submits the"
            " next, although devices serve many at the same time."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} requests, {wording.seconds(latency)} each,"
                f" {wording.seconds(took)} in calls that submit and await them{facts.over_all}",
                requests=count,
                depth=depth,
                latency=latency,
            ),
        ),
        fixes=(
            code(
                "Keep 32 or more requests in flight: submit several before the first wait, and a"
                " new one for each that completes."
            ),
            code("Or use a few large requests: the device then works side by side by itself."),
        ),
        claims=claim_all(facts, rows, (READ, WRITE), 1.0 - max(depth, 1.0) / PARALLEL),
        method=(
            "time in the calls that submit and await requests, minus that of a device which serves"
            f" {PARALLEL:.0f} at the same time (assumed)"
        ),
    )


QUEUE_DEPTH = Rule(
    name="queue-depth",
    remedy="keeping several requests in flight",
    sees="Asynchronous requests (io_uring, libaio, POSIX AIO) that are awaited one by one.",
    threshold=(
        f"Per process and file at least {MANY_REQUESTS} requests of {LEAST_SIZE} B to"
        f" {LARGE >> 20} MiB on average, fewer than {SHALLOW:.0f} in flight, each of"
        f" {wording.seconds(LEAST_LATENCY)} or more."
    ),
    estimate=(
        "Time in the calls that submit and await requests, minus that of a device which serves"
        f" {PARALLEL:.0f} requests at the same time (assumed)."
    ),
    advice="32 or more requests in flight, or larger requests.",
    control="The same requests, 32 in flight.",
    find=_shallow_queues,
    why_not="only the program knows its next requests",
)
