"""Reads what a Blade server shows beside sessions: memories and scheduled tasks."""

from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

from pydantic import BaseModel

from adapters.blade.wire import MEMORY_FIELDS, NewMemory, NewTask
from gateway.client import PAGE, members, parse_timestamp, require_objects
from gateway.errors import BackendFailed, Invalid, NotFound
from gateway.http import validate
from gateway.json_values import JsonObject
from gateway.ports import PastResource, RemoteAddress, ResourceGroup

from .readers import read
from .remote import connect_api

RUNS = "runs; whether it is on: it is off here until somebody starts it, so that it does not run twice"
New = TypeVar("New", bound=BaseModel)


class PastResources:
    """See `gateway.ports.PastResources`. A key sees what is its user's."""

    unseen: Mapping[ResourceGroup, str] = {
        ResourceGroup.AGENTS: "Blade has no agents that users make",
        ResourceGroup.MEMORIES: "ids and times of memories, and how often they were used",
        ResourceGroup.FILES: "files of workspaces, which belong to sessions",
        ResourceGroup.SCHEDULES: RUNS,
    }

    def __init__(self, address: RemoteAddress, user: str = "") -> None:
        self._api = connect_api(address)

    async def read(self, group: ResourceGroup) -> AsyncIterator[PastResource]:
        if group is ResourceGroup.MEMORIES:
            for row in reversed(await self._memories()):
                yield _memory(row)
        elif group is ResourceGroup.SCHEDULES:
            for row in require_objects(await self._api.json("GET", "/scheduled-tasks"), "scheduled tasks"):
                yield _task(row)

    async def _memories(self) -> list[JsonObject]:
        """All memories, newest first."""
        found = list[JsonObject]()
        while True:
            query = {"limit": str(PAGE), "offset": str(len(found)), "status": "all"}
            listed = read("memories", members(await self._api.json("GET", "/memories", query=query)))
            rows = require_objects(listed["items"], "memories")
            found += rows
            if len(rows) < PAGE:
                return found

    async def content(self, file_id: str) -> AsyncIterator[bytes]:
        raise NotFound(f"there is no file '{file_id}'")
        yield b""

    async def close(self) -> None:
        await self._api.close()


def _memory(row: JsonObject) -> PastResource:
    new = _read_as(NewMemory, row)
    body = {MEMORY_FIELDS.get(name, name): value for name, value in new.model_dump(exclude_none=True).items()}
    body["disabled"] = bool(row.get("disabled"))
    return PastResource(kind="note", resource_id=str(row.get("id")), body=body)


def _task(row: JsonObject) -> PastResource:
    new = _read_as(NewTask, row)
    return PastResource(kind="task", resource_id=str(row.get("id")), unseen=(RUNS,), body={
        "title": new.title, "prompt": new.prompt, "cron": new.cron, "timezone": new.timezone, "enabled": False,
        "unattended": new.skip_confirmations, "model": new.model, "expires_at": parse_timestamp(new.expires_at),
    })


def _read_as(model: type[New], row: JsonObject) -> New:
    """What a client would have sent to make this."""
    fields = {name: row[name] for name in model.model_fields if row.get(name) is not None}
    try:
        return validate(model, fields)
    except Invalid as error:
        raise BackendFailed(f"'{row.get('id')}' of the server cannot be understood: {error.message}") from None
