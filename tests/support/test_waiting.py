from __future__ import annotations

import os
import sys

import pytest

from tests.support.commands import run_command, start_command
from tests.support.waiting import LateError, wait_until


def test_the_first_true_value_is_returned() -> None:
    values = iter([0, "", None, "found", "later"])
    assert wait_until(lambda: next(values), "a value") == "found"


def test_the_description_and_the_processes_are_in_the_error() -> None:
    with start_command(["sleep", "1234"]) as sleeper:
        with pytest.raises(LateError) as caught:
            wait_until(lambda: False, "the impossible", limit=0.2)
        assert str(caught.value).startswith("not within 0.2 s: the impossible\n")
        assert f"{sleeper.pid} (parent " in str(caught.value)


@pytest.mark.parametrize(("factor", "expected"), [("", "120.0"), ("2.5", "300.0")])
def test_all_limits_are_multiplied_by_a_variable(factor: str, expected: str) -> None:
    code = "from tests.support.commands import run_command\n"
    code += "print(run_command.__kwdefaults__['limit'])"
    done = run_command(
        [sys.executable, "-c", code], env={**os.environ, "PARIO_TEST_PATIENCE": factor}, status=0
    )
    assert done.stdout == f"{expected}\n"
