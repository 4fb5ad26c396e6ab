"""Types of arguments that are paths. Both refuse schemes that are not supported: see :func:`pario.paths.local_path`."""

from __future__ import annotations

import argparse
from pathlib import Path

from pario.errors import ParioError
from pario.paths import local_path


def path(text: str) -> Path:
    """A path."""
    try:
        return local_path(text)
    except ParioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def path_text(text: str) -> str:
    """A path, or a pattern of paths, as it was given."""
    path(text)
    return text


def staged_path_text(text: str) -> str:
    """Two paths, DIR=LOCAL, as they were given."""
    for one in text.split("=", 1):
        path(one)
    return text
