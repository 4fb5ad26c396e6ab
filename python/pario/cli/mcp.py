"""Serve pario to agents: a Model Context Protocol server on standard input and output, without a
network.

Its tools run, report, advise, fix, compare and explain answer with a stable id, a text and the next
step. Needs the package mcp.
"""

from __future__ import annotations

import argparse

from pario.errors import ParioError

_INSTRUCTIONS = (
    "pario finds why a program's I/O is slow and repairs it. Begin with `run`; each answer names"
    " the next tool with its arguments. `fix` does all steps at once and takes longer."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``pario mcp`` has no options."""


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from pario.cli import mcp_tools
    from pario.version import version

    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError as error:
        raise ParioError(
            "the package mcp 2 or later is not installed; expected: pip install 'mcp>=2'"
        ) from error
    server = MCPServer("pario", version=version(), instructions=_INSTRUCTIONS, log_level="WARNING")
    for tool in mcp_tools.TOOLS:
        server.tool(structured_output=False)(tool)  # text of JSON, for every client
    server.run("stdio")
    return 0
