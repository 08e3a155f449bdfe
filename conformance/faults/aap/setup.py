"""How AAP servers are made for the kill matrix."""

from conformance.faults.aap import FAULTS
from conformance.faults.kill.setups import Setup
from conformance.faults.liberties import LIBERTIES
from conformance.faults.reference import ReferenceServer

SETUP = Setup(server_type=ReferenceServer, faults=FAULTS, liberties=LIBERTIES)
