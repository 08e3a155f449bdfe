"""The resources in the file of a SQLite log, read without a server."""

import sqlite3
from pathlib import Path

import msgspec

from gateway.ports import Resource
from gateway.storage.sqlite import StorageUnusable, explain_error, open_read_only

from .sqlite import SELECT, page

_decode = msgspec.json.Decoder(Resource).decode
MAX_READ = 10_000


def read_stored_resources(path: Path, kind: str, owner: str) -> list[Resource]:
    """The newest versions of the resources of a kind, secrets sealed; a server may be at work on the file."""
    connection = open_read_only(path)
    try:
        query, given = page(kind, owner, limit=MAX_READ)
        return [_decode(record) for (record,) in connection.execute(f"{SELECT} {query}", given)]
    except sqlite3.Error as error:
        raise StorageUnusable(explain_error(path, error)) from None
    finally:
        connection.close()
