"""The situations of CAS: those of all dialects, streams that are refused, and messages that are accepted late."""

from dataclasses import replace

from conformance.clients import situations as common
from conformance.clients.agent_actions import End
from conformance.clients.situation import Instruction, Situation

PLAIN, ECHO, EVERY_EVENT = common.CONVERSATION
REASONS = ("end_turn", "max_tokens", "refusal", "error")
ENDINGS = Situation(
    "endings", "stream", f"Turns end for each reason in turn: {', '.join(REASONS)}.",
    Instruction(
        (f"Send {len(REASONS) + 1} messages, each when the turn before is over, however it ended.",),
        tuple(f"Message {number}." for number in range(1, len(REASONS) + 2)),
    ),
    (*((common.ANSWER, End(reason)) for reason in REASONS), common.PLAIN),
)  # fmt: skip
LATE_ACCEPTANCE = replace(
    common.two_messages(
        "late_acceptance", "waits",
        f"The message is accepted {common.PATIENCE:g} s late: the turn is over before the request is answered.",
        common.ANSWER,
    ),
    options={"acceptance": common.PATIENCE},
)  # fmt: skip
REFUSED_STREAMS = Situation(
    "refused_streams", "connection", "The message is accepted, and every stream is refused with 503.",
    Instruction(("Send any message; its answer cannot be read.",), (common.FIRST,)),
    (common.PLAIN,), watch=common.WATCH, options={"stream_status": 503},
)  # fmt: skip
SITUATIONS = (
    PLAIN,
    ECHO,
    EVERY_EVENT,
    ENDINGS,
    replace(ECHO, name="odd_framing", sentence="The stream is valid and unusual: other line ends, cut anywhere.",
            options={"odd": True}),
    *common.TOLERANCE,
    common.CLIENT_TOOL,
    common.ALLOWED,
    common.DENIED,
    common.SEVERAL,
    common.TRUSTED,
    *common.WAITS,
    LATE_ACCEPTANCE,
    *common.cuts(),
    REFUSED_STREAMS,
    common.DROPPED,
    *common.errors(),
    common.STOPPED,
)  # fmt: skip
