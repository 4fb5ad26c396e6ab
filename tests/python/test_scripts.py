"""Scripts in the commands of interpreters."""

import pytest

from pario.see.analyze.call_sites import describe
from pario.see.analyze.libraries import user_depth
from pario.see.tables.model import Frame
from pario.see.tables.scripts import script_of


@pytest.mark.parametrize(
    "command, script",
    [
        ("perl -w samples.pl 10", "samples.pl"),
        ("/bin/bash -x /home/u/steps.sh", "/home/u/steps.sh"),
        ("node --max-old-space-size=64 run.js", "run.js"),
        ("java -cp build -Xmx64m Append 10", "Append"),
        ("bash -c true", ""),
        ("python3 run.py", ""),  # its calls have lines
        ("./solver input.txt", ""),
        ("", ""),
    ],
)
def test_script_is_found_in_the_command(command: str, script: str) -> None:
    assert script_of(command.split()) == script


def test_script_is_the_call_site_of_its_interpreter() -> None:
    inner = Frame(module="/usr/lib/libc.so.6", function="write")
    perl = Frame(module="/usr/bin/perl", address=64)
    script = Frame(file="/home/u/samples.pl")
    stack = (inner, perl, script)
    assert describe(stack[user_depth(stack)]) == "samples.pl"
    assert describe(perl) == "perl (it has no line information)"
    assert user_depth((inner, perl)) == 1
