"""The bodies of ZenFlux's replies and of its stored messages, as the table spells them."""

from collections.abc import Mapping
from mimetypes import guess_type
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import web

import gateway.model as m
from adapters.zenflux.asks import confirmation
from adapters.zenflux.bodies import (
    ConversationBody,
    FileBody,
    ModelBody,
    ReplyBody,
    RunBody,
    SessionBody,
    TroubleBody,
    UsageBody,
    spell,
)
from adapters.zenflux.wire import ANY_IMAGE, DIALECT_NAME, LOCAL_USER, ZenfluxSettings
from gateway.errors import NotFound
from gateway.http import Context, Row, Shape, json_response
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable, Resource

PREVIEW_LENGTH = 50
RUNNING = "running"


def reply_body(table: DialectTable, data: object) -> object:
    """The wrapper; it has the keys of an object as well, for clients that expect no wrapper."""
    return spell(table, ReplyBody(data=data, flat=data if isinstance(data, dict) else None))


def reply(context: Context[ZenfluxSettings], data: object) -> web.Response:
    return json_response(reply_body(context.table, data))


def wrapped(data: Shape) -> Row:
    """The shape of a reply with these data."""
    return Row("reply", data=data, flat=None if isinstance(data, list) else data)


# -- conversations ----------------------------------------------------------------------------------------------------
def conversation_body(table: DialectTable, view: m.SessionView, untitled: str) -> JsonValue:
    return spell(table, ConversationBody(
        session_id=view.session_id, title=view.title or untitled,
        user_id=user_id_of(view.owner, view.metadata), created_at=view.created_at, updated_at=view.updated_at,
        status=view.closed or "active", agent=view.agent_id, metadata=view.shown_metadata,
    ))


# -- runs -------------------------------------------------------------------------------------------------------------
def run_entries(view: m.SessionView, run_id: str) -> list[m.HistoryEntry]:
    """The messages of a run, from the message that began it."""
    entries = [entry for entry in view.entries if entry.turn_id == run_id and entry.scope_id == m.ROOT]
    if not entries and view.turn_id != run_id:
        raise NotFound(f"there is no session '{run_id}'")
    return entries


def session_body(table: DialectTable, view: m.SessionView, run_id: str) -> JsonValue:
    entries = run_entries(view, run_id)
    answers = [entry for entry in entries if entry.role is m.Role.ASSISTANT]
    first = entries[0] if entries else None
    return spell(table, SessionBody(
        run_id=run_id, active=view.turn_id == run_id, turns=len(answers),
        status=run_status(table, view, run_id),
        message_count=sum(entry.role in (m.Role.USER, m.Role.ASSISTANT) for entry in view.entries),
        has_plan=any(_is_plan(part) for entry in answers for part in m.parts_of(entry.content)),
        at=first.at if first else view.updated_at, user_id=user_id_of(view.owner, view.metadata),
        session_id=view.session_id, message_id=first.message_id if first else "",
        preview=m.text_of(first.content)[:PREVIEW_LENGTH] if first else "",
    ))


def _is_plan(part: object) -> bool:
    return isinstance(part, m.DataPart) and part.type.startswith("plan")


def run_outcome(view: m.SessionView, run_id: str) -> m.Outcome | None:
    """How a run ended; None if it has not."""
    if view.turn_id == run_id:
        return None
    end = run_end(view, run_id)
    return end.ended.outcome if end and end.ended else m.Outcome.COMPLETED


def run_end(view: m.SessionView, run_id: str) -> m.Checkpoint | None:
    return next((mark for mark in view.checkpoints if mark.turn_id == run_id), None)


def run_status(table: DialectTable, view: m.SessionView, run_id: str) -> str:
    outcome = run_outcome(view, run_id)
    return RUNNING if outcome is None else table.word("outcome", outcome)


def run_body(table: DialectTable, view: m.SessionView, run_id: str) -> JsonValue:
    """The reply to a client that does not stream the run."""
    entries = run_entries(view, run_id)
    answers = [entry for entry in entries if entry.role is m.Role.ASSISTANT]
    usage = sum((entry.usage or m.Usage() for entry in answers), m.Usage())
    latency = (view.at if view.turn_id == run_id else view.updated_at) - entries[0].at if entries else 0.0
    fault = view.ended.fault if view.ended and entries and view.entries[-1].turn_id == run_id else None
    return spell(table, RunBody(
        run_id=run_id, session_id=view.session_id, message_id=answers[0].message_id if answers else None,
        message=m.text_of(entries[0].content) if entries else "", status=run_status(table, view, run_id),
        content="".join(m.text_of(entry.content) for entry in answers),
        error=TroubleBody(fault=fault, code=wire_fault_code(fault)) if fault else None,
        usage=UsageBody(**usage_names(
            usage, llm_calls=len(answers), model=(answers[-1].model or "") if answers else "", latency=latency,
        )),
        pending=[confirmation(ask, view.session_id) for ask in view.asks.values() if ask.turn_id == run_id],
    ))


# -- the rest ---------------------------------------------------------------------------------------------------------
def model_bodies(table: DialectTable, cards: Mapping[str, m.AgentCard], kind: str, provider: str) -> list[JsonValue]:
    """The models that the agents name; an agent that names none is its own model."""
    by_name: dict[str, list[m.AgentCard]] = {}
    for card in cards.values():
        by_name.setdefault(card.model or card.name, []).append(card)
    bodies = [
        spell(table, ModelBody(name=name, title=using[0].title or name, provider="dragoman",
                     agents=[card.name for card in using]))
        for name, using in by_name.items()
    ]
    return [one for one in bodies if kind in ("", one["type"]) and provider in ("", one["provider"])]


def file_body(table: DialectTable, found: Resource, url: str) -> JsonValue:
    return spell(table, FileBody(
        file_id=found.resource_id, name=found.body["name"], size=found.body["size"], path=url,
        media_type=found.body["media_type"], url=url, created_at=found.created_at,
    ))


def whole_text(event: m.BlockEnded) -> str:
    """The whole text of a block; nothing of a torn call."""
    if event.kind is m.BlockKind.TOOL_USE:
        return "" if event.torn or event.call is None else orjson.dumps(event.call.input).decode()
    return event.text or ""


def image_names(image: m.ImagePart) -> dict[str, str]:
    """The names of an image block: the bytes if the image is a data URL, else its address."""
    head, _, data = image.url.partition(",")
    media_type = image.media_type or _media_type_of(image.url)
    if head.startswith("data:") and head.endswith(";base64"):
        return {"image_source": "base64", "media_type": media_type, "image_data": data}
    return {"image_source": "url", "media_type": media_type, "image_data": image.url}


def _media_type_of(url: str) -> str:
    """The media type of an image, as far as its address shows it."""
    if url.startswith("data:"):
        return url.removeprefix("data:").partition(",")[0].removesuffix(";base64") or ANY_IMAGE
    guessed = guess_type(_path_of(url), strict=False)[0] or ""
    return guessed if guessed.startswith("image/") else ANY_IMAGE


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def usage_names(usage: m.Usage, *, llm_calls: int, model: str, latency: float) -> dict[str, Any]:
    """The names of a usage frame; the total adds up all kinds of tokens, as the documented example does."""
    total = (usage.input_tokens + usage.output_tokens + usage.thinking_tokens + usage.cache_read_tokens
             + usage.cache_write_tokens)
    return {
        "usage": usage, "total": total, "latency": round(latency, 3), "llm_calls": llm_calls, "model": model,
    }


def wire_fault_code(fault: m.Fault) -> m.FaultCode:
    """The code of a fault: a failed agent is an internal error; only one that was not reached is unavailable."""
    broke = fault.code is m.FaultCode.BACKEND and not fault.retryable
    return m.FaultCode.INTERNAL if broke else fault.code


def user_id_of(owner: str, metadata: JsonObject) -> str:
    """The user of a conversation: the one that its client named, else the key's user, else the local one."""
    return str(private_metadata(metadata).get("user_id") or owner or LOCAL_USER)


def private_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    found: JsonObject = metadata.get(m.PRIVATE, {}).get(DIALECT_NAME, {})
    return found


def with_user_id(metadata: dict[str, Any], user_id: str) -> dict[str, Any]:
    """The private metadata that names the user of the conversation."""
    private = {**metadata.get(m.PRIVATE, {}), DIALECT_NAME: {**private_metadata(metadata), "user_id": user_id}}
    return {**metadata, m.PRIVATE: private}
