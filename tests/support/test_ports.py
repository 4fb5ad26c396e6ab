"""Ports for servers of tests."""

from __future__ import annotations

import socket

from tests.support.ports import reserve_port


def test_reserved_ports_differ_and_can_be_listened_on() -> None:
    with reserve_port() as first, reserve_port() as second:
        assert first != second
        for port in (first, second):
            socket.create_server(("127.0.0.1", port)).close()


def test_a_port_with_a_server_is_passed_over() -> None:
    with reserve_port() as port:
        server = socket.create_server(("127.0.0.1", port))
    with server, reserve_port() as other:
        assert other != port
