"""The options of ``pario run`` and the tables to which they refer."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from pario.cli.options import RUN_OPTIONS, add_options, chosen_variables
from pario.settings import keys


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "option", [option for option in RUN_OPTIONS if option.variable], ids=lambda option: option.name
)
def test_a_variable_of_an_option_has_a_key_in_a_settings_file(option):
    assert option.variable in {key.carried for key in keys() if key.table == "run"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["--events-limit", "0"], {"PARIO_TRACE_EVENTS_LIMIT": "0"}),
        (["--files-limit", "7"], {"PARIO_TRACE_FILES_LIMIT": "7"}),
        (["--no-arguments"], {"PARIO_TRACE_ARGUMENTS": "no"}),
        (["--no-sites"], {"PARIO_TRACE_SITES": "no"}),
        (["--mpiio"], {"PARIO_MPIIO": "1"}),
        (["--hint", "cb_nodes=2"], {"PARIO_MPIIO": "1"}),
    ],
)
def test_options_set_the_variables_of_the_library(words, expected):
    assert chosen_variables(parse(*words)) == expected


def test_every_option_has_an_attribute_of_its_own():
    names = [option.name for option in RUN_OPTIONS]
    assert len({*names}) == len(names)
    assert {*names} == {*vars(parse())}


def test_the_parser_loads_neither_the_native_module_nor_numpy():
    code = (
        "import sys; from pario.cli import build_parser; build_parser().format_help();"
        "print(sorted({'pario._native', 'numpy', 'tomllib', 'rich'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
