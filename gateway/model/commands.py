"""What a client can want of a session; a transport hands over a list, accepted or refused together."""

from typing import Any, ClassVar

from msgspec import Struct

from gateway.json_values import JsonObject

from .content import Content, SeedMessage, Settings
from .enums import CompactionTrigger, Resolution


class Command(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """One wish of a client.

    `said` of an answer is the text that the client sent, if it sent the answer as the result of a call.
    """

    kind: ClassVar[str]


class SendMessage(Command, frozen=True, kw_only=True, tag="send_message"):
    """Say something to the agent; starts a turn."""

    kind: ClassVar[str] = "send_message"
    content: Content
    message_id: str | None = None
    """What its client calls it; a message without such a name is known by the id of its command."""
    model: str | None = None
    mode: str | None = None
    headless: bool = False
    output_schema: dict[str, Any] | None = None
    variables: JsonObject = {}
    results: tuple[SeedMessage, ...] = ()
    """What the client's tools gave for calls of the history that the session began with.

    The results stand in history in the place of the message, which has them in words for agents that take only words.
    """
    via: tuple[str, ...] = ()
    """The rules of `route` that the request fits by its key or its headers."""


class AnswerQuestion(Command, frozen=True, kw_only=True, tag="answer_question"):
    """Answer the questions of one ask: chosen options and free text, both by question number."""

    kind: ClassVar[str] = "answer_question"
    request_id: str
    selections: dict[str, tuple[int, ...]] = {}
    custom: dict[str, str] = {}
    message: str = ""
    said: Content = ""


class DecidePermission(Command, frozen=True, kw_only=True, tag="decide_permission"):
    kind: ClassVar[str] = "decide_permission"
    request_id: str
    granted: bool
    reason: str | None = None


class ReturnResult(Command, frozen=True, kw_only=True, tag="return_result"):
    """Hand in what a client's own tool gave."""

    kind: ClassVar[str] = "return_result"
    request_id: str
    content: Content = ""
    is_error: bool = False


class ContinueTurn(Command, frozen=True, kw_only=True, tag="continue_turn"):
    kind: ClassVar[str] = "continue_turn"
    request_id: str
    proceed: bool = True
    said: Content = ""


class RollBack(Command, frozen=True, kw_only=True, tag="roll_back"):
    kind: ClassVar[str] = "roll_back"
    request_id: str
    option: str | None = None
    said: Content = ""


class Withdraw(Command, frozen=True, kw_only=True, tag="withdraw"):
    """Take an ask off the desk without answering it."""

    kind: ClassVar[str] = "withdraw"
    request_id: str


class Interrupt(Command, frozen=True, kw_only=True, tag="interrupt"):
    """End the turn that runs or waits; nothing happens where none does."""

    kind: ClassVar[str] = "interrupt"
    turn_id: str | None = None


class Compact(Command, frozen=True, kw_only=True, tag="compact"):
    kind: ClassVar[str] = "compact"
    trigger: CompactionTrigger = CompactionTrigger.MANUAL
    via: tuple[str, ...] = ()
    """As in `SendMessage`."""


class Configure(Command, frozen=True, kw_only=True, tag="configure"):
    """Put new settings in the place of the old ones, together with whatever else the list asks for."""

    kind: ClassVar[str] = "configure"
    settings: Settings


class CustomCommand(Command, frozen=True, kw_only=True, tag="custom"):
    """A command that one dialect has; the gateway only carries it."""

    kind: ClassVar[str] = "custom"
    name: str
    payload: dict[str, Any] = {}


AnyCommand = (
    SendMessage | AnswerQuestion | DecidePermission | ReturnResult | ContinueTurn | RollBack | Withdraw
    | Interrupt | Compact | Configure | CustomCommand
)
Answer = AnswerQuestion | DecidePermission | ReturnResult | ContinueTurn | RollBack | Withdraw
COMMANDS: tuple[type[Command], ...] = (
    SendMessage, AnswerQuestion, DecidePermission, ReturnResult, ContinueTurn, RollBack, Withdraw,
    Interrupt, Compact, Configure, CustomCommand,
)
ANSWERS: tuple[type[Command], ...] = (
    AnswerQuestion, DecidePermission, ReturnResult, ContinueTurn, RollBack, Withdraw,
)


def resolution_of(answer: Answer) -> Resolution:
    if isinstance(answer, DecidePermission):
        return Resolution.GRANTED if answer.granted else Resolution.DENIED
    if isinstance(answer, ReturnResult):
        return Resolution.RETURNED
    return Resolution.CANCELLED if isinstance(answer, Withdraw) else Resolution.ANSWERED
