"""What GET …/messages answers with, for records that a test made."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

import gateway.model as m
from adapters.blade.server.history import messages_body
from gateway.http import dumps
from tests.simulation import simulated
from tests.support.dialect_tables import table


def listed_messages(records: Sequence[m.Record]) -> Any:
    return simulated(_listed(records))


async def _listed(records: Sequence[m.Record]) -> Any:
    return orjson.loads(dumps(await messages_body(table("blade"), _pages(records))))


async def _pages(records: Sequence[m.Record]) -> AsyncIterator[Sequence[m.Record]]:
    """Two pages, as the log has them."""
    half = len(records) // 2
    for page in (records[:half], records[half:]):
        yield page
