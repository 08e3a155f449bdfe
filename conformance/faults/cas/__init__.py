"""The CAS reference server, and every fault of a CAS server that the examiners must notice, by name."""

from conformance.faults.cas import (
    wrong_asks,
    wrong_conventions,
    wrong_deltas,
    wrong_endings,
    wrong_events,
    wrong_mounts,
    wrong_resources,
    wrong_sessions,
    wrong_snapshots,
    wrong_streams,
    wrong_threads,
    wrong_turns,
    wrong_variables,
)
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import Fault, faults_of

MODULES = (
    wrong_conventions,
    wrong_sessions,
    wrong_snapshots,
    wrong_variables,
    wrong_mounts,
    wrong_events,
    wrong_turns,
    wrong_endings,
    wrong_asks,
    wrong_streams,
    wrong_deltas,
    wrong_threads,
    wrong_resources,
)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in faults_of(*MODULES)}

__all__ = ["FAULTS", "CasServer"]
