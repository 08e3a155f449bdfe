"""The situations that every dialect can play; a dialect takes those that it has words for, and adds its own."""

from collections.abc import Iterable
from dataclasses import replace

from conformance.clients.agent_actions import (
    Action,
    Asked,
    Call,
    Cut,
    Drop,
    End,
    Everything,
    Heartbeat,
    Refuse,
    Reply,
    Say,
    Think,
    Unknown,
    Wait,
)
from conformance.clients.situation import ECHO, SERVER_TOOL, TOOL, Instruction, Situation

FIRST, SECOND = "Hello from the examiners.", "And another message."
TWO = ("Send any message.", "When the answer is complete, send another message.")
ANSWER = Say(("The answer ", "has a few ", "words."))
PLAIN: Reply = (ANSWER, End())
PATIENCE = 3.0
"""Seconds for which the scripted server lets a client wait."""
WATCH = 6.0
"""Seconds for which a client is watched whose requests fail."""
RETRY_AFTER = 2
CUTS = ("cut_within_event", "cut_between_events", "cut_before_end")
"""The situations in which a connection breaks in the middle of a turn."""
DECLARE = f"Declare a client tool named {TOOL['name']}."
ENABLE = f"Let the agent use the server's tool {SERVER_TOOL}, and have it ask first."


def two_messages(name: str, section: str, sentence: str, *actions: Action, end: End | None = None) -> Situation:
    """The actions, then a second message, which shows that the client got through them."""
    instruction = Instruction(TWO, (FIRST, SECOND))
    return Situation(name, section, sentence, instruction, ((*actions, end or End()), PLAIN))


CONVERSATION = (
    two_messages(
        "plain", "messages", "A message is answered in two parts, and then another.",
        Say(("The answer ",)), Wait(1.0), Say(("has two parts.",)),
    ),
    Situation(
        "echo", "stream", "An answer arrives in pieces, and comes back as a message.",
        Instruction(
            ("Send any message.", "When the answer is complete, copy it and send it back, word for word."),
            (FIRST, ECHO),
        ),
        ((Say(("Größe: ", "3 × 4", " = 12; ", "“zwölf”", ", 十二", ".")), End()), PLAIN),
    ),
    two_messages(
        "every_event", "stream", "A turn has every event of the dialect.",
        Think(("Let me ", "think.")), Everything(), ANSWER,
    ),
)  # fmt: skip
TOLERANCE = (
    two_messages(
        "unknown_events", "tolerance", "Between the known events there are some that the dialect does not have.",
        Unknown(), Say(("Known words. ",)), Unknown(), ANSWER, Unknown(),
    ),
    replace(
        two_messages(
            "unknown_members", "tolerance", "Every event has members that the dialect does not have.",
            ANSWER,
        ),
        options={"members": {"x_examiners": {"deep": [1, None, "two"]}}},
    ),
    two_messages(
        "heartbeats", "tolerance", "Heartbeats come before, between and after the pieces of an answer.",
        Heartbeat(), Say(("Before ",)), Heartbeat(), Heartbeat(), Say(("and after.",)), Heartbeat(),
    ),
)  # fmt: skip
WAITS = (
    two_messages(
        "slow", "waits", f"The answer takes its time: {PATIENCE:g} s between its pieces.",
        Say(("One ",)), Wait(PATIENCE), Say(("two ",)), Wait(PATIENCE), Say(("three.",)),
    ),
    two_messages(
        "late", "waits", f"The answer begins only after {PATIENCE:g} s.", Wait(PATIENCE), ANSWER,
    ),
)  # fmt: skip
CLIENT_TOOL = Situation(
    "client_tool", "asks", "The agent calls the client's tool.",
    Instruction(
        (DECLARE, "Send any message.", "The tool returns: forty-two."), (FIRST,), tool=TOOL, result="forty-two"
    ),
    ((Say(("I look it up. ",)), Call((Asked.CLIENT,)), ANSWER, End()),),
)  # fmt: skip


def permission(name: str, decision: str, words: str) -> Situation:
    return Situation(
        name, "asks", "The agent asks before it uses a tool of the server.",
        Instruction((ENABLE, "Send any message.", words), (FIRST,), server_tool=SERVER_TOOL, decision=decision),
        ((Say(("May I? ",)), Call((Asked.PERMISSION,)), ANSWER, End()),),
    )  # fmt: skip


ALLOWED = permission("permission_allowed", "allow", "Allow the tool when you are asked.")
DENIED = permission("permission_denied", "deny", "Deny the tool when you are asked.")
SEVERAL = Situation(
    "several_asks", "asks", "The agent calls the client's tool and asks for permission at once.",
    Instruction(
        (DECLARE, ENABLE, "Send any message.", "The tool returns: forty-two.", "Allow the server's tool."),
        (FIRST,), tool=TOOL, result="forty-two", server_tool=SERVER_TOOL, decision="allow",
    ),
    ((Call((Asked.CLIENT, Asked.PERMISSION)), ANSWER, End()),),
)  # fmt: skip
TRUSTED = Situation(
    "trusted_tool", "asks", "The agent uses a tool of the server that needs no permission.",
    Instruction(
        (f"Let the agent use the server's tool {SERVER_TOOL} without asking.", *TWO), (FIRST, SECOND),
        server_tool=SERVER_TOOL, is_trusted=True,
    ),
    ((Call((Asked.NOTHING,)), ANSWER, End()), PLAIN),
)  # fmt: skip
QUESTION = Situation(
    "question", "asks", "The agent asks a question with two options.",
    Instruction(("Send any message.", "Answer the question with its second option."), (FIRST,), option=1),
    ((Say(("I must ask. ",)), Call((Asked.QUESTION,)), ANSWER, End()),),
)  # fmt: skip


def cuts() -> tuple[Situation, ...]:
    """The connection breaks at each class of offsets; afterwards the server is there again."""
    places = {
        "cut_within_event": ("within an event", (Say(("One ",)), Cut(is_within=True), Say(("two ", "three.")))),
        "cut_between_events": ("between two events", (Say(("One ",)), Cut(), Say(("two ", "three.")))),
        "cut_before_end": ("before the last event", (Say(("One ", "two ", "three.")), Cut())),
    }
    return tuple(
        replace(
            two_messages(name, "connection", f"The connection breaks {where}, once.", *actions),
            watch=WATCH,
            instruction=Instruction(
                ("Send any message.", "The connection breaks. When the client is ready again, send another message."),
                (FIRST, SECOND),
            ),
        )
        for name, (where, actions) in places.items()
    )


def errors(statuses: Iterable[int] = (400, 500)) -> tuple[Situation, ...]:
    """Messages are refused, each with one status for as long as the client tries."""
    once = Instruction(("Send any message; it will be refused.",), (FIRST,))
    return (
        *(
            Situation(f"refused_{status}", "errors", f"The message is refused with {status}, however often it comes.",
                      once, (Refuse(status),), watch=WATCH)
            for status in statuses
        ),
        Situation(
            "limited", "errors", f"The message is refused with 429 and Retry-After: {RETRY_AFTER}, and then answered.",
            Instruction(("Send any message; if the client says that it was refused, send it again.",), (FIRST,)),
            (Refuse(429, RETRY_AFTER), PLAIN), watch=WATCH,
        ),
    )  # fmt: skip


DROPPED = Situation(
    "dropped", "errors", "The connection closes in place of an answer to the message, once.",
    Instruction(("Send any message; if the client says that it failed, do nothing.",), (FIRST,)),
    (Drop(), PLAIN), watch=WATCH,
)  # fmt: skip
STOPPED = Situation(
    "stopped", "stop", "A long answer is stopped by the person.",
    Instruction(("Send any message.", "Stop the turn as soon as the answer begins."), (FIRST,), stop=True),
    ((Say(("A long ", "answer ")), Wait(30.0), Say(("that nobody waits for.",)), End()),),
)  # fmt: skip
