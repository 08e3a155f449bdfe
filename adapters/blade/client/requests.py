"""Makes what a client of Blade sends: new sessions, messages and answers."""

from typing import Any

import orjson

import gateway.model as m
from adapters.blade import asks
from gateway.ports import NewRemoteSession, RemoteAsk

from .readers import builtin_blade_table

UNTITLED = "New conversation"
MODES = ("planning", "executing")
NO_ANSWER, NO_OUTPUT = "No answer was given.", "(no output)"
"""Blade takes no empty answers."""


# -- sessions ---------------------------------------------------------------------------------------------------------

def session_body(opening: NewRemoteSession, agent: str | None) -> dict[str, Any]:
    """A new session. Blade has no system prompt, no history, no tools of clients and no permissions that ask."""
    settings = opening.settings
    body: dict[str, Any] = {"intent": opening.title or UNTITLED, "is_persistent": False, "model": settings.model}
    if agent is not None:
        body["solution_id"] = agent
    if settings.tools is not None:
        denied = [name for name, permission in settings.tools.items() if permission is m.Permission.DENY]
        body["disable_tools"] = denied if len(denied) < len(settings.tools) else True
    return body


# -- messages ---------------------------------------------------------------------------------------------------------

def message_body(session_id: str, command: m.SendMessage, settings: m.Settings) -> dict[str, Any]:
    """Options and secrets are the environment of a chat: the server stores none of them with the session."""
    env = {**settings.options, **settings.secrets, **command.variables}
    body: dict[str, Any] = {
        "session_id": session_id, "message": _message(command), "headless": command.headless,
        "model": command.model or settings.model, "output_schema": command.output_schema,
        "runtime_env": {name: value if isinstance(value, str) else orjson.dumps(value).decode()
                        for name, value in env.items()},
    }
    if command.mode in MODES:
        body["mode"] = command.mode
    return body


def _message(command: m.SendMessage) -> str | list[dict[str, Any]]:
    content = command.content
    if isinstance(content, str):
        return content
    return [spelled for part in content if (spelled := _part(part)) is not None]


def _part(part: m.AnyPart) -> dict[str, Any] | None:
    """A part that Blade does not have becomes text."""
    match part:
        case m.TextPart(text=words):
            return {"type": "text", "text": words}
        case m.ImagePart(url=url) if url.startswith(("http:", "https:", "data:")):
            spelled: dict[str, Any] = builtin_blade_table().object("parts", content=(part,))[0]
            return spelled
        case m.ImagePart():
            return {"type": "text", "text": m.image_markdown(part)}
        case m.FilePart(name=name, url=url):
            head, _, data = (url or "").partition(";base64,")
            if head.startswith("data:") and data:
                return {"type": "file", "name": name, "data": data}
            return {"type": "text", "text": f"[{name}]({url})" if url else f"[{name}]"}
        case m.DataPart(content=content):
            return {"type": "text", "text": orjson.dumps(content).decode()}
    return None


# -- answers ----------------------------------------------------------------------------------------------------------

def answer_body(session_id: str, asked: RemoteAsk, answer: m.Answer) -> dict[str, Any]:
    """An answer as picks and text; every answer settles the ask."""
    selections, custom = _picks(asked, answer)
    for number in range(len(asks.questions_of(asked.ask))):
        if not selections.get(str(number)) and not custom.get(str(number)):
            custom[str(number)] = _words_for(answer)
    return {
        "session_id": session_id, "message": answer.message if isinstance(answer, m.AnswerQuestion) else "",
        "askuser_answer": builtin_blade_table().object(
            "answer.picks", call_id=asked.ref, selections=selections, custom=custom,
        ),
    }


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
