"""How CAS servers are made for the kill matrix; their hearts beat fast."""

from typing import Any

from pydantic import BaseModel

from conformance.faults.cas.server import CasServer
from conformance.faults.cas.variations import VARIATIONS
from conformance.faults.kill.setups import Setup
from conformance.kit.suite import Suite


def _profile(suite: Suite, server: Any) -> BaseModel:
    return suite.read_profile().model_copy(update={"heartbeat": server.streams.heartbeat})


SETUP = Setup(dialect="cas", server_type=CasServer, variations=VARIATIONS, profile=_profile)
