"""The dialects of the kill matrix: how to make a correct server of each, and the profile that examines it quickly.

A fifth dialect is one more entry of `SETUPS`, an `orders.yaml` and a `survivors.yaml` beside its requirements.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from conformance.faults.fault import Fault, load_faults
from conformance.faults.serving import Servable
from conformance.kit.suite import Suite

KEY = "the-key-of-the-matrix"
TICK = 0.8


@dataclass(frozen=True)
class Setup:
    """How one dialect's correct and wrong servers are made."""

    server: Callable[[], Servable]
    wrong: Callable[[Fault], Servable]
    faults: Callable[[], Mapping[str, Fault]]
    profile: Callable[[Suite], BaseModel]
    naming: Callable[[str, Any], str] = lambda name, json: name
    """A finer name for a message, where one name stands for several shapes."""


def _usual(suite: Suite) -> BaseModel:
    return suite.read_profile()


def _aap() -> Setup:
    from conformance.faults.aap.server import AapServer

    return Setup(lambda: AapServer(KEY), _keyed, lambda: load_faults("aap"), _usual)


def _cas() -> Setup:
    from conformance.faults.cas.server import CasServer

    def profile(suite: Suite) -> BaseModel:
        return suite.read_profile().model_copy(update={"heartbeat": CasServer.heartbeat})

    return Setup(lambda: CasServer(KEY), _keyed, lambda: load_faults("cas"), profile)


def _blade() -> Setup:
    from conformance.faults.blade.server import BladeServer

    def naming(name: str, json: Any) -> str:
        kind = json.get("patch_type") if name == "turn:patch" and isinstance(json, dict) else None
        is_whole = kind == "add_content" and "text_delta" not in json["data"]
        return f"{name}({kind}{', whole' if is_whole else ''})" if kind else name

    return Setup(lambda: BladeServer(KEY), _keyed, lambda: load_faults("blade"), _usual, naming)


def _zenflux() -> Setup:
    from conformance.faults.zenflux.server import ZenfluxServer

    def quick(server: Any) -> Servable:
        """Ticks come fast, unless they are what is wrong."""
        if server.tick_every == ZenfluxServer.tick_every:
            server.tick_every = TICK
        return server  # type: ignore[no-any-return]

    def profile(suite: Suite) -> BaseModel:
        usual: Any = suite.read_profile()
        prompts = usual.prompts.model_copy(update={"slow": "/slow 12"})
        return usual.model_copy(update={"heartbeat": TICK + 0.1, "prompts": prompts})  # type: ignore[no-any-return]

    def wrong(fault: Fault) -> Servable:
        return quick(fault.server())

    return Setup(lambda: quick(ZenfluxServer()), wrong, lambda: load_faults("zenflux"), profile)


def _keyed(fault: Fault) -> Servable:
    server: Servable = fault.server(key=KEY)
    return server


SETUPS: dict[str, Callable[[], Setup]] = {"aap": _aap, "blade": _blade, "cas": _cas, "zenflux": _zenflux}


@cache
def setup_of(dialect: str) -> Setup:
    """The setup of this dialect; KeyError if there is none."""
    return SETUPS[dialect]()


class Routes:
    """Names requests after the routes of the server they are put to."""

    def __init__(self, server: Servable) -> None:
        self._router = server.app().router
        self._mount = server.mount

    async def name(self, request: web.Request) -> str:
        found = await self._router.resolve(request)
        resource = found.route.resource if found.http_exception is None else None
        path = resource.canonical.removeprefix(self._mount) if resource is not None else "?"
        return f"{request.method} {path}"
