"""``pario lab`` without a mounted lab: its errors and the parsing of times."""

from __future__ import annotations

from pathlib import Path

import pytest

from pario.cli import main
from pario.cli.lab import _duration
from pario.prove.lab import mount


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("0", 0), ("1ms", 10**6), ("0.5ms", 500_000), ("100us", 10**5), ("2s", 2 * 10**9), ("7ns", 7)],
)
def test_times(text: str, nanoseconds: int) -> None:
    assert _duration(text) == nanoseconds


@pytest.mark.parametrize(
    "option",
    [
        ["--latency", "5"],
        ["--latency", "fast"],
        ["--targets", "0"],
        ["--targets", "257"],
        ["--rate", "50X"],
    ],
)
def test_a_directory_without_a_lab_is_refused(option: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["lab", "up", str(tmp_path / "lab"), *option])
    assert raised.value.code == 2 and not any(tmp_path.iterdir())


def test_a_missing_program_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PARIO_LAB", raising=False)
    monkeypatch.setattr(mount, "PROGRAM", "no-such-program")
    assert main(["lab", "up", str(tmp_path / "lab")]) == 2
    assert "libfuse3" in capsys.readouterr().err and not any(tmp_path.iterdir())


@pytest.mark.parametrize("action", ["status", "down"])
def test_a_plain_directory_is_no_lab(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", action, str(tmp_path)]) == 2
    assert "is no lab" in capsys.readouterr().err
