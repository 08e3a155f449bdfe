"""How a client sees whether its message was taken; the folder of a dialect has its ways to send one."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.dialect_parts import dialects_with, part
from tests.support.gateway_server import Served

OK, FULL, UNCERTAIN = "taken", "no room", "uncertain"
STATUS = {200: OK, 202: OK, 503: FULL, 504: UNCERTAIN}
Say = Callable[[Served, str, str], Awaitable[str]]


async def post(served: Served, path: str, body: Any) -> str:
    async with served.http.post(served.url(path), json=body) as answer:
        if answer.status == 503:
            assert int(answer.headers["Retry-After"]) > 0
        await answer.read()
        return STATUS.get(answer.status, f"{answer.status} {await answer.text()}")


def all_ways() -> dict[str, Say]:
    """Every way of every dialect, by name."""
    modules = [part(dialect, "message_ways") for dialect in dialects_with("message_ways")]
    return {name: say for module in modules for name, say in module.WAYS.items()}
