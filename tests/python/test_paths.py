"""Paths with a scheme, such as s3://bucket/key, are refused wherever a path is taken: else a directory "s3:" would be made."""

import pytest

from pario.checkpoint import CheckpointError, Writer

REMOTE = "s3://bucket/key"


@pytest.mark.xfail(strict=True, reason="the directory 's3:' is made")
def test_no_directory_is_made_of_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError):
        Writer(None, REMOTE)
    assert list(tmp_path.iterdir()) == []
