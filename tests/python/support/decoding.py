"""Records which row groups are decoded."""

from __future__ import annotations

import pytest

from pario.records.groups import GroupedFile


def decoding(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list to which each later decoding appends its group."""
    seen: list[int] = []
    decode = GroupedFile.decode
    monkeypatch.setattr(
        GroupedFile, "decode", lambda self, group: (seen.append(group), decode(self, group))[1]
    )
    return seen
