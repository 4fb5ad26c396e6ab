"""Random sequences of calls on buffered files: same results, errors and contents as the kernel's.

PARIO_SEED selects one sequence, PARIO_SEQUENCES sets their number; the seed is part of a test's
name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pario.see.launch.keeper import keeping
from tests.streams.conftest import Start

STEPS = 400
SEEDS = (
    [int(os.environ["PARIO_SEED"])]
    if "PARIO_SEED" in os.environ
    else range(1, 1 + int(os.environ.get("PARIO_SEQUENCES", "40")))
)
SETTINGS = [
    "*:size=4K:count=2",
    "*:size=4K:count=4:handles",
    "*:size=4K:count=4:handles:lazyclose",
    "*:size=4K:count=8:sync",
    "*:size=4K:count=4:lazyclose",
    "*.dat:size=64K:whole=1M",
    "*:size=4K:count=4:survive",
]


@pytest.mark.system
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_sequence_has_the_same_results_as_without_buffers(
    start: Start, build: Callable[[str], Path], seed: int
) -> None:
    program = build("sequence.c")
    plain = start(program, seed, STEPS)
    for streams in {SETTINGS[0], *(SETTINGS[(seed + more) % len(SETTINGS)] for more in (0, 1))}:
        with keeping({"PARIO_STREAMS": streams}) as env:
            buffered = start(program, seed, STEPS, streams=streams, env=env)
        assert buffered.stdout.splitlines() == plain.stdout.splitlines(), (streams, buffered.stderr)
        assert (buffered.status, buffered.stderr) == (plain.status, plain.stderr), streams
        assert buffered.files == plain.files, streams
