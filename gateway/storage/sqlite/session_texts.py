"""The index of the texts of sessions, in SQLite: a search adds the records that are new since the last search.

It is a full-text table that has no text: its tokens are pairs of neighbouring characters, written in hex, so that any
part of a text is found in any script. The caller must compare the texts of each found session.
"""

import sqlite3

import msgspec

import gateway.model as m
from gateway.ports import ListedSession
from gateway.search_terms import keyword_terms, pairs_of

from .session_lists import rows_of_sessions
from .terms import new_tokens, tokens_of

_decode_lines = msgspec.json.Decoder(m.Record).decode_lines
SHELF = "session"
"""Under this kind the tokens of an owner's sessions have a number of their own."""
NEW_SEGMENTS = "SELECT spine FROM segments WHERE session = ? AND last > ? ORDER BY last"
UNINDEXED = "SELECT ordinal, head, indexed FROM sessions WHERE owner = ? AND head > indexed AND NOT in_turn LIMIT ?"
FOUND = (
    "SELECT session FROM said CROSS JOIN session_texts ON session_texts.text = said.rowid WHERE said MATCH ? "
    "UNION SELECT ordinal FROM sessions INDEXED BY sessions_in_turn WHERE in_turn AND owner = ? ORDER BY 1 DESC"
)
"""The sessions whose texts have some tokens, and those whose last words are not indexed yet.

The index is named, because SQLite would look at all sessions of the owner: it does not know how few are in a turn.
"""


def add_session_texts(file: sqlite3.Connection) -> None:
    """Create the tables; they are filled when somebody searches."""
    file.execute("ALTER TABLE sessions ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0")
    file.execute("CREATE INDEX sessions_unindexed ON sessions (owner) WHERE head > indexed AND NOT in_turn")
    file.execute(
        "CREATE VIRTUAL TABLE said USING fts5(tokens, content='', detail=none, columnsize=0, tokenize='ascii')")
    file.execute("CREATE TABLE session_texts (text INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL)")
    file.execute("CREATE INDEX session_texts_by_session ON session_texts (session)")


def has_new_texts(file: sqlite3.Connection, owner: str) -> bool:
    """Whether a session of the owner has texts that are not indexed, and no turn that would add to them."""
    return file.execute(UNINDEXED, (owner, 1)).fetchone() is not None


def index_texts(file: sqlite3.Connection, owner: str, most: int) -> bool:
    """Index the new records of so many sessions of an owner; whether there may be more of them.

    A session is indexed between two turns, so that no message is cut in two.
    """
    sessions = file.execute(UNINDEXED, (owner, most)).fetchall()
    for ordinal, head, indexed in sessions:
        rows = file.execute(NEW_SEGMENTS, (ordinal, indexed))
        new = [record for (spine,) in rows for record in _decode_lines(spine) if record.seq > indexed]
        if terms := {term for text in m.searched_texts(new) for term in pairs_of(text)}:
            [place] = file.execute(
                "INSERT INTO session_texts (session) VALUES (?) RETURNING text", (ordinal,)).fetchone()
            tokens = " ".join(new_tokens(file, SHELF, owner, terms))
            file.execute("INSERT INTO said (rowid, tokens) VALUES (?, ?)", (place, tokens))
        file.execute("UPDATE sessions SET indexed = ? WHERE ordinal = ?", (head, ordinal))
    return len(sessions) == most


def sessions_mentioning(file: sqlite3.Connection, owner: str, text: str) -> list[ListedSession]:
    """The sessions that may have this text, newest first; the text has a pair of characters."""
    wanted = " AND ".join(tokens_of(file, SHELF, owner, sorted(keyword_terms(text))))
    return rows_of_sessions(file, file.execute(FOUND, (wanted, owner)).fetchall())


def forget_texts(file: sqlite3.Connection, ordinal: int) -> None:
    """A session was deleted: its texts are not found any more."""
    file.execute("DELETE FROM session_texts WHERE session = ?", (ordinal,))
