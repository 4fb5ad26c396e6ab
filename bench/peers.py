"""Peers that judge the labelled corpus with `bench/diagnosis.py --peers`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.diagnosis.corpus import Program
from tests.diagnosis.judging import Diagnosis


@dataclass(frozen=True)
class Peer:
    """A tool: how it traces a program and reads its own traces."""

    name: str

    def variables(self, folder: Path, program: Program) -> Mapping[str, str]:
        raise NotImplementedError

    def diagnose(self, folder: Path, seconds: float) -> Diagnosis:
        raise NotImplementedError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the peers."""
    parser.add_argument("--peers", action="store_true")


def find(options: argparse.Namespace) -> Iterator[Peer]:
    """Returns the peers that are installed."""
    yield from ()
