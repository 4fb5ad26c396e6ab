"""Serve pario to agents: a Model Context Protocol server on standard input and output, without a
network.

Its tools run, report, advise, fix, compare and explain answer with a stable id, a text and the next
step. Needs the package mcp.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

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
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import CallToolResult, TextContent
    except ImportError as error:
        raise ParioError(
            "the package mcp 2 or later is not installed; expected: pip install 'mcp>=2'"
        ) from error
    server = MCPServer("pario", version=version(), instructions=_INSTRUCTIONS, log_level="WARNING")
    call = server.call_tool

    async def call_tool(name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Answers a call that fits no tool as the tools answer: with an id and a next step."""
        try:
            return await call(name, arguments, context)
        except ToolError as error:
            text = json.dumps(mcp_tools.describe_wrong_call(name, str(error)))
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

    server.call_tool = call_tool
    for tool in mcp_tools.TOOLS:
        server.tool(structured_output=False)(tool)  # text of JSON, for every client
    server.run("stdio")
    return 0
