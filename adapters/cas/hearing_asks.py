"""CAS, heard: which tool uses wait for people, and what is asked by each."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.errors import BackendFailed
from gateway.model import (
    AnyAsk,
    Choice,
    ClientToolAsk,
    ContinuationAsk,
    Permission,
    PermissionAsk,
    Question,
    QuestionAsk,
    RollbackAsk,
    ToolCall,
    ToolOrigin,
)
from gateway.upstream import Asked

QUESTION, CONTINUATION, ROLLBACK = "AskUserQuestion", "confirm_continue", "choose_rollback"
"""Asks that are told as tool uses of these names, because CAS has no others."""


class Asks:
    """The asks of one turn, by the events that told them."""

    def __init__(self) -> None:
        self._open: dict[str, Asked] = {}

    def made(self, call: ToolCall, scope_id: str) -> None:
        """A call was made: should the server wait for it, then for leave, or for the client to carry it out."""
        is_client = call.origin is ToolOrigin.CLIENT
        ask: AnyAsk = ClientToolAsk(call=call) if is_client else PermissionAsk(call=call)
        self._open[call.call_id] = Asked(ask=ask, ref=call.call_id, scope_id=scope_id)

    def told(self, event_id: str, ask: AnyAsk, scope_id: str) -> None:
        self._open[event_id] = Asked(ask=ask, ref=event_id, scope_id=scope_id)

    def settled(self, event_id: str) -> None:
        self._open.pop(event_id, None)

    def waiting(self, event_ids: Any) -> list[Asked]:
        """What the server waits for; where it does not tell, everything that may be waited for."""
        if not event_ids:
            found = [asked for asked in self._open.values() if _may_wait(asked.ask)]
        elif not isinstance(event_ids, list):
            raise BackendFailed("the upstream waits for people, and 'event_ids' is no list")
        else:
            found = [self._named(event_id) for event_id in event_ids]
        if not found:
            raise BackendFailed("the upstream waits for people, and does not tell for what")
        return found

    def _named(self, event_id: Any) -> Asked:
        found = self._open.get(event_id) if isinstance(event_id, str) else None
        if found is None:
            raise BackendFailed(f"the upstream waits for an answer to '{str(event_id)[:64]}', which it never told")
        return found


def _may_wait(ask: AnyAsk) -> bool:
    return not isinstance(ask, PermissionAsk) or ask.call.permission is Permission.ASK


def ask_of(call: ToolCall, calls: Sequence[ToolCall]) -> AnyAsk | None:
    """What a tool use asks that is an ask and no call; `calls` are those that have not come back."""
    if call.origin is ToolOrigin.CLIENT:
        return _question(call, calls) if call.name == QUESTION else _rollback(call)
    message, turn = call.input.get("message"), call.input.get("turn")
    if call.name != CONTINUATION or call.permission is not Permission.ASK or not isinstance(message, str):
        return None
    return ContinuationAsk(turn=turn if isinstance(turn, int) else 0, message=message)


def _question(call: ToolCall, calls: Sequence[ToolCall]) -> QuestionAsk | None:
    """The questions; the call that brought them about is the last one of that name, if the agent has made one."""
    given = call.input.get("questions")
    if not isinstance(given, list) or not given or not all(map(_is_question, given)):
        return None
    cause = next((one for one in reversed(calls) if one.name == QUESTION and one.input == call.input), None)
    cause = cause or next((one for one in reversed(calls) if one.name == QUESTION), None)
    return QuestionAsk(questions=tuple(map(_read, given)), call=cause)


def _is_question(given: Any) -> bool:
    return isinstance(given, dict) and isinstance(given.get("question"), str)


def _read(given: Mapping[str, Any]) -> Question:
    options = given.get("options")
    return Question(
        question=given["question"], header=_word(given.get("header")), multi_select=given.get("multiSelect") is True,
        options=tuple(_choice(one) for one in options) if isinstance(options, list) else (),
    )


def _choice(given: Any) -> Choice:
    if isinstance(given, dict):
        return Choice(label=str(given.get("label") or ""), description=_word(given.get("description")))
    return Choice(label=str(given))


def _rollback(call: ToolCall) -> RollbackAsk | None:
    options = call.input.get("options")
    if call.name != ROLLBACK or not isinstance(options, list) or not all(isinstance(one, dict) for one in options):
        return None
    return RollbackAsk(
        task_id=str(call.input.get("task_id") or call.call_id), options=tuple(options),
        error=_word(call.input.get("error")), reason=_word(call.input.get("reason")),
    )


def _word(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None
