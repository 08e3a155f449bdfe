"""Makes what is sent to a ZenFlux server, messages and the answers of people, in the words of the dialect's table."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

import gateway.model as m
from adapters.zenflux.asks import REJECT, AskRef, answer_of, result_text
from adapters.zenflux.bodies import SentFile
from adapters.zenflux.wire import ANY_IMAGE
from gateway.client import HttpClient, upstream_status
from gateway.errors import GatewayError, Invalid, Unsupported
from gateway.json_values import JsonValue

from .readers import ZENFLUX

CLIENT_USER = "local"
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
            return HttpCall("POST", f"{run}/rollback", ZENFLUX.table.message("confirm.rollback", answer))
        case m.ContinueTurn(proceed=True) if not ref.request_id:
            return HttpCall("POST", f"{run}/confirm_continue")
        case m.Withdraw() | m.RollBack() if ref.request_id:
            return HttpCall("DELETE", confirmation)
        case m.Withdraw() | m.RollBack() | m.ContinueTurn() if not ref.request_id:
            return HttpCall("POST", f"{run}/stop")  # where a run asks by itself, who does not agree ends it
    return HttpCall("POST", confirmation, answer_body(ask, ref, answer))


def answer_body(ask: m.AnyAsk, ref: AskRef, answer: m.Answer) -> JsonValue:
    table = ZENFLUX.table
    match answer:
        case m.DecidePermission() if _is_read_as_no(ask, ref, answer):
            return table.message("confirm.question", response=answer.reason)
        case m.DecidePermission():
            return table.message("confirm.permission", answer)
        case m.ContinueTurn():
            return table.message("confirm.continuation", answer)
        case m.ReturnResult():
            response = REJECT if answer.is_error else result_text(answer.content)
            return table.message("confirm.client_tool", response=response)
        case m.AnswerQuestion():
            return table.message("confirm.question", response=_answers(ask, ref, answer))
    raise Invalid(f"{answer.kind} answers nothing that was asked")


def _is_read_as_no(ask: m.AnyAsk, ref: AskRef, answer: m.DecidePermission) -> bool:
    """Whether the server is certain to read the reason of a refusal as a no; otherwise the plain word is sent."""
    if answer.granted or not answer.reason or not ref.precise:
        return False
    asked = m.OpenAsk(request_id=ref.request_id, ask=ask, seq=0, at=0.0, turn_id=ref.run, scope_id="")
    try:
        meant = answer_of(asked, answer.reason, ZENFLUX.table)
    except Invalid:
        return False
    return isinstance(meant, m.DecidePermission) and not meant.granted


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
        name: _value(picks, several=question.multi_select)
        for name, question, picks in zip(ref.ids, ask.questions, picked, strict=False) if picks
    }


def _picked(ask: m.QuestionAsk, answer: m.AnswerQuestion, number: int) -> list[str]:
    options, free = ask.questions[number].options, answer.custom.get(str(number))
    labels = [options[at].label for at in answer.selections.get(str(number), ()) if 0 <= at < len(options)]
    return [*labels, *([free] if free else [])]


def _value(picks: Sequence[str], *, several: bool) -> object:
    return picks[0] if len(picks) == 1 and not several else list(picks)


# -- messages ---------------------------------------------------------------------------------------------------------

def message_body(session_id: str, command: m.SendMessage, agent: str | None) -> object:
    return ZENFLUX.table.message(
        "chat.send", text=m.text_of(command.content), user_id=CLIENT_USER, session_id=session_id, stream=True,
        message_id=None, files=_files(command.content) or None, variables=command.variables or None,
        agent=agent or None,
    )


def _files(content: m.Content) -> list[SentFile]:
    files: list[SentFile] = []
    for part in m.parts_of(content):
        if isinstance(part, m.ImagePart):
            files.append(SentFile(url=part.url, name="image", media_type=part.media_type or ANY_IMAGE))
        elif isinstance(part, m.FilePart):
            if not part.url:
                raise Unsupported(f"the file '{part.name}' has no address from which the server could get it")
            files.append(SentFile(url=part.url, name=part.name, media_type=part.media_type, size=part.size))
    return files
