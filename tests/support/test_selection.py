"""The rule by which `--starts-processes` selects tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.selection import module_starts

ROOT = Path(__file__).parents[2]
FILES = {
    "conftest.py": (
        "import pytest, subprocess\n@pytest.fixture\ndef server():\n    return subprocess\n"
    ),
    "servers.py": "def start():\n    import subprocess\n    return subprocess\n",
    "test_forks.py": "import os\ndef test_fork():\n    os.fork()\n",
    "test_helper.py": "from tests import servers\ndef test_helper():\n    servers.start()\n",
    "test_lab.py": "from pario.prove.lab import mount\ndef test_lab():\n    mount.up()\n",
    "test_plain.py": "import os\ndef test_plain():\n    os.getpid()\n",
    "test_server.py": "def test_server(server):\n    pass\ndef test_alone():\n    pass\n",
}


def test_tests_are_selected_whose_modules_or_fixtures_start_processes(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = pytester.mkpydir("tests")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    plugin = Path(__file__).with_name("selection.py")
    (pytester.path / "processes.py").write_text(plugin.read_text())
    result = pytester.runpytest_subprocess("-p", "processes", "--starts-processes", "--co", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "tests/test_forks.py::test_fork",
        "tests/test_helper.py::test_helper",
        "tests/test_lab.py::test_lab",
        "tests/test_server.py::test_server",
    ]


@pytest.mark.parametrize(
    ("name", "starts"), [("tests/suites/runs.py", True), ("tests/python/test_model.py", False)]
)
def test_modules_of_this_repository_are_known(name, starts):
    assert module_starts(ROOT / name) == starts
