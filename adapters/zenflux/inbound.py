"""ZenFlux, inward: validated messages in, commands out. No clock, no socket."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gateway.errors import Invalid
from gateway.model import (
    AgentCard,
    AnyCommand,
    AnyPart,
    Content,
    FilePart,
    ImagePart,
    OpenAsk,
    QuestionAsk,
    RollbackAsk,
    TextPart,
)
from mappings.language import Table, UnknownWord

from .asks import REJECT, label_of, option_ids
from .wire import ChatSend, FileReference

MESSAGES = {
    "chat.send": ("content", "variables", "message_id"),
    "chat.abort": ("session_id",),
    "confirm.permission": ("request_id", "response", "reason"),
    "confirm.question": ("request_id", "selections", "custom"),
    "confirm.client_tool": ("request_id", "content", "is_error"),
    "confirm.continuation": ("request_id", "response"),
    "confirm.rollback": ("request_id", "option"),
    "confirm.cancel": ("request_id",),
}
CANCEL = ("cancel", "cancelled", "canceled")
Stored = Mapping[str, FilePart]
"""The files of the house that a message refers to, by id and by the link of the upload."""


# -- what is said -----------------------------------------------------------------------------------------------------

def message_of(body: ChatSend, card: AgentCard, stored: Stored, table: Table) -> AnyCommand:
    files = [_file(reference, card, stored) for reference in body.files or []]
    if not body.message and not files:
        raise Invalid("message: say something, or bring a file", param="message")
    said = [TextPart(text=body.message)] if body.message else []
    content: Content = (*said, *files) if files else body.message
    return table.command(
        "chat.send", content=content, variables=body.variables or {}, message_id=body.message_id or None)


def _file(reference: FileReference, card: AgentCard, stored: Stored) -> AnyPart:
    url = reference.file_url
    known = stored.get(reference.file_id or "") or stored.get(url or "")
    media_type = reference.file_type or (known.media_type if known else None)
    if url and (media_type or "").startswith("image/") and card.takes_image(url):
        return ImagePart(url=url, media_type=media_type)
    if known is None and not url:
        raise Invalid("files: a file is named by its file_id or its file_url", param="files")
    name = reference.file_name or (known.name if known else (url or "").rpartition("/")[2]) or "file"
    size = reference.file_size if known is None else known.size
    return FilePart(name=name, url=url, file_id=known.file_id if known else None, media_type=media_type, size=size)


# -- what is answered -------------------------------------------------------------------------------------------------

def answer_of(ask: OpenAsk, response: Any, table: Table) -> AnyCommand:
    """What a response means to this ask: a verdict, choices, a text, or that nobody wants to answer."""
    word, given = _word(response), {"request_id": ask.request_id}
    if word in CANCEL:
        return table.command("confirm.cancel", **given)
    if isinstance(ask.ask, QuestionAsk):
        selections, custom = _answers(ask.ask, response)
        return table.command("confirm.question", **given, selections=selections, custom=custom)
    if isinstance(ask.ask, RollbackAsk):
        return table.command("confirm.rollback", **given, option=option_of(ask.ask, response))
    if ask.ask.kind == "client_tool":
        return table.command("confirm.client_tool", **given, content=_text(response), is_error=word == REJECT)
    return _verdict(ask, response, table)


def _verdict(ask: OpenAsk, response: Any, table: Table) -> AnyCommand:
    """What is neither yes nor no is a no to a permission, and says why."""
    given = {"request_id": ask.request_id}
    try:
        if ask.ask.kind == "permission":
            return table.command("confirm.permission", **given, response=_word(response), reason=None)
        return table.command("confirm.continuation", **given, response=_word(response))
    except UnknownWord:
        if ask.ask.kind != "permission":
            raise Invalid("response: say approve or reject", param="response") from None
        return table.command("confirm.permission", **given, response=REJECT, reason=_text(response))


def option_of(ask: RollbackAsk, chosen: Any) -> str | None:
    """The id of an option that was named by its id, its words or its number; the first, if none was."""
    ids = option_ids(ask)
    if chosen is None or _word(chosen) in ("approve", "confirm", "yes"):
        return ids[0] if ids else None
    if type(chosen) is int and 0 <= chosen < len(ids):
        return ids[chosen]
    for name, option in zip(ids, ask.options, strict=True):
        if chosen in (name, label_of(option), option):
            return name
    raise Invalid(f"option: there is no option {_text(chosen)}; there are {', '.join(ids)}", param="option")


def _answers(ask: QuestionAsk, response: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Chosen options and free text, both by question number; a number is that of an option, from 0 on."""
    selections: dict[str, tuple[int, ...]] = {}
    custom: dict[str, str] = {}
    for number, value in _by_question(ask, response).items():
        labels = [choice.label for choice in ask.questions[number].options]
        folded = [label.casefold() for label in labels]
        said = [_named(labels, one) for one in (value if isinstance(value, list) else [value])]
        picks = [folded.index(one.casefold()) for one in said if one.casefold() in folded]
        free = [one for one in said if one.casefold() not in folded]
        if picks:
            selections[str(number)] = tuple(dict.fromkeys(picks))
        if free:
            custom[str(number)] = ", ".join(free)
    return selections, custom


def _named(labels: Sequence[str], said: Any) -> str:
    """The words of an answer; where there are options, a number stands for the words of one."""
    if type(said) is not int or not labels:
        return _text(said)
    if not 0 <= said < len(labels):
        raise Invalid(f"response: there is no option {said}; they are numbered from 0 to {len(labels) - 1}",
                      param="response")
    return labels[said]


def _by_question(ask: QuestionAsk, response: Any) -> dict[int, Any]:
    """An object names the questions, an array takes them in order, and anything else answers each of them."""
    count = len(ask.questions)
    if isinstance(response, dict):
        return {_number(ask, name): value for name, value in response.items() if value is not None}
    if isinstance(response, list) and count > 1:
        if len(response) > count:
            raise Invalid(f"response: {len(response)} answers to {count} questions", param="response")
        return dict(enumerate(response))
    return dict.fromkeys(range(count), response)


def _number(ask: QuestionAsk, name: str) -> int:
    for number, question in enumerate(ask.questions):
        if name in (str(number), question.header, question.question):
            return number
    raise Invalid(f"response: there is no question '{name}'", param="response")


def _word(response: Any) -> str:
    return _text(response).strip().lower()


def _text(response: Any) -> str:
    return response if isinstance(response, str) else orjson.dumps(response).decode()
