"""How ZenFlux servers are made for the kill matrix; they tick fast, and are not slow for long."""

from typing import Any

from pydantic import BaseModel

from conformance.faults.kill.setups import Setup
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import TICK_EVERY
from conformance.faults.zenflux.variations import VARIATIONS
from conformance.kit.suite import Suite
from conformance.zenflux.rest_calls import BASE, owner_of

TICK = 0.8


def _quicken(server: Any) -> None:
    """Ticks come fast, unless they are what is wrong."""
    if server.socket.tick_every == TICK_EVERY:
        server.socket.tick_every = TICK


def _profile(suite: Suite, server: Any) -> BaseModel:
    usual: Any = suite.read_profile()
    prompts = usual.prompts.model_copy(update={"slow": "/slow 12"})
    profile: BaseModel = usual.model_copy(update={"heartbeat": TICK + 0.1, "prompts": prompts})
    return profile


SETUP = Setup(
    dialect="zenflux",
    server_type=ZenfluxServer,
    variations=VARIATIONS,
    profile=_profile,
    has_keys=False,
    quicken=_quicken,
    owner_of=lambda method, path: owner_of(method, path.removeprefix(BASE)),
)
