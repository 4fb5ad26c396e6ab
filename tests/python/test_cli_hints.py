"""``pario hints`` lists the table of hints of the library."""

from __future__ import annotations

import pytest

from pario.cli import main


def test_all_hints_have_a_default_and_a_meaning(capsys):
    assert main(["hints"]) == 0
    entries = capsys.readouterr().out.split("\n")
    assert "cb_buffer_size" in entries
    assert any("default 4M" in line for line in entries)


def test_a_hint_is_found_by_its_other_name(capsys):
    assert main(["hints", "stripe_count"]) == 0
    assert capsys.readouterr().out.startswith("striping_factor\n")


def test_an_unknown_name_is_an_error_with_a_guess(capsys):
    assert main(["hints", "cb_nods"]) == 2
    assert "did you mean cb_nodes" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["hint", "default", "meaning"])
def test_markdown_has_a_header(capsys, column):
    main(["hints", "--markdown"])
    assert column in capsys.readouterr().out.splitlines()[0]


def test_markdown_has_every_row_of_the_table_of_the_library(capsys):
    from pario._native import hint_table

    main(["hints", "--markdown"])
    lines = capsys.readouterr().out.splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [(row[0], row[2], row[3], row[4]) for row in cells] == [
        (f"`{key}`", default, ", ".join(aliases), meaning)
        for _, key, _, default, aliases, meaning, carrier, *_ in hint_table()
        if carrier == "hint"
    ]
