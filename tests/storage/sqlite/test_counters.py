"""Numbers that outlive the server: they begin at zero, go both ways, and go back with what goes back."""

from pathlib import Path

import pytest

from gateway.storage import Database
from gateway.storage.sqlite.schema import add_to_counter


async def test_a_number_is_there_after_the_server_comes_back(tmp_path: Path) -> None:
    for before in (0, 3):
        database = Database(tmp_path / "dragoman.db")
        await database.open()
        assert await database.write(lambda file: add_to_counter(file, "n")) == before
        assert await database.write(lambda file: add_to_counter(file, "n", 5)) == before + 5
        assert await database.write(lambda file: add_to_counter(file, "n", -2)) == before + 3
        assert await database.write(lambda file: add_to_counter(file, "other")) == 0
        await database.close()


async def test_what_is_refused_does_not_count(tmp_path: Path) -> None:
    def refuse(file: object) -> None:
        add_to_counter(file, "n", 1)  # type: ignore[arg-type]
        raise ValueError("no")

    database = Database(tmp_path / "dragoman.db")
    await database.open()
    with pytest.raises(ValueError, match="no"):
        await database.write(refuse)
    assert await database.read(lambda file: add_to_counter(file, "n")) == 0
    await database.close()
