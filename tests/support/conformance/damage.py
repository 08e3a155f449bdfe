"""Damages a share of what a server says, at random."""

import random
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.value_damage import damaged


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
