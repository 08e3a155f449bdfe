"""Makes the HTTP requests that carry a person's answer to a ZenFlux server."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

import gateway.model as m
from adapters.zenflux.asks import APPROVE, REJECT, AskRef, answer_of, result_text
from gateway.client import HttpClient, upstream_status
from gateway.errors import GatewayError, Invalid

from .readers import builtin_zenflux_table

CONFIRMATION = "/human-confirmation"
UNKNOWN = 404
SETTLED_STATUSES = (UNKNOWN, 410)
"""The statuses for an ask that is settled already, or has expired."""


class HttpCall(Struct, frozen=True):
    """One request over HTTP."""

    method: str
    path: str
    body: Any = None


async def deliver_answer(upstream: HttpClient, ask: m.AnyAsk, ref: AskRef, answer: m.Answer, *, alone: bool) -> bool:
    """Send an answer; False if the server does not know the ask, and may not know it yet.

    A server that does not name the kind of its asks may know an ask by its run alone, and may send the ask before it
    takes answers. With any other server, an unknown ask was settled by another client.
    """
    call = answer_call(ask, ref, answer)
    status = await send_call(upstream, call)
    known_by_run = call.path.startswith(CONFIRMATION) and alone and ref.request_id not in ("", ref.run)
    if status in SETTLED_STATUSES and not ref.precise and known_by_run:
        status = await send_call(upstream, HttpCall(call.method, f"{CONFIRMATION}/{ref.run}", call.body))
    return status != UNKNOWN or ref.precise or not call.path.startswith(CONFIRMATION)


async def send_call(upstream: HttpClient, call: HttpCall) -> int | None:
    """None if the server has taken the answer, else its error for an unknown ask."""
    try:
        await upstream.json(call.method, call.path, call.body)
    except GatewayError as error:
        status = upstream_status(error)
        if status not in SETTLED_STATUSES:
            raise
        return status
    return None


def answer_call(ask: m.AnyAsk, ref: AskRef, answer: m.Answer) -> HttpCall:
    confirmation, run = f"{CONFIRMATION}/{ref.request_id or ref.run}", f"/session/{ref.run}"
    match answer:
        case m.RollBack(option=str()):
            return HttpCall("POST", f"{run}/rollback", {"option": answer.option})
        case m.ContinueTurn(proceed=True) if not ref.request_id:
            return HttpCall("POST", f"{run}/confirm_continue")
        case m.Withdraw() | m.RollBack() if ref.request_id:
            return HttpCall("DELETE", confirmation)
        case m.Withdraw() | m.RollBack() | m.ContinueTurn() if not ref.request_id:
            return HttpCall("POST", f"{run}/stop")  # where a run asks by itself, who does not agree ends it
    return HttpCall("POST", confirmation, {"response": answer_response(ask, ref, answer)})


def answer_response(ask: m.AnyAsk, ref: AskRef, answer: m.Answer) -> Any:
    match answer:
        case m.DecidePermission():
            return APPROVE if answer.granted else _denied(ask, ref, answer)
        case m.ContinueTurn():
            return APPROVE if answer.proceed else REJECT
        case m.ReturnResult():
            return REJECT if answer.is_error else result_text(answer.content)
        case m.AnswerQuestion():
            return _answers(ask, ref, answer)
    raise Invalid(f"{answer.kind} answers nothing that was asked")


def _denied(ask: m.AnyAsk, ref: AskRef, answer: m.DecidePermission) -> str:
    """The reason, if the server is certain to read it as a no; otherwise the plain word."""
    if not answer.reason or not ref.precise:
        return REJECT
    asked = m.OpenAsk(request_id=ref.request_id, ask=ask, seq=0, at=0.0, turn_id=ref.run, scope_id="")
    try:
        meant = answer_of(asked, answer.reason, builtin_zenflux_table())
    except Invalid:
        return REJECT
    return answer.reason if isinstance(meant, m.DecidePermission) and not meant.granted else REJECT


def _answers(ask: m.AnyAsk, ref: AskRef, answer: m.AnswerQuestion) -> Any:
    """The answers by the server's names of its questions; a single question has a bare answer."""
    if not isinstance(ask, m.QuestionAsk):
        return answer.message or ", ".join(answer.custom.values())
    picked = [_picked(ask, answer, number) for number in range(len(ask.questions))]
    if not any(picked) and answer.message:
        picked = [[answer.message] for _ in picked]
    if not ref.ids:
        return _value(picked[0], several=ask.questions[0].multi_select) if picked[0] else answer.message
    return {
        name: _value(said, several=question.multi_select)
        for name, question, said in zip(ref.ids, ask.questions, picked, strict=False) if said
    }


def _picked(ask: m.QuestionAsk, answer: m.AnswerQuestion, number: int) -> list[str]:
    options, free = ask.questions[number].options, answer.custom.get(str(number))
    labels = [options[at].label for at in answer.selections.get(str(number), ()) if 0 <= at < len(options)]
    return [*labels, *([free] if free else [])]


def _value(said: Sequence[str], *, several: bool) -> Any:
    return said[0] if len(said) == 1 and not several else list(said)
