"""The situations of ZenFlux: those of all dialects, its own asks, ticks that stay away, refused sockets."""

from dataclasses import replace

from conformance.clients import situations as common
from conformance.clients.agent_actions import Asked, Call, Cut, End, Say, Wait
from conformance.clients.situation import Instruction, Situation

PLAIN, ECHO, EVERY_EVENT = common.CONVERSATION
REASONS = ("completed", "failed", "error", "timeout")
TICKLESS = 65.0
"""Seconds without a tick: a client waits for 60."""
REFUSAL_WATCH = 12.0
ENDINGS = Situation(
    "endings", "events", "Runs end in each way in turn: completed, failed, with an error event, stopped by the server.",
    Instruction(
        (f"Send {len(REASONS) + 1} messages, each when the answer before is over, however it ended.",),
        tuple(f"Message {number}." for number in range(1, len(REASONS) + 2)),
    ),
    (*((common.ANSWER, End(reason)) for reason in REASONS), common.PLAIN),
)  # fmt: skip


def confirmation(name: str, decision: str, words: str) -> Situation:
    return Situation(
        name, "confirmations", "The agent asks for a confirmation before it uses a tool.",
        Instruction(("Send any message.", words), (common.FIRST,), decision=decision),
        ((Say(("May I? ",)), Call((Asked.PERMISSION,)), common.ANSWER, End()),),
    )  # fmt: skip


CONTINUATION = Situation(
    "continuation", "confirmations", "A long task asks whether it may go on.",
    Instruction(("Send any message.", "Let the task go on when you are asked."), (common.FIRST,), decision="allow"),
    ((Say(("A long task. ",)), Call((Asked.CONTINUATION,)), common.ANSWER, End()),),
)  # fmt: skip
ROLLBACK = Situation(
    "rollback", "confirmations", "A task has failed and offers two states to go back to.",
    Instruction(("Send any message.", "Choose the second of the offered states."), (common.FIRST,), option=1),
    ((Say(("It failed. ",)), Call((Asked.ROLLBACK,)), common.ANSWER, End()),),
)  # fmt: skip
NO_TICKS = Situation(
    "no_ticks", "connection", f"In the middle of an answer the server is silent for {TICKLESS:g} s, without any tick.",
    Instruction(("Send any message, and wait.",), (common.FIRST,)),
    ((Say(("One ",)), Wait(TICKLESS), Say(("two.",)), End()),), quiet=TICKLESS,
)  # fmt: skip
REFUSED_SOCKETS = Situation(
    "refused_sockets", "connection", "The connection breaks, and every new one is refused.",
    Instruction(("Send any message.", "The connection breaks; wait."), (common.FIRST,)),
    ((Say(("One ",)), Cut(), Say(("two.",)), End()),), watch=REFUSAL_WATCH, options={"refuse_after_cut": True},
)  # fmt: skip
SITUATIONS = (
    PLAIN,
    ECHO,
    EVERY_EVENT,
    ENDINGS,
    *common.TOLERANCE,
    confirmation("confirmation_approved", "allow", "Approve when you are asked."),
    confirmation("confirmation_rejected", "deny", "Reject when you are asked."),
    replace(common.QUESTION, section="confirmations"),
    CONTINUATION,
    ROLLBACK,
    *common.WAITS,
    NO_TICKS,
    *common.cuts(),
    REFUSED_SOCKETS,
    *common.errors()[:2],
    common.STOPPED,
)  # fmt: skip
