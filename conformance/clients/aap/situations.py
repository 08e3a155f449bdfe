"""The situations of AAP: those of all dialects, and agents that do not stream in every mode."""

from dataclasses import replace

from conformance.clients import situations as common
from conformance.clients.agent_actions import End
from conformance.clients.situation import SERVER_TOOL, Instruction, Situation

PLAIN, ECHO, EVERY_EVENT = common.CONVERSATION
FRESH = "Start the client anew, so that it asks the server what the agent can do."
REASONS = ("end_turn", "max_tokens", "refusal", "error")


def only(mode: str, name: str) -> Situation:
    """The echo, at an agent that declares one mode."""
    instruction = Instruction((FRESH, *ECHO.instruction.words), ECHO.instruction.messages)
    told = f"The agent declares only the stream mode {mode}."
    return replace(ECHO, name=name, sentence=told, instruction=instruction, options={"modes": (mode,)})


ENDINGS = Situation(
    "endings", "stream", f"Turns end for each reason in turn: {', '.join(REASONS)}.",
    Instruction(
        (f"Send {len(REASONS) + 1} messages, each when the turn before is over, however it ended.",),
        tuple(f"Message {number}." for number in range(1, len(REASONS) + 2)),
    ),
    (*((common.ANSWER, End(reason)) for reason in REASONS), common.PLAIN),
)  # fmt: skip
SITUATIONS = (
    PLAIN,
    ECHO,
    only("message", "only_messages"),
    only("none", "only_whole"),
    replace(EVERY_EVENT, instruction=replace(
        EVERY_EVENT.instruction, words=common.TRUSTED.instruction.words, server_tool=SERVER_TOOL, is_trusted=True)),
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
    *common.cuts(),
    common.DROPPED,
    *common.errors(),
    common.STOPPED,
)  # fmt: skip
