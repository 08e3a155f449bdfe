"""Every fault of a Blade server that the examiners must notice, by name."""

from conformance.faults.blade import (
    ask_faults,
    block_faults,
    flow_faults,
    patch_faults,
    rest_faults,
    session_faults,
    shelf_faults,
    socket_faults,
    turn_faults,
)
from conformance.faults.fault import Fault, faults_of

MODULES = (
    session_faults,
    turn_faults,
    block_faults,
    patch_faults,
    flow_faults,
    ask_faults,
    socket_faults,
    rest_faults,
    shelf_faults,
)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in faults_of(*MODULES)}
