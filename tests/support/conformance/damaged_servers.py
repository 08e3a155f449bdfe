"""Servers of every dialect that damage a share of what they say, at random."""

import random
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.aap.server import AapServer
from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.state import Session
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body
from conformance.faults.damage import damaged
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from conformance.kit.verdict import Report
from tests.support.conformance.examinations import KEY, examine_server, stumbles

WITHIN = 1.0
AT_ONCE = 16


class Damage:
    """Damages a share of the values that it is shown."""

    def __init__(self, seed: int, share: float) -> None:
        self._chance, self._share = random.Random(seed), share

    def perhaps(self, value: Any) -> Any:
        return damaged(value, self._chance) if self._chance.random() < self._share else value

    def answer(self, response: web.StreamResponse) -> web.StreamResponse:
        """The answer, its body perhaps damaged if that is JSON."""
        is_json = isinstance(response, web.Response) and response.content_type == "application/json"
        if not is_json or not response.body:  # type: ignore[attr-defined]
            return response
        body = orjson.loads(response.body)  # type: ignore[attr-defined]
        return web.json_response(self.perhaps(body), status=response.status)


class DamagedAap(AapServer):
    """Damages a share of its bodies and events."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(key=KEY)
        self.damage = damage

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        return self.damage.answer(await super().answer(request, handler))

    def frame(self, name: str, body: Any) -> bytes:
        return super().frame(name, self.damage.perhaps(body))


class DamagedBlade(BladeServer):
    """Damages a share of its bodies and events; the handshake of a socket stays whole."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(KEY)
        self.damage = damage

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        return response if request.path.startswith("/socket.io/") else self.damage.answer(response)

    def events(self, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        return [(name, self.damage.perhaps(body))]


class DamagedCas(CasServer):
    """Damages a share of its bodies and events."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(KEY)
        self.damage = damage

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        return self.damage.answer(await super().answer(request, handler))

    def frame(self, body: Body) -> bytes:
        head, data, _ = super().frame(body).partition(b"data: ")
        return head + data + orjson.dumps(self.damage.perhaps(body)) + b"\n\n"


class DamagedZenflux(ZenfluxServer):
    """Damages a share of its bodies, frames and events."""

    def __init__(self, damage: Damage) -> None:
        super().__init__()
        self.damage = damage

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        return self.damage.answer(await super().answer(request, handler))

    async def send(self, line: Line, frame: Any) -> None:
        await super().send(line, self.damage.perhaps(frame))

    def chunk(self, envelope: Any) -> bytes:
        return super().chunk(self.damage.perhaps(envelope))


DAMAGED: dict[str, Callable[[Damage], Any]] = {
    "aap": DamagedAap, "blade": DamagedBlade, "cas": DamagedCas, "zenflux": DamagedZenflux,
}


async def examine_damaged(dialect: str, seed: int, share: float, *ids: str) -> tuple[Report, list[str]]:
    """Examine a server that damages this share of what it says: the report, and where examiners broke."""
    server = DAMAGED[dialect](Damage(seed, share))
    report = await examine_server(dialect, server, *ids, within=WITHIN, at_once=AT_ONCE)
    return report, stumbles(report)
