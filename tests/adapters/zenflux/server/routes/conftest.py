"""Registered MCP servers have names in example.com: nobody asks the network for them."""

import socket
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_name_service(monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def find(host: Any, *further: Any, **options: Any) -> Any:
        if str(host).endswith("example.com"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *further, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)
