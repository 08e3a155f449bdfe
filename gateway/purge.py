"""Purging what is stored: what the rules do not keep, or everything of one user.

A data folder is purged while no server uses it, a Redis beside the servers that share it: the command is one more
server for a while, and has sessions deleted by the servers that write them.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from gateway.config import Config, RetentionSettings
from gateway.errors import Conflict, Invalid, NotFound
from gateway.ports import FileContent, Resource
from gateway.private_files import make_private_folder, private_opener
from gateway.resources import Expired, ExpiredThings
from gateway.storage.log import export_header, export_records

from .app import Gateway
from .composition import load_components
from .storage_factory import make_owner_traces, make_seal

PAGE = 200
FILE = "file"
ROUNDS = 3
"""How often a user is erased who makes new things meanwhile."""
NOTICE_SECONDS = 2.0
"""How long running servers take at most to notice that keys were removed; they look several times a second."""


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[Gateway]:
    """The parts of a server that does not serve; raises `StorageUnusable` if another process uses the data folder."""
    if not config.data.is_dir():
        raise NotFound(f"there is no folder {config.data}; name the data folder of the servers with --data")
    await make_owner_traces(config).check_data()
    gateway = Gateway(load_components(config))
    try:
        await gateway.runtime.log.open()
        await gateway.sessions.join()
        yield gateway
    finally:
        await gateway.close()


async def delete_expired(config: Config, rules: RetentionSettings, *, is_dry: bool) -> list[Expired]:
    """Delete the sessions and files that the rules do not keep, unless it is a dry run; return them."""
    async with opened(config) as gateway:
        found = ExpiredThings(gateway.runtime.log, gateway.resources, gateway.clock)
        gone = [one async for one in found.sessions(rules)] + [one async for one in found.files(rules)]
        heads = {head.session_id for head in await gateway.runtime.log.sessions_in_turn()}
        gone = [one for one in gone if one.id not in heads]
        return gone if is_dry else [one for one in gone if await gateway.retention.delete(one)]


class UserPurge:
    """Everything of one user: counted, exported, and erased."""

    def __init__(self, config: Config, user: str) -> None:
        self._config = config
        self._user = user
        self._traces = make_owner_traces(config)

    async def counts(self) -> dict[str, int]:
        """How much there is of each kind."""
        async with opened(self._config) as gateway:
            resources = await self._resources(gateway)
            await self._check_files(gateway, resources)
            counted = {"session": len(await self._session_ids(gateway))}
            for one in resources:
                counted[one.kind] = counted.get(one.kind, 0) + 1
            await gateway.keys.open()
            counted["key"] = len(await gateway.keys.of(self._user))
        counted["stored response"] = await self._traces.count_responses(self._user)
        return {kind: number for kind, number in counted.items() if number}

    async def _check_files(self, gateway: Gateway, resources: list[Resource]) -> None:
        """Raise `Conflict` if the user has files, and not one of them is where the settings say."""
        files = [one.resource_id for one in resources if one.kind == FILE]
        for name in files:
            with suppress(NotFound):
                await gateway.files.open(name)
                return
        if files:
            folder = self._config.files_folder
            where = self._config.files if folder is None else str(folder / "files")
            raise Conflict(
                f"'{self._user}' has {len(files)} files, and {where} has none of them; name the data folder that the "
                "servers share with --data (if the files are lost, delete them over the API first)")

    async def export(self, folder: Path) -> None:
        """Write sessions.jsonl, resources.jsonl, and the folders `files` and `workspaces`; secrets stay sealed."""
        if folder.exists():  # noqa: ASYNC240  # a command has nobody else to serve
            raise Invalid(f"{folder} is there already; name a new folder")
        seal = make_seal(self._config)
        async with opened(self._config) as gateway:
            make_private_folder(folder)
            resources, ids = await self._resources(gateway), await self._session_ids(gateway)
            with _new_file(folder / "resources.jsonl") as file:
                for one in resources:
                    for version in await gateway.resources.versions(one.kind, self._user, one.resource_id):
                        file.write(msgspec.json.encode(replace(version, secrets=seal.seal(version.secrets))) + b"\n")
            with _new_file(folder / "sessions.jsonl") as file:
                file.write(export_header())
                for session_id in ids:
                    after = 0
                    while page := await gateway.runtime.log.read(session_id, after, PAGE):
                        file.write(export_records(page, seal))
                        after = page[-1].seq
            for one in resources:
                if one.kind == FILE:
                    with suppress(NotFound):  # its bytes are lost, or the user has deleted it meanwhile
                        await _copy(await gateway.files.open(one.resource_id), folder / "files" / one.resource_id)
            for session_id in ids:
                space = gateway.workspaces.of(session_id)
                for path in await space.paths():
                    with suppress(NotFound):
                        await _copy(await space.open(path), folder / "workspaces" / session_id / path)

    async def erase(self) -> bool:
        """Delete everything of the user; return whether the database was written anew, so that no remains are in it.

        Raises `Conflict` if the user makes new things meanwhile.
        """
        for _ in range(ROUNDS):
            async with opened(self._config) as gateway:
                await self._remove_keys(gateway)
                await self._delete_all(gateway)
            if await self._traces.erase(self._user):
                return await self._traces.rewrite_file()
        raise Conflict(f"'{self._user}' makes new sessions or other things meanwhile: take the user's access away, "
                       "then erase the user again")

    async def _remove_keys(self, gateway: Gateway) -> None:
        """Remove the keys first, and wait until running servers have noticed."""
        await gateway.keys.open()
        keys = await gateway.keys.of(self._user)
        for key in keys:
            with suppress(NotFound):  # it was removed with the key that made it
                await gateway.keys.remove(key.name)
        if keys and "://" in self._config.log:
            await asyncio.sleep(NOTICE_SECONDS)

    async def _delete_all(self, gateway: Gateway) -> None:
        for session_id in await self._session_ids(gateway):
            with suppress(NotFound):  # the user has deleted it meanwhile
                await gateway.sessions.delete(self._user, session_id)
        for one in await self._resources(gateway):
            with suppress(NotFound):  # it was deleted with what it belongs to
                await gateway.resources.delete(one.kind, self._user, one.resource_id)
            if one.kind == FILE:
                await gateway.files.remove(one.resource_id)
        gateway.audit.write("user.erased", None, self._user)

    async def _session_ids(self, gateway: Gateway) -> list[str]:
        found, after = list[str](), 0
        while heads := await gateway.runtime.log.sessions(self._user, after=after, limit=PAGE, oldest_first=True):
            found += [head.session_id for head in heads]
            after = heads[-1].ordinal
        return found

    async def _resources(self, gateway: Gateway) -> list[Resource]:
        found = list[Resource]()
        for kind in sorted((await gateway.resources.owners()).get(self._user, ())):
            after = 0
            while page := await gateway.resources.list(
                kind, self._user, after=after, limit=PAGE, archived=True, oldest_first=True,
            ):
                found += page
                after = page[-1].ordinal
        return found


def _new_file(path: Path) -> BinaryIO:
    return open(path, "wb", opener=private_opener)


async def _copy(content: FileContent, target: Path) -> None:
    make_private_folder(target.parent)
    with _new_file(target) as file:
        async for chunk in content.read(0, content.size):
            file.write(chunk)
    os.utime(target, (content.changed_at, content.changed_at))
