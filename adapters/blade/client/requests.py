"""Makes what a client of Blade sends: new sessions, messages and answers."""

from typing import Any

import orjson

import gateway.model as m
from adapters.blade import asks
from gateway.json_values import JsonValue
from gateway.ports import NewRemoteSession, RemoteAsk

from .readers import BLADE

UNTITLED = "New conversation"
MODES = ("planning", "executing")
NO_ANSWER, NO_OUTPUT = "No answer was given.", "(no output)"
"""Blade takes no empty answers."""


# -- sessions ---------------------------------------------------------------------------------------------------------

def session_body(opening: NewRemoteSession, agent: str | None) -> JsonValue:
    """A new session. Blade has no system prompt, no history, no tools of clients and no permissions that ask."""
    settings = opening.settings
    return BLADE.table.object(
        "session.new", intent=opening.title or UNTITLED, model=settings.model, agent=agent,
        disabled=None if settings.tools is None else _disabled(settings.tools),
    )


def _disabled(tools: dict[str, m.Permission]) -> list[str] | bool:
    denied = [name for name, permission in tools.items() if permission is m.Permission.DENY]
    return denied if len(denied) < len(tools) else True


# -- messages ---------------------------------------------------------------------------------------------------------

def message_body(session_id: str, command: m.SendMessage, settings: m.Settings) -> Any:
    """Options and secrets are the environment of a chat: the server stores none of them with the session."""
    env = {**settings.options, **settings.secrets, **command.variables}
    return BLADE.table.message(
        "chat.message", command, session_id=session_id, content=_content(command.content),
        model=command.model or settings.model, mode=command.mode if command.mode in MODES else None,
        variables={name: value if isinstance(value, str) else orjson.dumps(value).decode()
                   for name, value in env.items()},
    )


def _content(content: m.Content) -> Any:
    if isinstance(content, str):
        return content
    return [sent for part in content if (sent := _part(part)) is not None]


def _part(part: m.AnyPart) -> m.AnyPart | dict[str, Any] | None:
    """A part that Blade does not have becomes text; a file stands in the message itself."""
    match part:
        case m.TextPart():
            return part
        case m.ImagePart(url=url):
            is_taken = url.startswith(("http:", "https:", "data:"))
            return part if is_taken else m.TextPart(text=m.image_markdown(part))
        case m.FilePart(name=name, url=url):
            _, data = m.base64_of(url or "") or ("", "")
            if data:
                sent: dict[str, Any] = BLADE.table.object("file.sent", name=name, data=data)
                return sent
            return m.TextPart(text=f"[{name}]({url})" if url else f"[{name}]")
        case m.DataPart(content=content):
            return m.TextPart(text=orjson.dumps(content).decode())
    return None


def subscription_body(session_id: str, after: int | None) -> Any:
    """From now on, or what follows the event of that number."""
    resume = None if after is None else True
    return BLADE.table.object("subscription", session_id=session_id, number=after, resume=resume)


def compact_body(session_id: str) -> Any:
    return BLADE.table.message("chat.compact", session_id=session_id)


def stop_body(session_id: str) -> Any:
    return BLADE.table.message("chat.stop", session_id=session_id)


# -- answers ----------------------------------------------------------------------------------------------------------

def answer_body(session_id: str, asked: RemoteAsk, answer: m.Answer) -> Any:
    """An answer as picks and text; every answer settles the ask."""
    selections, custom = _picks(asked, answer)
    for number in range(len(asks.questions_of(asked.ask))):
        if not selections.get(str(number)) and not custom.get(str(number)):
            custom[str(number)] = _words_for(answer)
    return BLADE.table.message(
        "answer.question", session_id=session_id, request_id=asked.ref, selections=selections, custom=custom,
        message=answer.message if isinstance(answer, m.AnswerQuestion) else "",
    )


def _picks(asked: RemoteAsk, answer: m.Answer) -> tuple[dict[str, list[int]], dict[str, str]]:
    """A withdrawn yes-or-no ask is answered with no."""
    picked = asks.picks_of_answer(asked.ask, answer)
    if picked is None and asked.ask.kind in ("permission", "continuation"):
        return {asks.FIRST_QUESTION: [asks.NO]}, {}
    selections, custom = picked or ({}, {})
    if isinstance(answer, m.ReturnResult) and answer.is_error:
        custom = {asks.FIRST_QUESTION: f"Error: {m.text_of(answer.content) or NO_OUTPUT}"}
    return {number: list(picks) for number, picks in selections.items()}, dict(custom)


def _words_for(answer: m.Answer) -> str:
    match answer:
        case m.AnswerQuestion(message=message) if message:
            return message
        case m.ReturnResult():
            return NO_OUTPUT
        case m.Withdraw() | _:
            return NO_ANSWER
