"""Who carries a call out, and what a call that a server left open asks of people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gateway.model import (
    AgentCard,
    Answer,
    AnswerQuestion,
    AnyAsk,
    Choice,
    ClientToolAsk,
    Content,
    ContinuationAsk,
    ContinueTurn,
    DecidePermission,
    Permission,
    PermissionAsk,
    Question,
    QuestionAsk,
    ReturnResult,
    RollBack,
    RollbackAsk,
    Settings,
    ToolCall,
    ToolOrigin,
    ToolSpec,
    in_words,
)

from .hearing_wire import CallFrame

CONTINUE, ROLL_BACK = "confirm_continue", "choose_rollback"
"""The calls that stand for asks without one; a tool that somebody has declared under such a name is that tool."""


class Toolbox(Struct, frozen=True, kw_only=True):
    """What is known of the tools of a session: the client's own, and those of the server that it may choose from."""

    client: frozenset[str] = frozenset()
    server: Mapping[str, Permission] = {}
    titles: Mapping[str, str] = {}

    def call(self, said: CallFrame) -> ToolCall:
        is_client = said.name in self.client
        return ToolCall(
            call_id=said.tool_call_id, name=said.name, input=said.input or {},
            origin=ToolOrigin.CLIENT if is_client else ToolOrigin.BUILTIN,
            permission=Permission.ALLOW if is_client else self.server.get(said.name, Permission.ALLOW),
            display_name=self.titles.get(said.name),
        )

    def without_call(self, said: CallFrame) -> AnyAsk | None:
        """The ask that is told as a call although it is about none."""
        if said.name in self.client or said.name in self.server:
            return None
        given = said.input or {}
        if said.name == CONTINUE and isinstance(given.get("message"), str):
            turn = given.get("turn")
            return ContinuationAsk(message=given["message"], turn=turn if isinstance(turn, int) else 0)
        return _rollback(given) if said.name == ROLL_BACK else None

    def stands_in(self, call: ToolCall) -> bool:
        """Whether a call is no call, but an ask that is told as one."""
        said = CallFrame(tool_call_id=call.call_id, name=call.name, input=call.input)
        return self.without_call(said) is not None

    def asks(self, calls: Sequence[ToolCall], *, is_all: bool = True) -> list[tuple[ToolCall, AnyAsk]]:
        """What a server that waits wants to know of the calls it left open, which may be all it can wait for.

        A tool it was trusted with, or that it never spoke of, is its own affair and may still be at work; where it
        waits and has called nothing else, it is that which it waits for.
        """
        found = [(call, ask) for call in calls if (ask := self._ask(call)) is not None]
        return found if found or not is_all else [(call, _permission(call)) for call in calls]

    def _ask(self, call: ToolCall) -> AnyAsk | None:
        if call.origin is ToolOrigin.CLIENT:
            return ClientToolAsk(call=call)
        if call.name in self.server:
            return None if call.permission is Permission.ALLOW else _permission(call)
        questions = questions_in(call.input)
        return QuestionAsk(questions=questions, call=call) if questions else None


NOTHING_KNOWN = Toolbox()


def toolbox_of(card: AgentCard, settings: Settings) -> Toolbox:
    """The tools of a session with these settings."""
    chosen = settings.tools
    return Toolbox(
        client=frozenset(spec.name for spec in settings.client_tools),
        server={tool.spec.name: tool.permission if chosen is None else chosen.get(tool.spec.name, Permission.DENY)
                for tool in card.tools},
        titles=titles_of(card, settings.client_tools),
    )


def titles_of(card: AgentCard, client_tools: Iterable[ToolSpec]) -> dict[str, str]:
    specs = (*(tool.spec for tool in card.tools), *client_tools)
    return {spec.name: spec.title for spec in specs if spec.title}


def _permission(call: ToolCall) -> PermissionAsk:
    return PermissionAsk(call=call, description=f"Run {call.display_name or call.name}?")


def _rollback(given: dict[str, Any]) -> RollbackAsk | None:
    match given:
        case {"options": [*options]} if all(isinstance(option, dict) for option in options):
            return RollbackAsk(
                task_id=str(given.get("task_id", "")), options=tuple(options), error=_words(given.get("error")),
                reason=_words(given.get("reason")),
            )
    return None


# -- questions --------------------------------------------------------------------------------------------------------

def questions_in(given: Mapping[str, Any]) -> tuple[Question, ...]:
    """The questions that the input of a call holds; none where it has another shape."""
    match given.get("questions"):
        case [*questions]:
            found = [_question(one) for one in questions]
            return tuple(one for one in found if one is not None) if all(found) else ()
    return ()


def _question(one: Any) -> Question | None:
    match one:
        case {"question": str(question)}:
            choices = one.get("options")
            return Question(
                question=question, header=_words(one.get("header")),
                multi_select=bool(one.get("multiSelect", one.get("multi_select", False))),
                options=tuple(_choice(choice) for choice in choices) if isinstance(choices, list) else (),
            )
    return None


def _choice(choice: Any) -> Choice:
    if isinstance(choice, dict):
        return Choice(label=str(choice.get("label", "")), description=_words(choice.get("description")) or None)
    return Choice(label=str(choice))


def _words(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# -- answers ----------------------------------------------------------------------------------------------------------

class Given(Struct, frozen=True, kw_only=True):
    """An answer as AAP can carry it: the content of a tool message, or a decision."""

    content: Content = ""
    is_error: bool = False
    granted: bool | None = None
    reason: str | None = None


def given_by(ask: AnyAsk, answer: Answer) -> Given:
    """What an answer is to the call it is about; whatever is no answer to the ask takes it back."""
    match ask, answer:
        case PermissionAsk(), DecidePermission(granted=granted, reason=reason):
            denied = f"Tool call denied: {reason}" if reason else "Tool call denied"
            return Given(granted=granted, reason=reason, content="" if granted else denied, is_error=not granted)
        case PermissionAsk(), _:
            return Given(granted=False, reason="nobody decided", content="Tool call cancelled", is_error=True)
        case QuestionAsk(), AnswerQuestion():
            return Given(content=in_words(ask, answer))
        case _, ReturnResult(content=content, is_error=is_error):
            return Given(content=content, is_error=is_error)
        case ContinuationAsk(), _:
            return Given(content="yes" if isinstance(answer, ContinueTurn) and answer.proceed else "no")
        case RollbackAsk(), _:
            return Given(content=(answer.option or "") if isinstance(answer, RollBack) else "")
    return Given(content="Tool call cancelled", is_error=True)
