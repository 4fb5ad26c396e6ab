"""Explain this installation: version and origin, library and glibc, MPI, packages, limits of the
machine. The exit status is 1 if something keeps pario from working well."""

from __future__ import annotations

import argparse
import dataclasses

from pario.cli.arguments import add_flag
from pario.cli.standard import until_reader_ends
from pario.messages import print_json

MARGIN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario doctor``."""
    add_flag(parser, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints a line per fact, and its problem beneath."""
    from pario.see.launch.installation import list_facts

    facts = list(list_facts())
    with until_reader_ends():
        if arguments.json:
            print_json([dataclasses.asdict(fact) for fact in facts])
        else:
            for fact in facts:
                print(f"{fact.subject:<{MARGIN}}{fact.value}")
                if fact.problem:
                    print(f"{'':<{MARGIN}}! {fact.problem}")
    return 1 if any(fact.problem for fact in facts) else 0
