"""Messages of ZenFlux clients in, commands out, live or from a recording. No clock, no socket."""

import re
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

import gateway.model as m
from adapters.zenflux import asks as asks_module
from adapters.zenflux.asks import decode_ref
from adapters.zenflux.bodies import SentFile
from adapters.zenflux.wire import (
    ChatRequest,
    ChatSend,
    ConfirmationRequest,
    ContinueRequest,
    RollbackRequest,
)
from gateway.errors import Invalid
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable, ParsedFrame

MESSAGES = (
    "chat.send", "chat.abort", "confirm.permission", "confirm.question", "confirm.client_tool", "confirm.continuation",
    "confirm.rollback", "confirm.cancel",
)
"""The client messages that the table spells."""
StoredFiles = Mapping[str, m.FilePart]
"""The stored files that a message refers to, by id and by the link of the upload."""


# -- messages ---------------------------------------------------------------------------------------------------------
def message_of(body: ChatSend, card: m.AgentCard, stored: StoredFiles, table: DialectTable) -> m.AnyCommand:
    fields = table.read_message("chat.send", body.model_dump())
    files = [_file(SentFile(**reference), card, stored) for reference in fields["files"] or ()]
    words = fields["text"]
    if not words and not files:
        raise Invalid("message: say something, or bring a file", param="message")
    content: m.Content = (*([m.TextPart(text=words)] if words else ()), *files) if files else words
    return table.command(
        "chat.send", content=content, variables=fields["variables"], message_id=fields["message_id"] or None)


def _file(reference: SentFile, card: m.AgentCard, stored: StoredFiles) -> m.AnyPart:
    url = reference.url
    known = stored.get(reference.file_id or "") or stored.get(url or "")
    media_type = reference.media_type or (known.media_type if known else None)
    if url and (media_type or "").startswith("image/") and card.takes_image(url):
        return m.ImagePart(url=url, media_type=media_type)
    if known is None and not url:
        raise Invalid("files: a file is named by its file_id or its file_url", param="files")
    name = reference.name or (known.name if known else (url or "").rpartition("/")[2]) or "file"
    size = reference.size if known is None else known.size
    return m.FilePart(name=name, url=url, file_id=known.file_id if known else None, media_type=media_type, size=size)


# -- what is answered -------------------------------------------------------------------------------------------------


CHAT_PATH = re.compile(r"POST \S*/chat")
STOP_PATH = re.compile(r"POST \S*/session/[^/]+/stop")
CONFIRM_PATH = re.compile(r"POST \S*/human-confirmation/([^/]+)")
CANCEL_PATH = re.compile(r"DELETE \S*/human-confirmation/([^/]+)")
CONTINUE_PATH = re.compile(r"POST \S*/session/([^/]+)/confirm_continue")
ROLLBACK_PATH = re.compile(r"POST \S*/session/([^/]+)/rollback")


def recorded_commands(frame: ParsedFrame, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    body = frame.body if isinstance(frame.body, dict) else {}
    if body.get("type") == "req":
        return _recorded_request(str(body.get("method")), body.get("params"), table)
    try:
        if CHAT_PATH.fullmatch(frame.name):
            return [message_of(ChatRequest.model_validate(body), m.ANY_AGENT, {}, table)]
        return [m.Interrupt()] if STOP_PATH.fullmatch(frame.name) else _recorded_answer(frame.name, body, view, table)
    except ValidationError:
        return ()  # it was refused


def _recorded_request(method: str, params: JsonValue, table: DialectTable) -> Sequence[m.AnyCommand]:
    if method == "chat.abort":
        return [m.Interrupt()]
    try:
        body = ChatRequest.model_validate(params)
    except ValidationError:
        return ()
    return [message_of(body, m.ANY_AGENT, {}, table)] if method == "chat.send" else ()


def _recorded_answer(
    name: str, body: JsonObject, view: m.SessionView, table: DialectTable
) -> Sequence[m.AnyCommand]:
    """An answer names its request, or the run, which means the oldest request of the run."""
    if found := CONFIRM_PATH.fullmatch(name):
        asks = _asks_by_id(view, found[1])
        return (
            [asks_module.answer_of(asks[0], ConfirmationRequest.model_validate(body).response, table)] if asks else ()
        )
    if found := CANCEL_PATH.fullmatch(name):
        asks = _asks_by_id(view, found[1])
        return [asks_module.answer_of(asks[0], asks_module.CANCEL_WORDS[0], table)] if asks else ()
    if found := CONTINUE_PATH.fullmatch(name):
        asks = [ask for ask in _asks_of_run(view, found[1]) if isinstance(ask.ask, m.ContinuationAsk)]
        verdict = "reject" if ContinueRequest.model_validate(body).action == "stop" else "approve"
        return [asks_module.answer_of(ask, verdict, table) for ask in asks]
    if found := ROLLBACK_PATH.fullmatch(name):
        asks = [ask for ask in _asks_of_run(view, found[1]) if isinstance(ask.ask, m.RollbackAsk)]
        option = RollbackRequest.model_validate(body).option
        return [
            table.command("confirm.rollback", request_id=ask.request_id, option=asks_module.option_of(ask.ask, option))
            for ask in asks
            if isinstance(ask.ask, m.RollbackAsk)
        ]
    return ()


def _asks_of_run(view: m.SessionView, run_id: str) -> list[m.OpenAsk]:
    return [ask for ask in view.asks.values() if decode_ref(ask.request_id).run == run_id]


def _asks_by_id(view: m.SessionView, word: str) -> list[m.OpenAsk]:
    """The open asks of this request or run; if there are none, the asks without an id of their own."""
    refs = [(decode_ref(ask.request_id), ask) for ask in view.asks.values()]
    named = [ask for ref, ask in refs if word in (ref.request_id, ref.run)]
    return named or [ask for ref, ask in refs if not ref.request_id]
