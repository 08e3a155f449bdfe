"""The history of a session as AAP shows it: messages, asks and results in the order in which they happened."""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

import gateway.model as m
from adapters.aap.asks import CANCELLED, wire_answer
from adapters.aap.bodies import MessageBody
from gateway.http import encode_array
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable


async def history_body(table: DialectTable, kind: str, view: m.SessionView) -> object:
    """All messages, and last the open calls: a client must be able to continue with this body alone."""
    entries = view.entries if kind == "full" else view.compacted
    archived = view.entries[:view.compacted_to] if kind != "full" and view.compaction is not None else []
    since = archived[-1].seq if archived else 0
    asks = [past for past in view.past_asks.values() if past.asked.seq > since]
    shown_calls = {past.asked.call_id for past in asks if past.asked.scope_id != m.ROOT and past.asked.call_id}
    returned = {past.asked.call_id for past in asks if past.asked.call_id and returned_by_client(past) is not None}
    spoken = _visible_entries(entries, shown_calls, returned)
    merged = _merged(spoken, sorted(_ask_items(table, asks), key=lambda item: item[0]))
    message_bodies = (table.object(MessageBody.row, message) for message in merged)
    return table.object("history", history={kind: await encode_array(message_bodies)})


Message = JsonObject
"""The names of a message as the table spells it."""
HistoryItem = tuple[int, Any, bool]
"""The number of a record, its message or call in the history, and whether it is a call."""


def _merged(entries: Iterable[m.HistoryEntry], asked: Iterable[HistoryItem]) -> Iterator[Message]:
    """Entries and asks in the order of their records; calls that were asked together are one message."""
    calls: list[JsonValue] = []
    queue = deque(asked)

    def tell(message: Message) -> Iterator[Message]:
        yield from pending_calls_message(calls)
        calls.clear()
        yield message

    def take_asks(before: float) -> Iterator[Message]:
        while queue and queue[0][0] < before:
            _, item, is_call = queue.popleft()
            if is_call:
                calls.append(item)
            else:
                yield from tell(item)

    for entry in entries:
        yield from take_asks(entry.seq)
        for message in _messages(entry):
            yield from tell(message)
    yield from take_asks(float("inf"))
    yield from pending_calls_message(calls)


# -- asks -------------------------------------------------------------------------------------------------------------

def _ask_items(table: DialectTable, asks: Iterable[m.AskRecord]) -> Iterable[HistoryItem]:
    """The calls that stand for asks, and the results that the client sent."""
    for past in asks:
        one = past.asked
        calls = ask_as_calls(table, one.request_id, one.ask, one.scope_id)
        yield from ((one.seq, call, True) for call in calls)
        result = returned_by_client(past)
        if result is None and past.settled and m.call_of(one.ask) is None:
            result = _settled_content(past)
        if result is not None:
            call_id = one.call_id or one.request_id
            yield past.settled, _message(m.Role.TOOL, result, call_id), False


def ask_as_calls(table: DialectTable, request_id: str, ask: m.AnyAsk, scope_id: str) -> list[JsonValue]:
    """An ask as the call that stands for it in the stream; none if the ask is about a call of the agent."""
    call, is_shown = m.call_of(ask), scope_id == m.ROOT
    if call is None and isinstance(ask, m.QuestionAsk):
        call, is_shown = m.question_call(ask, request_id), False
    if call is None:
        return [table.object(f"asked.{ask.kind}", request_id=request_id, ask=ask)]
    return [] if is_shown else [table.object("asked.call", call=call)]


def pending_calls_message(calls: Sequence[Any]) -> list[Message]:
    """One message of such calls, which are blocks of content already, if there are any."""
    return [_message(m.Role.ASSISTANT, list(calls))] if calls else []


def returned_by_client(past: m.AskRecord) -> m.Content | None:
    """The result that a client returned for the call of an ask, as it was sent; None if there is none."""
    match past.answer:
        case m.ReturnResult(content=content):
            return content
        case m.AnswerQuestion(said=content) | m.ContinueTurn(said=content) | m.RollBack(said=content) if content:
            return content
    return None


def _settled_content(past: m.AskRecord) -> m.Content:
    """The outcome of an ask without a call for which no result was returned."""
    answer = past.answer
    return (
        CANCELLED if answer is None or isinstance(answer, m.Withdraw) else wire_answer(past.asked.ask, answer).content
    )


# -- messages ---------------------------------------------------------------------------------------------------------

def agent_messages(
    entries: Iterable[m.HistoryEntry],
    shown_calls: Container[str | None] = (),
    returned: Container[str | None] = (),
) -> list[Message]:
    """The messages of the agent and its tools, without those that the client sent or returned."""
    own = [entry for entry in _visible_entries(entries, shown_calls, returned) if not _by_client(entry)]
    return [message for entry in own for message in _messages(entry)]


def _visible_entries(
    entries: Iterable[m.HistoryEntry], shown_calls: Container[str | None], returned: Container[str | None],
) -> list[m.HistoryEntry]:
    """The entries of the agent itself, and the results of those calls of sub-agents that the client saw.

    Results that the client returned are left out: they are in the history where they were returned.
    """
    return _results_first(
        entry for entry in entries
        if (entry.scope_id == m.ROOT or (entry.role is m.Role.TOOL and entry.call_id in shown_calls))
        and (entry.role is not m.Role.TOOL or entry.call_id not in returned)
    )


def _results_first(entries: Iterable[m.HistoryEntry]) -> list[m.HistoryEntry]:
    """Results follow their calls: those of calls that a message abandoned come before that message."""
    ordered: list[m.HistoryEntry] = []
    for entry in entries:
        place = len(ordered)
        while entry.role is m.Role.TOOL and place and _is_later(ordered[place - 1], entry):
            place -= 1
        ordered.insert(place, entry)
    return ordered


def _is_later(entry: m.HistoryEntry, result: m.HistoryEntry) -> bool:
    return entry.role is m.Role.USER and entry.turn_id != result.turn_id


def _is_seed(entry: m.HistoryEntry) -> bool:
    return entry.turn_id is None


def _by_client(entry: m.HistoryEntry) -> bool:
    return entry.role is m.Role.USER or entry.origin is m.ToolOrigin.CLIENT


def _messages(entry: m.HistoryEntry) -> list[Message]:
    """The entry as a message; none if AAP has no block for its content."""
    content = _visible_content(entry)
    if entry.role is m.Role.TOOL:
        return [_message(entry.role, content, entry.call_id)]
    if not content and entry.role is m.Role.ASSISTANT and not _is_seed(entry):
        return []
    return [_message(entry.role, m.text_of(content) if entry.role is m.Role.SYSTEM else content)]


def _message(role: m.Role, content: Any, call_id: str | None = None) -> Message:
    return {"role": role, "call_id": call_id, "content": content}


def _visible_content(entry: m.HistoryEntry) -> m.Content:
    """Images of an agent become text, as in the stream; images of a client stay images."""
    if isinstance(entry.content, str):
        return entry.content
    if entry.role is not m.Role.ASSISTANT or _is_seed(entry):
        return tuple(map(_as_sent, entry.content))
    return tuple(_image_as_text(part) for part in entry.content if not isinstance(part, m.DataPart | m.FilePart))


def _as_sent(part: m.AnyPart) -> m.AnyPart:
    """Nothing is added to a call that a client sent."""
    if isinstance(part, m.ToolUsePart):
        return replace(part, call=replace(part.call, origin=m.ToolOrigin.CLIENT))
    return part


def _image_as_text(part: m.AnyPart) -> m.AnyPart:
    return m.TextPart(text=m.image_markdown(part)) if isinstance(part, m.ImagePart) else part
