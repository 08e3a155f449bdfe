"""How Quill servers are made for the kill matrix."""

from conformance.faults.quill import faults
from conformance.faults.quill.server import QuillServer

from conformance.faults.fault import faults_of
from conformance.faults.kill.setups import Setup

SETUP = Setup(server_type=QuillServer, faults={fault.name: fault for fault in faults_of(faults)})
