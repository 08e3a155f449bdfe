"""The texts of a session that a search looks at."""

from collections.abc import Iterable, Iterator

from .commands import SendMessage
from .content import text_of
from .enums import ROOT, BlockKind, Role
from .events import BlockEnded, InputAccepted, SessionCreated, SessionUpdated
from .record import Record

SEARCHED_ROLES = (Role.USER, Role.ASSISTANT)


def searched_texts(records: Iterable[Record]) -> Iterator[str]:
    """The titles, and the whole text of each message of users and of the agent itself."""
    messages: dict[str, list[str]] = {}
    for record in records:
        match record.event:
            case SessionCreated(title=title, history=history):
                yield from (title or "", *(text_of(entry.content) for entry in history if entry.role in SEARCHED_ROLES))
            case SessionUpdated(title=str(title)):
                yield title
            case InputAccepted(command=SendMessage(content=content)):
                yield text_of(content)
            case BlockEnded(kind=BlockKind.TEXT, text=str(text)) if record.scope_id == ROOT:
                messages.setdefault(record.event.message_id, []).append(text)
    for texts in messages.values():
        yield "".join(texts)
