"""How Quill servers are made for the kill matrix."""

from conformance.faults.quill.server import QuillServer

from conformance.faults.kill.setups import Setup

SETUP = Setup(dialect="quill", server_type=QuillServer)
