"""The stored messages of a session: entries grouped as in the stream, a page at a time."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import gateway.model as m
from adapters.zenflux.asks import result_text
from adapters.zenflux.bodies import ImageBlock, MessageBody, ResultBlock, spell
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable

from .views import image_names

PROCESSING = "processing"
MAX_SESSIONS = 64
"""The messages of so many sessions are kept ready."""


@dataclass(slots=True)
class StoredMessage:
    """One message of a conversation: a person's, or a run's, which has one model call or all of them."""

    id: str
    role: m.Role
    at: float
    turn_id: str | None
    entries: list[m.HistoryEntry] = field(default_factory=list)
    outcome: m.Outcome | None = m.Outcome.COMPLETED
    model: str | None = None
    usage: m.Usage = field(default_factory=m.Usage)

    def add(self, entry: m.HistoryEntry) -> None:
        self.entries.append(entry)
        if entry.role is m.Role.ASSISTANT:
            self.outcome, self.model = entry.outcome, entry.model or self.model
            self.usage += entry.usage or m.Usage()
            if entry.turn_id is None:
                self.outcome = m.Outcome.COMPLETED  # from elsewhere, before the session was created

    @property
    def text(self) -> str:
        return "".join(m.text_of(entry.content) for entry in self.entries if entry.role is not m.Role.TOOL)


def messages_of(view: m.SessionView, *, multi_message: bool) -> list[StoredMessage]:
    """The messages, oldest first; a result is in the message of its call, or else in the last message of its run.

    The stream may have a result in the next message; but a page that is loaded again shows a call as running if its
    result is in another message.
    """
    return _MessageGrouper(multi_message).group(view.entries)


class StoredMessages:
    """The messages of the sessions that were read last; those of earlier turns are not grouped again for each page."""

    def __init__(self) -> None:
        self._earlier: OrderedDict[tuple[str, bool], _MessageGrouper] = OrderedDict()
        """By session, and by whether each model call is a message of its own."""

    def of(self, view: m.SessionView, *, multi_message: bool) -> list[StoredMessage]:
        """As `messages_of`; the list is the caller's, and its messages are not to be changed."""
        key, entries, settled = (view.session_id, multi_message), view.entries, _last_turn_start(view.entries)
        earlier = self._earlier.pop(key, None)
        if earlier is None or not earlier.has_begun_with(entries[:settled]):
            earlier = _MessageGrouper(multi_message)
        earlier.group(entries[earlier.taken:settled])
        self._earlier[key] = earlier
        if len(self._earlier) > MAX_SESSIONS:
            self._earlier.popitem(last=False)
        return earlier.copy().group(entries[settled:])


def _last_turn_start(entries: Sequence[m.HistoryEntry]) -> int:
    """The place of the first entry of the last turn, which may still change."""
    place = len(entries)
    while place and entries[place - 1].turn_id == entries[-1].turn_id:
        place -= 1
    return place


class _MessageGrouper:
    """Puts entries into messages, one after the other."""

    def __init__(self, multi_message: bool) -> None:
        self.multi_message = multi_message
        self.messages: list[StoredMessage] = []
        self.callers: dict[tuple[str | None, str | None], StoredMessage] = {}
        self.count = 0
        self.taken = 0
        """How many entries were grouped, with those of sub-agents."""
        self._last: m.HistoryEntry | None = None

    def has_begun_with(self, entries: Sequence[m.HistoryEntry]) -> bool:
        """Whether these entries begin with those that were grouped; those of a session that was rewound do not."""
        return self.taken == 0 or (self.taken <= len(entries) and entries[self.taken - 1] is self._last)

    def copy(self) -> "_MessageGrouper":
        """A grouper that goes on with the next turn, whose entries concern no earlier message."""
        other = _MessageGrouper(self.multi_message)
        other.messages, other.count = self.messages.copy(), self.count
        return other

    def group(self, entries: Iterable[m.HistoryEntry]) -> list[StoredMessage]:
        for entry in entries:
            self.taken, self._last = self.taken + 1, entry
            if entry.scope_id != m.ROOT:
                continue
            self.count += 1
            if entry.role is m.Role.USER:
                self._open(entry).add(entry)
            elif entry.role is m.Role.TOOL:
                caller = self.callers.get((entry.turn_id, entry.call_id)) or self._current(entry)
                (caller or self._open(entry)).add(entry)
            elif entry.role is m.Role.ASSISTANT:
                self._say(entry)
        return self.messages

    def _open(self, entry: m.HistoryEntry) -> StoredMessage:
        """A message without an id gets one from its place, which never changes."""
        role = m.Role.USER if entry.role is m.Role.USER else m.Role.ASSISTANT
        message = StoredMessage(entry.message_id or f"msg_{self.count}", role, entry.at, entry.turn_id)
        self.messages.append(message)
        return message

    def _say(self, entry: m.HistoryEntry) -> None:
        message = self._current(entry) if not self.multi_message else None
        message = message or self._open(entry)
        message.add(entry)
        for part in m.parts_of(entry.content):
            if isinstance(part, m.ToolUsePart):
                self.callers[entry.turn_id, part.call.call_id] = message

    def _current(self, entry: m.HistoryEntry) -> StoredMessage | None:
        last = self.messages[-1] if self.messages else None
        return last if last and last.role is m.Role.ASSISTANT and last.turn_id == entry.turn_id else None


# -- in words of the wire ---------------------------------------------------------------------------------------------

def message_bodies(table: DialectTable, view: m.SessionView, messages: Sequence[StoredMessage]) -> list[JsonValue]:
    return [_message(table, view, message) for message in messages]


def _message(table: DialectTable, view: m.SessionView, message: StoredMessage) -> JsonObject:
    return spell(table, MessageBody(
        id=message.id, session_id=view.session_id, role=message.role, status=_status(table, view, message),
        content=_content(table, message), at=message.at, metadata=_metadata(message),
    ))


def _status(table: DialectTable, view: m.SessionView, message: StoredMessage) -> str:
    speaking = message.role is m.Role.ASSISTANT and message.turn_id is not None and message.turn_id == view.turn_id
    if message.outcome is None or (speaking and message.entries[-1] is view.entries[-1]):
        return PROCESSING
    return table.word("outcome@message", message.outcome)


def _content(table: DialectTable, message: StoredMessage) -> JsonValue:
    """A person's plain text as it is; everything else as blocks."""
    only = message.entries[0].content
    if message.role is m.Role.USER and isinstance(only, str):
        return only
    blocks: list[JsonValue] = []
    for entry in message.entries:
        if entry.role is not m.Role.TOOL:
            blocks += blocks_of(table, entry.content)
        else:
            blocks.insert(_place(blocks, entry), _result(table, entry))
    return blocks


def _result(table: DialectTable, entry: m.HistoryEntry) -> JsonObject:
    return spell(table, ResultBlock(call_id=entry.call_id, text=result_text(entry.content), is_error=entry.is_error))


def _place(blocks: list[JsonValue], entry: m.HistoryEntry) -> int:
    """The place of a result: last, or right after its call if the message went on."""
    calls = (place for place, block in enumerate(blocks, 1)
             if isinstance(block, dict) and block.get("id") == entry.call_id)
    return next(calls, len(blocks)) if entry.origin is m.ToolOrigin.PROVIDER else len(blocks)


def blocks_of(table: DialectTable, content: m.Content) -> list[JsonValue]:
    return [block for part in m.parts_of(content) for block in _block_of_part(table, part)]


def _block_of_part(table: DialectTable, part: m.AnyPart) -> list[JsonValue]:
    """One block, or none for a part that ZenFlux does not have."""
    if isinstance(part, m.ImagePart):
        return [spell(table, ImageBlock(**image_names(part)))]
    return cast(list[JsonValue], table.object("blocks", content=(part,)))  # the one row that is an array


def _metadata(message: StoredMessage) -> JsonObject:
    if message.role is m.Role.USER:
        return {}
    calls = sum(isinstance(part, m.ToolUsePart) for entry in message.entries for part in m.parts_of(entry.content))
    return {
        "session_id": message.turn_id, "model": message.model, "tool_calls": calls,
        "usage": {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens},
    }
