"""What clients bring along reaches the agent or is declared lost: pictures, files, an earlier talk, a schema."""

from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Unsupported
from gateway.model import (
    FilePart,
    ImagePart,
    InputAccepted,
    Record,
    Role,
    SeedMessage,
    SendMessage,
    SessionView,
    TextPart,
    TurnEnded,
    parts_of,
    text_of,
)
from gateway.upstream import Opening
from tests.pairs.relaying import Row, in_a_row
from tests.pairs.talking import turn
from tests.pairs.test_sixteen import declared
from tests.tables import DIALECTS, table

PICTURE = ImagePart(url="data:image/png;base64,iVBORw0KGgo=", media_type="image/png")
FILE = FilePart(name="notes.txt", url="https://files.example/notes.txt", media_type="text/plain")
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
BEFORE = (
    SeedMessage(role=Role.USER, content="My name is Ann."), SeedMessage(role=Role.ASSISTANT, content="Hello, Ann."),
)


async def arrived(row: Row, dialect: str, mark: str, command: SendMessage, opening: Opening) -> Any:
    """The session of the first gateway in which this was said, or None if the client could not say it."""
    client = row.client(dialect)
    try:
        session_id = await client.open(opening)
        await turn(client, session_id, command, settings=opening.settings)
        return await row.found(mark)
    except Unsupported:
        return None
    finally:
        await client.close()


def said(records: list[Record], mark: str) -> SendMessage:
    commands = [record.event.command for record in records if isinstance(record.event, InputAccepted)]
    return next(one for one in commands if isinstance(one, SendMessage) and mark in text_of(one.content))


def urls(command: SendMessage, kind: type) -> list[str | None]:
    return [part.url for part in parts_of(command.content) if isinstance(part, kind)]


async def brought(row: Row, dialect: str) -> set[str]:
    """The features that did not get to the agent."""
    lost = set()
    for name, part in (("images_in", PICTURE), ("files", FILE)):
        mark = f"({dialect}-{name})"
        content = (TextPart(text=f"{mark} look"), part)
        found = await arrived(row, dialect, mark, SendMessage(content=content), Opening())
        if found is None or urls(said(found[1], mark), type(part)) != [part.url]:
            lost.add(name)
    mark = f"({dialect}-seed)"
    found = await arrived(row, dialect, mark, SendMessage(content=f"{mark} hello"), Opening(history=BEFORE))
    view: SessionView = found[0]
    if [text_of(entry.content) for entry in view.entries][:2] != [text_of(seed.content) for seed in BEFORE]:
        lost.add("history_seed")
    mark = f"({dialect}-schema)"
    command = SendMessage(content=f"{mark} /json", output_schema=SCHEMA)
    found = await arrived(row, dialect, mark, command, Opening())
    ends = [record.event for record in found[1] if isinstance(record.event, TurnEnded)] if found else []
    if not ends or not isinstance(ends[0].result, dict) or "answer" not in ends[0].result:
        lost.add("structured_output")
    return lost


@pytest.mark.parametrize("second", DIALECTS)
@pytest.mark.parametrize("first", DIALECTS)
async def test_what_is_declared_lost_is_lost_and_nothing_else(tmp_path: Path, first: str, second: str) -> None:
    async with in_a_row(tmp_path, first) as row:
        lost = await brought(row, second)
    expected = declared(table(first), table(second)) & {"images_in", "files", "history_seed", "structured_output"}
    assert lost == expected
