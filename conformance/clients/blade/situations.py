"""The situations of Blade: those of all dialects, several questions, sub-agents, and sockets that are refused."""

from dataclasses import replace

from conformance.clients import situations as common
from conformance.clients.agent_actions import Cut, End, Say
from conformance.clients.situation import Instruction, Situation

PLAIN, ECHO, EVERY_EVENT = common.CONVERSATION
REASONS = ("completed", "max_turns", "failed", "interrupted")
REFUSAL_WATCH = 12.0
ENDINGS = Situation(
    "endings", "events", f"Chats end in each way in turn: {', '.join(REASONS)}.",
    Instruction(
        (f"Send {len(REASONS) + 1} messages, each when the chat before is over, however it ended.",),
        tuple(f"Message {number}." for number in range(1, len(REASONS) + 2)),
    ),
    (*((common.ANSWER, End(reason)) for reason in REASONS), common.PLAIN),
)  # fmt: skip
QUESTION = replace(common.QUESTION, section="questions")
TWO_QUESTIONS = replace(
    QUESTION, name="two_questions", sentence="The agent asks two questions at once.", options={"questions": 2},
    instruction=Instruction(
        ("Send any message.", "Answer both questions with their second option."), (common.FIRST,), option=1),
)  # fmt: skip
CHILD_QUESTION = replace(
    QUESTION, name="child_question", sentence="A sub-agent asks a question.", options={"from_child": True},
)  # fmt: skip
CHILD = replace(
    ECHO, name="child_words", sentence="A sub-agent says something while the agent answers.",
    instruction=Instruction(
        ("Send any message.", "When the answer is complete, copy it, without what sub-agents say, and send it back."),
        ECHO.instruction.messages,
    ),
    options={"child": True},
)  # fmt: skip
REFUSED_SOCKETS = Situation(
    "refused_sockets", "connection", "The connection breaks, and every new one is refused.",
    Instruction(("Send any message.", "The connection breaks; wait."), (common.FIRST,)),
    ((Say(("One ",)), Cut(), Say(("two.",)), End()),), watch=REFUSAL_WATCH, options={"refuse_after_cut": True},
)  # fmt: skip
SITUATIONS = (
    PLAIN,
    ECHO,
    CHILD,
    EVERY_EVENT,
    ENDINGS,
    *common.TOLERANCE,
    QUESTION,
    TWO_QUESTIONS,
    CHILD_QUESTION,
    *common.WAITS,
    *common.cuts(),
    REFUSED_SOCKETS,
    *common.errors()[:2],
    common.STOPPED,
)
