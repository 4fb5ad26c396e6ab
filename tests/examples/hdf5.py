"""Finds serial HDF5 for the examples that write checkpoints with it."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.support.commands import run_command


def need_hdf5() -> None:
    """Finds HDF5 by HDF5_CFLAGS and HDF5_LIBS, else by pkg-config; skips if it is missing."""
    if "HDF5_LIBS" in os.environ:
        return
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not here (make test-all installs it)")
    packages = ("hdf5-serial", "hdf5")
    if all(run_command(["pkg-config", "--exists", package]).returncode for package in packages):
        pytest.skip("libhdf5-dev is not here (make test-all installs it)")
