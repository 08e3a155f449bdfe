"""How CAS servers are made for the kill matrix; their hearts beat fast."""

from typing import Any

from pydantic import BaseModel

from conformance.faults.cas import FAULTS, CasServer
from conformance.faults.cas.liberties import LIBERTIES
from conformance.faults.kill.setups import Setup
from conformance.kit.suite import Suite


def _profile(suite: Suite, server: Any) -> BaseModel:
    return suite.read_profile().model_copy(update={"heartbeat": server.heartbeat})


SETUP = Setup(server_type=CasServer, faults=FAULTS, liberties=LIBERTIES, profile=_profile)
