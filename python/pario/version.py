"""The one version number: that of git's tags, which the build writes into the installed package."""

from __future__ import annotations


def version() -> str:
    """Version of the installed package; ``unknown`` in a source tree that was never installed."""
    try:
        from pario._version import VERSION
    except ImportError:
        return "unknown"
    return str(VERSION)
