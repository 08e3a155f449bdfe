"""How AAP servers are made for the kill matrix."""

from conformance.faults.aap.server import AapServer
from conformance.faults.aap.variations import VARIATIONS
from conformance.faults.kill.setups import Setup

SETUP = Setup(dialect="aap", server_type=AapServer, variations=VARIATIONS)
