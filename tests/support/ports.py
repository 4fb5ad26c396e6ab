"""Ports of TCP for servers that tests start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MOST = 10_000


@contextmanager
def reserve_port() -> Iterator[int]:
    """Yields a port on which nothing listens, and which no other test gets meanwhile.

    The kernel gives it to no other program either: it is below the ports that it chooses for
    connections, and for servers without a number of their own.
    """
    first = int(_RANGE.read_text().split()[0])
    for port in range(first - 1, max(first - _MOST, 1024), -1):
        with socket.socket(socket.AF_UNIX) as mark:
            if _is_bound(mark, f"\0pario-test-port-{port}") and _is_free(port):
                yield port
                return
    raise OSError(f"all ports below {first} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _is_bound(probe, ("", port))


def _is_bound(one: socket.socket, address: str | tuple[str, int]) -> bool:
    """Binds a socket; returns False if the address is in use."""
    try:
        one.bind(address)
    except OSError:
        return False
    return True
