"""Looking for words in conversations: in the title first, then in what was said."""

from typing import NamedTuple

from gateway.model import ROOT, Role, SessionView, text_of
from gateway.time_slices import turn

AROUND = 40
"""Characters shown on either side of what was found."""
CHARACTERS, ENTRY = 250_000, 2000
"""How many characters are looked through in one slice, and how many of them the time for an entry is worth."""


class Hit(NamedTuple):
    """Where it was found, and what stands around it."""

    where: str
    snippet: str


async def look(view: SessionView, wanted: str) -> Hit | None:
    folded = wanted.casefold()
    if folded in (view.title or "").casefold():
        return Hit("title", view.title or "")
    seen = 0
    for entry in reversed(view.entries[:]):
        if entry.scope_id == ROOT and entry.role in (Role.USER, Role.ASSISTANT):
            text = text_of(entry.content)
            if folded in text.casefold():
                return Hit("content", _around(text, wanted))
            seen += ENTRY + len(text)
            if seen > CHARACTERS:
                await turn()
                seen = 0
    return None


def _around(text: str, wanted: str) -> str:
    """Folding may change the length of a text, so that the place is looked for in both."""
    at = text.find(wanted)
    at = at if at >= 0 else max(0, text.casefold().find(wanted.casefold()))
    start, end = max(0, at - AROUND), min(len(text), at + len(wanted) + AROUND)
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
