"""What a model is reminded of: the history and what this turn has added, each call beside what it gave back."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from gateway.model import (
    AnyEvent,
    AnyPart,
    Content,
    Entry,
    FilePart,
    ImagePart,
    MessageStarted,
    Record,
    Role,
    SessionView,
    TextPart,
    ToolCall,
    ToolOrigin,
    ToolUsePart,
    in_markdown,
    parts_of,
)
from gateway.ports import Turn

LOST = "What this call gave back is not known."
NOT_JSON = "The arguments of this call were not a JSON object, so nothing was done. Call again with ones that are."


class Heard(Struct, frozen=True):
    """Something a person or the house said."""

    role: Role
    parts: tuple[AnyPart, ...]


class Spoken(Struct, frozen=True):
    """What a model said, and what each of its calls gave back, by call id; a provider's own may be missing."""

    parts: tuple[AnyPart, ...]
    results: dict[str, Entry]
    model: str | None = None

    @property
    def calls(self) -> list[ToolCall]:
        return [part.call for part in self.parts if isinstance(part, ToolUsePart)]


Exchange = Heard | Spoken


class Memory:
    """A conversation while a turn runs: the fold of its history and of all that the turn says."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._view = SessionView(session_id=turn.session_id, entries=list(turn.history))
        self._message = ""
        self.call_ids = {
            part.call.call_id for entry in turn.history if not isinstance(entry.content, str)
            for part in entry.content if isinstance(part, ToolUsePart)
        }
        """Every id that a call has had; no other call may have it."""

    def note(self, event: AnyEvent) -> None:
        """Remember something that this turn said; deltas need not be told."""
        if isinstance(event, MessageStarted):
            self._message = event.message_id
        self._view.apply(Record(
            seq=0, at=0.0, session_id=self._turn.session_id, turn_id=self._turn.turn_id, event=event,
        ))

    def note_torn(self, call: ToolCall) -> None:
        """Remember a call of the last message that history does not keep, and what the model is told of it."""
        entry = next((e for e in reversed(self._view.entries) if e.message_id == self._message), None)
        if entry is None:
            entry = Entry(role=Role.ASSISTANT, content=(), seq=0, at=0.0, message_id=self._message)
            self._view.entries.append(entry)
        entry.content = (*parts_of(entry.content), ToolUsePart(call=call))
        self._view.entries.append(
            Entry(role=Role.TOOL, content=NOT_JSON, seq=0, at=0.0, call_id=call.call_id, is_error=True))

    @property
    def steps(self) -> int:
        """How often the model was asked in this turn so far."""
        return sum(1 for entry in self._view.entries
                   if entry.role is Role.ASSISTANT and entry.turn_id == self._turn.turn_id)

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls that this turn has made and that have not come back."""
        entries = [entry for entry in self._view.entries if entry.turn_id == self._turn.turn_id]
        back = {entry.call_id for entry in entries if entry.role is Role.TOOL}
        return [part.call for entry in entries for part in parts_of(entry.content)
                if isinstance(part, ToolUsePart) and part.call.call_id not in back
                and part.call.origin is not ToolOrigin.PROVIDER]

    @property
    def exchanges(self) -> list[Exchange]:
        return list(exchanges(self._view.entries))


def exchanges(entries: Sequence[Entry]) -> Iterator[Exchange]:
    """Entries as one says them to a model: results stand with the calls they belong to, wherever they came."""
    results, placed = _results(entries)
    for place, entry in enumerate(entries):
        if entry.role is Role.ASSISTANT:
            yield Spoken(parts_of(entry.content), results[place], entry.model)
        elif entry.role is Role.TOOL:
            if place not in placed:
                yield Heard(Role.USER, (TextPart(text=f"A tool gave back: {words_of(entry.content)}"),))
        else:
            yield Heard(entry.role, parts_of(entry.content))


def _results(entries: Sequence[Entry]) -> tuple[dict[int, dict[str, Entry]], set[int]]:
    """The results of each message, by its place; and the places of all results that belong to one."""
    calls: dict[str, int] = {}
    results: dict[int, dict[str, Entry]] = {}
    placed: set[int] = set()
    for place, entry in enumerate(entries):
        if entry.role is Role.TOOL and entry.call_id in calls:
            results[calls.pop(entry.call_id)][entry.call_id] = entry
            placed.add(place)
        elif entry.role is Role.ASSISTANT:
            results[place] = {}
            calls |= {part.call.call_id: place for part in parts_of(entry.content) if isinstance(part, ToolUsePart)}
    return results, placed


# -- parts in words ---------------------------------------------------------------------------------------------------

def words_of(content: Content) -> str:
    """The content for those who only read: pictures and files by their addresses."""
    return content if isinstance(content, str) else "\n".join(filter(None, map(_in_words, content)))


def _in_words(part: AnyPart) -> str:
    match part:
        case TextPart(text=text):
            return text
        case ImagePart(url=url):
            return "[a picture]" if url.startswith("data:") else in_markdown(part)
        case FilePart():
            return file_in_words(part)
    return ""


def file_in_words(file: FilePart) -> str:
    """What a file says, where it is a text that came along; otherwise what it is called and where it is."""
    kind, data = embedded(file.url or "")
    if data is not None and kind.startswith("text/"):
        return f"[file {file.name}]\n{data.decode(errors='replace')}"
    where = f" at {file.url}" if file.url and data is None else ""
    return f"[file {file.name}{where}]"


def embedded(url: str) -> tuple[str, bytes | None]:
    """The media type and the bytes of a `data:` address; no bytes where it is none."""
    if not url.startswith("data:"):
        return "", None
    head, comma, body = url[5:].partition(",")
    kind, *options = head.split(";")
    if not comma:
        return kind, None
    try:
        data = base64.b64decode(body, validate=True) if "base64" in options else unquote_to_bytes(body)
    except binascii.Error:
        return kind, None
    return kind or "text/plain", data


def lost(call: ToolCall) -> Entry:
    """What stands in for a result that nobody kept."""
    return Entry(role=Role.TOOL, content=LOST, seq=0, at=0.0, call_id=call.call_id, is_error=True)
