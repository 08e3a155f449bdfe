"""Reads asks of CAS: which tool uses wait for a person, and what each asks."""

from collections.abc import Mapping, Sequence
from typing import Any

import gateway.model as m
from adapters.cas.asks import CONTINUATION_TOOL, QUESTION_TOOL, ROLLBACK_TOOL
from gateway.errors import BackendFailed
from gateway.ports import RemoteAsk


class OpenAsks:
    """The asks of one turn, by the events that show them."""

    def __init__(self) -> None:
        self._open: dict[str, RemoteAsk] = {}

    def made(self, call: m.ToolCall, scope_id: str) -> None:
        """Remember a call: if the server waits for it, then for permission, or for the client to run it."""
        is_client = call.origin is m.ToolOrigin.CLIENT
        ask: m.AnyAsk = m.ClientToolAsk(call=call) if is_client else m.PermissionAsk(call=call)
        self._open[call.call_id] = RemoteAsk(ask=ask, ref=call.call_id, scope_id=scope_id)

    def told(self, event_id: str, ask: m.AnyAsk, scope_id: str) -> None:
        self._open[event_id] = RemoteAsk(ask=ask, ref=event_id, scope_id=scope_id)

    def settled(self, event_id: str) -> None:
        self._open.pop(event_id, None)

    def waiting(self, event_ids: Sequence[Any] | None) -> list[RemoteAsk]:
        """The asks that the server waits for; if it names none, all that it may wait for."""
        if not event_ids:
            found = [asked for asked in self._open.values() if _may_wait(asked.ask)]
        else:
            found = [self._named(event_id) for event_id in event_ids]
        if not found:
            raise BackendFailed("the upstream waits for people, and does not tell for what")
        return found

    def _named(self, event_id: Any) -> RemoteAsk:
        found = self._open.get(event_id) if isinstance(event_id, str) else None
        if found is None:
            raise BackendFailed(f"the upstream waits for an answer to '{str(event_id)[:64]}', which it never told")
        return found


def _may_wait(ask: m.AnyAsk) -> bool:
    return not isinstance(ask, m.PermissionAsk) or ask.call.permission is m.Permission.ASK


def read_ask(call: m.ToolCall, calls: Sequence[m.ToolCall]) -> m.AnyAsk | None:
    """The ask of a tool use that stands for an ask; `calls` are the open calls."""
    if call.origin is m.ToolOrigin.CLIENT:
        return _read_question_ask(call, calls) if call.name == QUESTION_TOOL else _read_rollback(call)
    message, turn = call.input.get("message"), call.input.get("turn")
    if call.name != CONTINUATION_TOOL or call.permission is not m.Permission.ASK or not isinstance(message, str):
        return None
    return m.ContinuationAsk(turn=turn if isinstance(turn, int) else 0, message=message)


def _read_question_ask(call: m.ToolCall, calls: Sequence[m.ToolCall]) -> m.QuestionAsk | None:
    """The questions; their call is the last call of that name, if the agent has made one."""
    given = call.input.get("questions")
    if not isinstance(given, list) or not given or not all(map(_is_question, given)):
        return None
    cause = next((one for one in reversed(calls) if one.name == QUESTION_TOOL and one.input == call.input), None)
    cause = cause or next((one for one in reversed(calls) if one.name == QUESTION_TOOL), None)
    return m.QuestionAsk(questions=tuple(map(_read_question, given)), call=cause)


def _is_question(given: Any) -> bool:
    return isinstance(given, dict) and isinstance(given.get("question"), str)


def _read_question(given: Mapping[str, Any]) -> m.Question:
    options = given.get("options")
    return m.Question(
        question=given["question"],
        header=_text_or_none(given.get("header")),
        multi_select=given.get("multiSelect") is True,
        options=tuple(_read_choice(one) for one in options) if isinstance(options, list) else (),
    )


def _read_choice(given: Any) -> m.Choice:
    if isinstance(given, dict):
        return m.Choice(label=str(given.get("label") or ""), description=_text_or_none(given.get("description")))
    return m.Choice(label=str(given))


def _read_rollback(call: m.ToolCall) -> m.RollbackAsk | None:
    options = call.input.get("options")
    if call.name != ROLLBACK_TOOL or not isinstance(options, list) or not all(isinstance(one, dict) for one in options):
        return None
    return m.RollbackAsk(
        task_id=str(call.input.get("task_id") or call.call_id), options=tuple(options),
        error=_text_or_none(call.input.get("error")), reason=_text_or_none(call.input.get("reason")),
    )


def _text_or_none(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None
