"""The index of terms in SQLite: which resources have a term, and how many resources a user has of a kind.

It is a full-text table that has no text: its tokens are the terms of a user's resources of a kind, written in hex.
"""

import sqlite3
from collections.abc import Collection, Iterable

import msgspec

from gateway.search_terms import SEARCHED_FIELDS, terms_of

IN_USE = "resources.in_use/"
"""With kind, a slash and owner: the name of the counter of the resources that are not archived."""
IN_USE_ROWS = "FROM resources WHERE newest AND archived_at IS NULL"
WITH_TERMS = (
    "SELECT record FROM terms CROSS JOIN resources INDEXED BY resources_in_use ON newest AND archived_at IS NULL "
    "AND kind = ? AND owner = ? AND resources.ordinal = terms.rowid WHERE terms MATCH ? ORDER BY terms.rowid DESC"
)
"""The records of the resources with some terms, newest first."""


def add_terms_table(file: sqlite3.Connection) -> None:
    """Create the tables, for the resources that there are as well; those below a parent are counted from an index."""
    file.execute(
        "CREATE TABLE shelves (shelf INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, "
        "UNIQUE (kind, owner))"
    )
    file.execute(
        "CREATE VIRTUAL TABLE terms USING fts5(tokens, content='', detail=none, columnsize=0, tokenize='ascii')")
    file.execute(
        f"INSERT INTO counters SELECT '{IN_USE}' || kind || '/' || owner, count(*) {IN_USE_ROWS} GROUP BY kind, owner")
    file.execute("DROP INDEX resources_in_use_by_parent")
    file.execute(
        "CREATE INDEX resources_in_use_by_parent ON resources (parent, kind, owner, ordinal, newest, archived_at) "
        "WHERE newest AND archived_at IS NULL"
    )
    for kind in SEARCHED_FIELDS:
        rows = file.execute(f"SELECT owner, ordinal, record {IN_USE_ROWS} AND kind = ?", (kind,)).fetchall()
        for owner, ordinal, record in rows:
            add_terms(file, kind, owner, ordinal, terms_of(kind, msgspec.json.decode(record)["body"]))


def add_terms(file: sqlite3.Connection, kind: str, owner: str, ordinal: int, terms: Collection[str]) -> None:
    """Put a resource under the terms by which it is found."""
    if terms:
        tokens = " ".join(new_tokens(file, kind, owner, terms))
        file.execute("INSERT INTO terms (rowid, tokens) VALUES (?, ?)", (ordinal, tokens))


def remove_terms(file: sqlite3.Connection, kind: str, owner: str, ordinal: int, terms: Collection[str]) -> None:
    """Remove a resource from the index; `terms` must be all terms that it was added with."""
    if terms:
        tokens = " ".join(tokens_of(file, kind, owner, terms))
        file.execute("INSERT INTO terms (terms, rowid, tokens) VALUES ('delete', ?, ?)", (ordinal, tokens))


def records_with_terms(file: sqlite3.Connection, kind: str, owner: str, terms: Collection[str]) -> list[bytes]:
    """The records of the resources that have all terms, newest first."""
    wanted = " AND ".join(tokens_of(file, kind, owner, terms))
    return [record for (record,) in file.execute(WITH_TERMS, (kind, owner, wanted))]


def term_counts(
    file: sqlite3.Connection, kind: str, owner: str, terms: Collection[str], *, most: int,
) -> dict[str, int]:
    """How many resources have each term; a count ends at `most`."""
    count = "SELECT count(*) FROM (SELECT 1 FROM terms WHERE terms MATCH ? LIMIT ?)"
    tokens = tokens_of(file, kind, owner, terms)
    return {
        term: int(file.execute(count, (token, most)).fetchone()[0]) for term, token in zip(terms, tokens, strict=True)}


def ordinals_of(file: sqlite3.Connection, kind: str, owner: str, term: str) -> list[int]:
    """The ordinals of the resources that have the term."""
    rows = file.execute("SELECT rowid FROM terms WHERE terms MATCH ?", tokens_of(file, kind, owner, (term,)))
    return [ordinal for (ordinal,) in rows]


def new_tokens(file: sqlite3.Connection, kind: str, owner: str, terms: Iterable[str]) -> list[str]:
    """The terms as tokens, to be added to the index."""
    file.execute("INSERT OR IGNORE INTO shelves (kind, owner) VALUES (?, ?)", (kind, owner))
    return tokens_of(file, kind, owner, terms)


def tokens_of(file: sqlite3.Connection, kind: str, owner: str, terms: Iterable[str]) -> list[str]:
    """The terms as tokens, which begin with the number of the kind and the owner; 0 if none of theirs has terms."""
    row = file.execute("SELECT shelf FROM shelves WHERE kind = ? AND owner = ?", (kind, owner)).fetchone()
    shelf = 0 if row is None else row[0]
    return [f"{shelf}x{term.encode(errors='surrogatepass').hex()}" for term in terms]
