"""Reads asks of CAS: which tool uses wait for a person, and what each asks."""

from collections.abc import Sequence
from typing import Any

import gateway.model as m
from adapters.cas.asks import CONTINUATION_TOOL, QUESTION_TOOL, ROLLBACK_TOOL
from gateway.client import read_continuation, read_questions, read_rollback
from gateway.errors import BackendFailed
from gateway.ports import RemoteAsk

from .readers import CAS


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
    if call.origin is m.ToolOrigin.CLIENT and call.name == QUESTION_TOOL:
        return _read_question_ask(call, calls)
    if call.origin is m.ToolOrigin.CLIENT:
        return read_rollback(call.input, call.call_id) if call.name == ROLLBACK_TOOL else None
    is_asking = call.name == CONTINUATION_TOOL and call.permission is m.Permission.ASK
    return read_continuation(call.input) if is_asking else None


def _read_question_ask(call: m.ToolCall, calls: Sequence[m.ToolCall]) -> m.QuestionAsk | None:
    """The questions; their call is the last call of that name, if the agent has made one."""
    told = CAS.read_fitting("questions", call.input)
    if not told or not told["questions"]:
        return None
    cause = next((one for one in reversed(calls) if one.name == QUESTION_TOOL and one.input == call.input), None)
    cause = cause or next((one for one in reversed(calls) if one.name == QUESTION_TOOL), None)
    return m.QuestionAsk(questions=read_questions(told["questions"]), call=cause)
