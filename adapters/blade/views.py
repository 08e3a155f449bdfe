"""Blade's bodies of chat: turns, tool calls and sessions as the table spells them."""

from collections.abc import AsyncIterable, Sequence
from itertools import pairwise
from math import inf
from typing import Any
from zlib import crc32

import orjson

from gateway.model import Encoded, LimitExceeded, Outcome, Question, Record, SessionRewound, SessionView, read_json
from gateway.time_slices import SLICE, sliced
from gateway.time_slices import turn as turn_of_work
from gateway.web import encoded
from mappings.language import Table

from .ledger import Ledger
from .turns import Block, Call, Turn
from .wire import BlockType

_TURN = (
    "id", "sequence", "turn_id", "loop_id", "role", "status", "blocks", "tool_calls", "model", "usage", "duration_ms",
    "started_at", "context_window", "memory_refs", "fork",
)
_COMPACTION = (
    "compaction_id", "preview", "summary", "archived", "tokens_before", "tokens_after", "saved_ratio", "trigger",
)
_SESSION = (
    "id", "intent", "status", "created_at", "updated_at", "user_id", "solution_id", "biz_role_id", "model", "shared",
    "is_pinned", "memory_enabled", "is_persistent", "replay_state",
)
_REFUSAL = ("message", "code", "detail")

OBJECTS: dict[str, tuple[str, ...]] = {
    "turn": _TURN,
    "turn.compaction": (*_TURN, *_COMPACTION),
    "turn.listed": ("turn", "failure"),
    "turn.compaction.listed": ("turn", "failure"),
    "usage": ("usage",),
    "block": ("type", "content", "call"),
    "declaration": ("call", "input"),
    "tool_call": ("call", "name", "title", "arguments", "result", "reference"),
    "reference": ("reference",),
    "parts": ("content",),
    "result.meta": ("result", "meta"),
    "memory_ref": ("id", "preview", "skill"),
    "question": ("question", "options"),
    "choice": ("choice",),
    "arguments.asked": ("questions", "source"),
    "arguments.given": ("input", "source"),
    "source": ("loop",),
    "pause": ("call", "arguments"),
    "answer.text": ("text",),
    "answer.schema": ("value", "fields", "schema"),
    "answer.failed": ("message",),
    "health": (),
    "session": _SESSION,
    "session.full": ("session", "solution", "primary_skill", "setup"),
    "session.created": ("session_id",),
    "session.deleted": (),
    "session.shared": ("shared",),
    "session.memory": ("memory_enabled",),
    "sessions": ("items", "total", "limit", "offset"),
    "history": ("nodes", "model"),
    "history.node": ("turn", "parent"),
    "ack": ("session_id",),
    "ack.chat": ("session_id", "run_id"),
    "ack.stopped": ("session_id",),
    "ack.idle": ("session_id",),
    "ack.refused": ("refusal",),
    **dict.fromkeys(("refusal", "refusal.missing", "refusal.access", "refusal.busy", "refusal.answer"), _REFUSAL),
}


# -- turns ------------------------------------------------------------------------------------------------------------

def turn(table: Table, told: Turn) -> Any:
    """A turn as it is by now."""
    fields = {
        "id": told.id, "sequence": told.sequence, "turn_id": told.turn_id, "loop_id": told.loop.loop_id,
        "role": told.role, "status": status(table, told), "blocks": [block(table, one) for one in told.blocks],
        "tool_calls": [tool_call(table, call) for call in told.calls.values()], "model": told.model,
        "usage": table.object("usage", usage=told.usage) if told.usage else None, "duration_ms": told.duration_ms,
        "started_at": told.started_at, "context_window": told.context_window, "fork": told.loop.fork,
        "memory_refs": memory_refs(table, told.memory_refs),
    }
    summed = told.compaction
    if summed is None:
        return table.object("turn", **fields)
    saved = 1 - summed.tokens_after / summed.tokens_before if summed.tokens_before else 0.0
    return table.object(
        "turn.compaction", **fields, compaction_id=summed.compaction_id, preview=summed.preview, summary=summed.summary,
        archived=told.archived, tokens_before=summed.tokens_before, tokens_after=summed.tokens_after,
        saved_ratio=min(1.0, max(0.0, round(saved, 4))), trigger=summed.trigger,
    )


def status(table: Table, told: Turn) -> str:
    return table.word("outcome" if isinstance(told.state, Outcome) else "session_status@turn", told.state)


def block(table: Table, one: Block) -> Any:
    return table.object("block", type=one.type, content=_content(table, one), call=_about(one.call))


def _content(table: Table, one: Block) -> Any:
    if not isinstance(one.content, Call):
        return one.content
    if one.type == BlockType.TOOL_RESULT:
        return result(table, one.content)
    return table.object("declaration", call=_about(one.content), input=arguments(table, one.content))


def _about(call: Call | None) -> dict[str, Any] | None:
    return {"id": call.id, "name": call.name, "title": call.title or call.name} if call else None


def memory_refs(table: Table, refs: Any) -> list[Any] | None:
    """Blade's memories have numbers; others get one that stays the same."""
    if not isinstance(refs, list):
        return None
    return [table.object("memory_ref", id=_number(ref.get("id")), preview=_preview(ref), skill=ref.get("skill_name"))
            for ref in refs if isinstance(ref, dict)]


def _number(memory_id: Any) -> int:
    return memory_id if isinstance(memory_id, int) else crc32(str(memory_id).encode())


def _preview(ref: dict[str, Any]) -> str:
    return str(ref.get("content_preview") or ref.get("content") or ref.get("title") or "")


# -- tool calls -------------------------------------------------------------------------------------------------------

def tool_call(table: Table, call: Call) -> Any:
    reference = table.object("reference", reference=call.reference) if call.reference else None
    return table.object(
        "tool_call", call=call, name=call.name, title=call.title or call.name, reference=reference,
        arguments=orjson.dumps(arguments(table, call)).decode(), result=result(table, call),
    )


def arguments(table: Table, call: Call) -> Any:
    """What a call was made with; one that asks a person says which loop it comes from."""
    source = table.object("source", loop=call.loop) if call.loop else None
    if call.questions is not None:
        asked = [question(table, one) for one in call.questions]
        return table.object("arguments.asked", questions=asked, source=source)
    if call.name == "AskUserQuestion":
        return table.object("arguments.given", input=call.input, source=source)
    return call.input


def question(table: Table, asked: Question) -> Any:
    options = [table.object("choice", choice=choice) for choice in asked.options]
    return table.object("question", question=asked, options=options)


def result(table: Table, call: Call) -> Any:
    """What came back; with what it hands to the page, where it does."""
    said = call.content
    spelled = said if said is None or isinstance(said, str) else table.object("parts", content=said)
    if not call.meta:
        return spelled
    return table.object("result.meta", result=_as_object(spelled), meta=call.meta)


def _as_object(said: Any) -> dict[str, Any]:
    if isinstance(said, str):
        try:
            found = read_json(said)
        except (LimitExceeded, orjson.JSONDecodeError):
            found = said
        said = found
    return said if isinstance(said, dict) else {"content": said}


# -- history ----------------------------------------------------------------------------------------------------------

async def told_of(pages: AsyncIterable[Sequence[Record]]) -> list[Turn]:
    """All turns of a session, as they are by now."""
    ledger, turns = Ledger(), list[Turn]()
    async for records in pages:
        async for some in sliced(records):
            for record in some:
                await _tell(ledger, record, turns)
    for _ in ledger.flush(inf):
        pass
    return turns


async def _tell(ledger: Ledger, record: Record, turns: list[Turn]) -> None:
    if isinstance(record.event, SessionRewound):
        while turns and turns[-1].seq > record.event.to_seq:
            turns.pop()
    before = len(turns)
    for cue in ledger.take(record):
        if cue.turn is not None and cue.name == "turn.opened":
            turns.append(cue.turn)
            if (len(turns) - before) % SLICE == 0:  # a session may begin with thousands of messages
                await turn_of_work()


async def messages(table: Table, pages: AsyncIterable[Sequence[Record]]) -> Encoded:
    """What GET …/messages answers with, each message encoded already."""
    return await encoded(_listed(table, told) for told in await told_of(pages))


def _listed(table: Table, told: Turn) -> Any:
    shape = "turn.compaction.listed" if told.compaction else "turn.listed"
    return table.object(shape, turn=turn(table, told), failure=told.failure)


async def history(table: Table, pages: AsyncIterable[Sequence[Record]], model: str | None) -> Any:
    """The turns as nodes, each under the one before it."""
    turns = await told_of(pages)
    parents = {after.id: before.id for before, after in pairwise(turns)}
    nodes = await encoded(
        table.object("history.node", turn=turn(table, told), parent=parents.get(told.id)) for told in turns)
    return table.object("history", nodes=nodes, model=model)


# -- sessions ---------------------------------------------------------------------------------------------------------

def user_id_of(owner: str) -> str:
    return f"user_{owner or 'local'}"


def session(table: Table, view: SessionView, model: str | None = None) -> Any:
    kept = view.private(table.dialect)
    return table.object(
        "session", id=view.session_id, intent=view.title or "", status=session_status(table, view),
        created_at=view.created_at, updated_at=view.updated_at, user_id=user_id_of(view.owner),
        solution_id=kept.get("solution_id"), biz_role_id=kept.get("biz_role_id"), model=view.settings.model or model,
        shared=kept.get("shared", False), is_pinned=kept.get("is_pinned", False),
        memory_enabled=kept.get("memory_enabled", True), is_persistent=kept.get("is_persistent", False),
        replay_state=kept.get("replay_state"),
    )


def session_status(table: Table, view: SessionView) -> str:
    if view.status == "idle" and view.ended is not None:
        return table.word("outcome", view.ended.outcome)
    return table.word("session_status", view.status)


def full_session(table: Table, view: SessionView, model: str | None = None) -> Any:
    kept = view.private(table.dialect)
    setup = {key: kept.get(key) for key in ("template_id", "primary_skill_id", "software_factory_id", "workspace_id")}
    return table.object(
        "session.full", session=session(table, view, model), solution=None, primary_skill=None, setup=setup,
    )
