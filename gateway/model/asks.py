"""What a person must settle before a turn can go on."""

from typing import ClassVar

from msgspec import Struct

from gateway.json_values import JsonObject

from .content import ToolCall


class Ask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Something only a person, or their program, can settle."""

    kind: ClassVar[str]


class Choice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    label: str
    description: str | None = None


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True):
    question: str
    options: tuple[Choice, ...] = ()
    header: str | None = None
    multi_select: bool = False


class QuestionAsk(Ask, frozen=True, kw_only=True, tag="question"):
    """One or more questions, asked together and answered together."""

    kind: ClassVar[str] = "question"
    questions: tuple[Question, ...]
    call: ToolCall | None = None


class PermissionAsk(Ask, frozen=True, kw_only=True, tag="permission"):
    """May the agent carry out this call?"""

    kind: ClassVar[str] = "permission"
    call: ToolCall
    description: str = ""


class ClientToolAsk(Ask, frozen=True, kw_only=True, tag="client_tool"):
    """The client itself is to carry out this call and return its result."""

    kind: ClassVar[str] = "client_tool"
    call: ToolCall


class ContinuationAsk(Ask, frozen=True, kw_only=True, tag="continuation"):
    """The work is long: shall it go on?"""

    kind: ClassVar[str] = "continuation"
    turn: int
    message: str


class RollbackAsk(Ask, frozen=True, kw_only=True, tag="rollback"):
    """Something went wrong: to which state shall the agent go back?"""

    kind: ClassVar[str] = "rollback"
    task_id: str
    options: tuple[JsonObject, ...]
    error: str | None = None
    reason: str | None = None


AnyAsk = QuestionAsk | PermissionAsk | ClientToolAsk | ContinuationAsk | RollbackAsk
ASKS: tuple[type[Ask], ...] = (QuestionAsk, PermissionAsk, ClientToolAsk, ContinuationAsk, RollbackAsk)


def call_of(ask: AnyAsk) -> ToolCall | None:
    """The tool call an ask is about, if it is about one."""
    return getattr(ask, "call", None)
