"""The keys of a data folder, as the commands use them."""

from pathlib import Path

from gateway.resources import KeyStore
from gateway.storage.resources import SqliteKeyTable


def key_store(folder: Path) -> KeyStore:
    return KeyStore(SqliteKeyTable(folder / "dragoman.db"), folder)
