"""The selection of parameter combinations for CI."""

from itertools import combinations, product

import pytest

from tests.support.tiers import may_select, read_tiers, select_each_value, select_pairwise


def rows_of(*counts: int) -> list[tuple[tuple[str, int], ...]]:
    """Returns all combinations of parameters a, b, c ... with so many values each."""
    axes = [
        [(name, value) for value in range(count)]
        for name, count in zip("abcd", counts, strict=False)
    ]
    return list(product(*axes))


def pairs_of(rows: list[tuple[tuple[str, int], ...]]) -> set[object]:
    return {pair for row in rows for pair in combinations(row, 2)}


def test_every_pair_of_values_is_selected() -> None:
    rows = rows_of(3, 3, 3, 2)
    chosen = [rows[number] for number in sorted(select_pairwise(rows))]
    assert pairs_of(chosen) == pairs_of(rows)
    assert len(chosen) <= 12  # of 54


def test_one_parameter_is_selected_as_a_whole() -> None:
    assert select_pairwise(rows_of(5)) == {0, 1, 2, 3, 4}


def test_two_parameters_are_selected_as_a_whole() -> None:
    assert len(select_pairwise(rows_of(4, 3))) == 12


def test_combinations_that_do_not_exist_are_not_needed() -> None:
    rows = [row for row in rows_of(2, 2, 2) if row[0] != row[1]][:3]
    assert len(select_pairwise(rows)) == 3


def test_earlier_rows_are_preferred() -> None:
    rows = [*rows_of(1, 1, 1), *rows_of(1, 1, 1)]
    assert select_pairwise(rows) == {0}


def test_each_value_is_selected() -> None:
    rows = rows_of(3, 4, 2)
    chosen = [rows[number] for number in sorted(select_each_value(rows))]
    assert {value for row in chosen for value in row} == {value for row in rows for value in row}
    assert len(chosen) == 4


def test_values_seen_elsewhere_are_not_selected() -> None:
    rows = rows_of(2, 3)
    assert select_each_value(rows, {("a", 0), ("b", 0), ("b", 1)}) == {5}
    assert select_each_value(rows, {value for row in rows for value in row}) == set()


MATRIX = """
    import pytest
    @pytest.mark.parametrize("a", [1, 2, 3])
    @pytest.mark.parametrize("b", [[], {}, None])
    @pytest.mark.parametrize("c", "xyz")
    def test_all(a, b, c): pass
    """


@pytest.mark.parametrize(("tier", "least", "most"), [("quick", 9, 12), ("system", 3, 3)])
def test_a_matrix_of_three_parameters_is_thinned(
    pytester: pytest.Pytester, tier: str, least: int, most: int
) -> None:
    mark = "    pytestmark = pytest.mark.system\n" if tier == "system" else ""
    pytester.makepyfile(MATRIX.replace("    @", mark + "    @", 1))
    arguments = ("-p", "tests.support.tiers", "-m", "not exhaustive", "-q", "--collect-only")
    collected = pytester.runpytest(*arguments).outlines
    assert least <= sum("::test_all[" in line for line in collected) <= most


@pytest.mark.parametrize(
    ("expression", "tiers", "answer"),
    [
        ("not system and not exhaustive", {"system"}, False),
        ("not system and not exhaustive", {"exhaustive"}, False),
        ("system and not exhaustive", {"system"}, True),
        ("system and not exhaustive", {"exhaustive"}, False),
        ("exhaustive", {"system"}, True),
        ("browser", {"system"}, True),
        ("not mpi", {"system"}, True),
        ("mpi and not system", {"system"}, False),
    ],
)
def test_a_module_is_imported_only_if_a_test_may_be_selected(
    expression: str, tiers: set[str], answer: bool
) -> None:
    assert may_select(expression, tiers) == answer


@pytest.mark.parametrize(
    ("mark", "tiers"),
    [
        ("pytestmark = pytest.mark.system\n", {"system"}),
        ("pytestmark = [\n    pytest.mark.mpi,\n    pytest.mark.exhaustive,\n]\n", {"exhaustive"}),
        ("pytestmark = pytest.mark.mpi\nother = pytest.mark.system\n", set()),
        ("@pytest.mark.system\ndef test(): pass\n", set()),
    ],
)
def test_the_tier_of_a_module_is_read_from_its_source(mark: str, tiers: set[str]) -> None:
    assert read_tiers(f"import pytest\n\n{mark}\n") == tiers


def test_each_repetition_has_the_selection_of_one_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MATRIX)
    arguments = ["-p", "tests.support.tiers", "--collect-only", "-q", "-m", "not exhaustive"]
    lines = [
        {line for line in pytester.runpytest(*arguments, *count).outlines if "::" in line}
        for count in ([], ["--count", "3"])
    ]
    assert lines[1] == {line[:-1] + f"-{n}-3]" for line in lines[0] for n in (1, 2, 3)}


def test_a_module_of_another_tier_is_not_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\npytestmark = pytest.mark.system\nraise SystemError\ndef test_one(): pass"
    )
    arguments = ("-p", "tests.support.tiers", "-q", "--collect-only")
    assert (
        pytester.runpytest(*arguments, "-m", "not system").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    )
    assert pytester.runpytest(*arguments, "-m", "system").ret == pytest.ExitCode.INTERRUPTED
