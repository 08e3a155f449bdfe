"""How Quill servers are made for the kill matrix."""

from conformance.faults.quill.faults import FAULTS
from conformance.faults.quill.server import QuillServer

from conformance.faults.kill.setups import Setup

SETUP = Setup(server_type=QuillServer, faults=FAULTS)
