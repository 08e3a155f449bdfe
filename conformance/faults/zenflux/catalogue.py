"""Every fault of a ZenFlux server that the examiners must notice, by name."""

from conformance.faults.fault import Fault, faults_of
from conformance.faults.zenflux import (
    bad_answers,
    bad_blocks,
    bad_chats,
    bad_confirmations,
    bad_envelopes,
    bad_events,
    bad_frames,
    bad_lines,
    bad_messages,
    bad_orders,
    bad_rooms,
)

ON_THE_SOCKET = (bad_frames, bad_lines, bad_envelopes, bad_orders, bad_events, bad_messages, bad_blocks)
OVER_HTTP = (bad_chats, bad_confirmations, bad_rooms, bad_answers)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in faults_of(*ON_THE_SOCKET, *OVER_HTTP)}
