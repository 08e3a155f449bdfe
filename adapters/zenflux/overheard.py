"""ZenFlux, overheard: what people said, read out of what they sent over a socket or over HTTP."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from gateway.model import (
    AgentCard,
    AnyCommand,
    Capabilities,
    ContinuationAsk,
    Interrupt,
    OpenAsk,
    RollbackAsk,
    SessionView,
)
from gateway.upstream import Frame
from mappings.language import Table

from . import inbound
from .hearing_asks import ref_of
from .wire import ChatRequest, Confirmation, Continue, Rollback

CARD = AgentCard(name="", capabilities=Capabilities(images=("http", "data")))
"""Whatever the agent was, it has taken what was sent."""
CHAT = re.compile(r"POST \S*/chat")
STOP = re.compile(r"POST \S*/session/[^/]+/stop")
CONFIRM = re.compile(r"POST \S*/human-confirmation/([^/]+)")
CANCEL = re.compile(r"DELETE \S*/human-confirmation/([^/]+)")
CONTINUE = re.compile(r"POST \S*/session/([^/]+)/confirm_continue")
ROLLBACK = re.compile(r"POST \S*/session/([^/]+)/rollback")


def overheard(frame: Frame, view: SessionView, table: Table) -> Sequence[AnyCommand]:
    body = frame.body if isinstance(frame.body, dict) else {}
    if body.get("type") == "req":
        return _requested(str(body.get("method")), body.get("params"), table)
    try:
        if CHAT.fullmatch(frame.name):
            return [inbound.message_of(ChatRequest.model_validate(body), CARD, {}, table)]
        return [Interrupt()] if STOP.fullmatch(frame.name) else _answered(frame.name, body, view, table)
    except ValidationError:
        return ()  # it was refused


def _requested(method: str, params: Any, table: Table) -> Sequence[AnyCommand]:
    if method == "chat.abort":
        return [Interrupt()]
    try:
        body = ChatRequest.model_validate(params)
    except ValidationError:
        return ()
    return [inbound.message_of(body, CARD, {}, table)] if method == "chat.send" else ()


def _answered(name: str, body: dict[str, Any], view: SessionView, table: Table) -> Sequence[AnyCommand]:
    """An answer goes by the id of its request, or by that of the run, which means the oldest."""
    if found := CONFIRM.fullmatch(name):
        asks = _asked(view, found[1])
        return [inbound.answer_of(asks[0], Confirmation.model_validate(body).response, table)] if asks else ()
    if found := CANCEL.fullmatch(name):
        asks = _asked(view, found[1])
        return [inbound.answer_of(asks[0], inbound.CANCEL[0], table)] if asks else ()
    if found := CONTINUE.fullmatch(name):
        asks = [ask for ask in _of(view, found[1]) if isinstance(ask.ask, ContinuationAsk)]
        verdict = "reject" if Continue.model_validate(body).action == "stop" else "approve"
        return [inbound.answer_of(ask, verdict, table) for ask in asks]
    if found := ROLLBACK.fullmatch(name):
        asks = [ask for ask in _of(view, found[1]) if isinstance(ask.ask, RollbackAsk)]
        option = Rollback.model_validate(body).option
        return [table.command("confirm.rollback", request_id=ask.request_id, option=inbound.option_of(ask.ask, option))
                for ask in asks if isinstance(ask.ask, RollbackAsk)]
    return ()


def _of(view: SessionView, run_id: str) -> list[OpenAsk]:
    return [ask for ask in view.asks.values() if ref_of(ask.request_id).run == run_id]


def _asked(view: SessionView, word: str) -> list[OpenAsk]:
    """What goes by this id, or was asked without one: a client can have read that elsewhere."""
    refs = [(ref_of(ask.request_id), ask) for ask in view.asks.values()]
    named = [ask for ref, ask in refs if word in (ref.request_id, ref.run)]
    return named or [ask for ref, ask in refs if not ref.request_id]
