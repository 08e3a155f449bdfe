"""The conversation as a model sees it: the history and the events of this turn, each call with its result."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

import gateway.model as m
from gateway.ports import Turn

MISSING_RESULT_TEXT = "What this call gave back is not known."
INVALID_ARGUMENTS_TEXT = (
    "The arguments of this call were not a JSON object, so nothing was done. Call again with ones that are."
)


class InputMessage(Struct, frozen=True):
    """A message of a person, or a system message."""

    role: m.Role
    parts: tuple[m.AnyPart, ...]


class OutputMessage(Struct, frozen=True):
    """A message of the model, and the results of its calls by call id; results of provider tools may be missing."""

    parts: tuple[m.AnyPart, ...]
    results: dict[str, m.HistoryEntry]
    model: str | None = None

    @property
    def calls(self) -> list[m.ToolCall]:
        return [part.call for part in self.parts if isinstance(part, m.ToolUsePart)]


ConversationMessage = InputMessage | OutputMessage


class Conversation:
    """The conversation while a turn runs: the fold of the history and of the turn's events."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._view = m.SessionView(session_id=turn.session_id, entries=list(turn.history))
        self._message = ""
        self.call_ids = {
            part.call.call_id for entry in turn.history if not isinstance(entry.content, str)
            for part in entry.content if isinstance(part, m.ToolUsePart)
        }
        """The ids of all calls so far; a new call must not reuse one."""

    def note(self, event: m.AnyEvent) -> None:
        """Add an event of this turn; deltas are not needed."""
        if isinstance(event, m.MessageStarted):
            self._message = event.message_id
        m.apply(self._view, m.Record(
            seq=0, at=0.0, session_id=self._turn.session_id, turn_id=self._turn.turn_id, event=event,
        ))

    def note_torn(self, call: m.ToolCall) -> None:
        """Add a torn call of the last message, which the history does not keep, and an error as its result."""
        entry = next((e for e in reversed(self._view.entries) if e.message_id == self._message), None)
        if entry is None:
            entry = m.HistoryEntry(role=m.Role.ASSISTANT, content=(), seq=0, at=0.0, message_id=self._message)
            self._view.entries.append(entry)
        entry.content = (*m.parts_of(entry.content), m.ToolUsePart(call=call))
        self._view.entries.append(
            m.HistoryEntry(
                role=m.Role.TOOL, content=INVALID_ARGUMENTS_TEXT, seq=0, at=0.0, call_id=call.call_id, is_error=True
            )
        )

    @property
    def steps(self) -> int:
        """How many requests this turn has sent so far."""
        return sum(1 for entry in self._view.entries
                   if entry.role is m.Role.ASSISTANT and entry.turn_id == self._turn.turn_id)

    @property
    def open_calls(self) -> list[m.ToolCall]:
        """The calls of this turn without a result."""
        entries = [entry for entry in self._view.entries if entry.turn_id == self._turn.turn_id]
        back = {entry.call_id for entry in entries if entry.role is m.Role.TOOL}
        return [part.call for entry in entries for part in m.parts_of(entry.content)
                if isinstance(part, m.ToolUsePart) and part.call.call_id not in back
                and part.call.origin is not m.ToolOrigin.PROVIDER]

    @property
    def messages(self) -> list[ConversationMessage]:
        return list(conversation_messages(self._view.entries))


def conversation_messages(entries: Sequence[m.HistoryEntry]) -> Iterator[ConversationMessage]:
    """The entries as messages; each result is beside its call, wherever it came."""
    results, placed = _results(entries)
    for place, entry in enumerate(entries):
        if entry.role is m.Role.ASSISTANT:
            yield OutputMessage(m.parts_of(entry.content), results[place], entry.model)
        elif entry.role is m.Role.TOOL:
            if place not in placed:
                yield InputMessage(
                    m.Role.USER, (m.TextPart(text=f"A tool gave back: {content_as_text(entry.content)}"),)
                )
        else:
            yield InputMessage(entry.role, m.parts_of(entry.content))


def _results(entries: Sequence[m.HistoryEntry]) -> tuple[dict[int, dict[str, m.HistoryEntry]], set[int]]:
    """The results of each message, by its place; and the places of all results that belong to a message."""
    calls: dict[str, int] = {}
    results: dict[int, dict[str, m.HistoryEntry]] = {}
    placed: set[int] = set()
    for place, entry in enumerate(entries):
        if entry.role is m.Role.TOOL and entry.call_id in calls:
            results[calls.pop(entry.call_id)][entry.call_id] = entry
            placed.add(place)
        elif entry.role is m.Role.ASSISTANT:
            results[place] = {}
            calls |= {part.call.call_id: place for part in m.parts_of(entry.content) if isinstance(part, m.ToolUsePart)}
    return results, placed


# -- parts in words ---------------------------------------------------------------------------------------------------

def content_as_text(content: m.Content) -> str:
    """The content as text; images and files by their URLs."""
    return content if isinstance(content, str) else "\n".join(filter(None, map(_part_as_text, content)))


def _part_as_text(part: m.AnyPart) -> str:
    match part:
        case m.TextPart(text=text):
            return text
        case m.ImagePart(url=url):
            return "[a picture]" if url.startswith("data:") else m.image_markdown(part)
        case m.FilePart():
            return file_as_text(part)
    return ""


def file_as_text(file: m.FilePart) -> str:
    """The text of an embedded text file, or else the name and the URL of the file."""
    kind, data = m.decode_data_url(file.url or "")
    if data is not None and kind.startswith("text/"):
        return f"[file {file.name}]\n{data.decode(errors='replace')}"
    where = f" at {file.url}" if file.url and data is None else ""
    return f"[file {file.name}{where}]"


def missing_result(call: m.ToolCall) -> m.HistoryEntry:
    """The text for a result that was not kept."""
    return m.HistoryEntry(
        role=m.Role.TOOL, content=MISSING_RESULT_TEXT, seq=0, at=0.0, call_id=call.call_id, is_error=True
    )
