"""Every fault of an AAP server that the examiners must notice, by name."""

from conformance.faults import (
    aap_configuration,
    aap_errors,
    aap_history,
    aap_meta,
    aap_pages,
    aap_sessions,
    aap_stops,
    aap_streaming,
    aap_tools,
    aap_turns,
)
from conformance.faults.fault import Fault, faults_of

MODULES = (
    aap_meta,
    aap_sessions,
    aap_configuration,
    aap_pages,
    aap_history,
    aap_turns,
    aap_streaming,
    aap_stops,
    aap_tools,
    aap_errors,
)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in faults_of(*MODULES)}
