"""Numbers that outlive the server: how many there are of something, or which number comes next."""

import sqlite3


def counted(file: sqlite3.Connection, name: str, change: int = 0) -> int:
    """The number after the change; one that nobody has changed yet is zero."""
    if change == 0:
        row = file.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    else:
        row = file.execute(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value "
            "RETURNING value",
            (name, change),
        ).fetchone()
    return 0 if row is None else int(row[0])
