"""Purging a data folder while no server uses it: what the rules do not keep, or everything of one user."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gateway.config import Config, RetentionSettings
from gateway.errors import Invalid, NotFound
from gateway.ports import Resource
from gateway.private_files import make_private_folder, private_opener
from gateway.resources import Expired, ExpiredThings
from gateway.storage.log import erase_traces, export_sessions

from .app import Gateway
from .composition import load_components
from .storage_factory import database_path, make_seal

PAGE = 200
FILE = "file"


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[Gateway]:
    """The parts of a server that does not serve; raises `StorageUnusable` if another process uses the folder."""
    gateway = Gateway(load_components(config))
    try:
        await gateway.runtime.log.open()
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
        for one in gone if not is_dry else ():
            if one.kind == FILE:
                await _delete_resource(gateway, one.owner, FILE, one.id)
            else:
                await gateway.sessions.delete(one.owner, one.id)
            gateway.audit.write(f"{one.kind}.deleted", None, one.id)
        return gone


class UserPurge:
    """Everything of one user: counted, exported, and erased."""

    def __init__(self, config: Config, user: str) -> None:
        self._config = config
        self._user = user

    async def counts(self) -> dict[str, int]:
        """How much there is of each kind."""
        async with opened(self._config) as gateway:
            counted = {"session": len(await self._session_ids(gateway))}
            for one in await self._resources(gateway):
                counted[one.kind] = counted.get(one.kind, 0) + 1
            await gateway.keys.open()
            counted["key"] = len(await gateway.keys.of(self._user))
        return {kind: number for kind, number in counted.items() if number}

    def export(self, folder: Path) -> None:
        """Write sessions.jsonl, resources.jsonl, and the folders `files` and `workspaces`; secrets stay sealed."""
        if folder.exists():
            raise Invalid(f"{folder} is there already; name a new folder")
        config, seal = self._config, make_seal(self._config)
        ids, versions = asyncio.run(self._everything())
        make_private_folder(folder)
        with open(folder / "resources.jsonl", "wb", opener=private_opener) as file:
            for one in versions:
                file.write(msgspec.json.encode(replace(one, secrets=seal.seal(one.secrets))) + b"\n")
        with open(folder / "sessions.jsonl", "wb", opener=private_opener) as file:
            file.writelines(export_sessions(database_path(config), ids, seal=seal) if ids else ())
        _copy(config.data / "files", folder / "files", {one.resource_id for one in versions if one.kind == FILE})
        _copy(config.data / "workspaces", folder / "workspaces", ids)

    async def _everything(self) -> tuple[list[str], list[Resource]]:
        """The ids of the sessions, and all versions of the resources."""
        async with opened(self._config) as gateway:
            versions = [
                version for one in await self._resources(gateway)
                for version in await gateway.resources.versions(one.kind, self._user, one.resource_id)]
            return await self._session_ids(gateway), versions

    async def erase(self) -> None:
        """Delete everything of the user, then write the database anew, so that no remains are in it."""
        async with opened(self._config) as gateway:
            await gateway.keys.open()
            for key in await gateway.keys.of(self._user):
                with suppress(NotFound):  # it was removed with the key that made it
                    await gateway.keys.remove(key.name)
            for session_id in await self._session_ids(gateway):
                await gateway.sessions.delete(self._user, session_id)
            for one in await self._resources(gateway):
                await _delete_resource(gateway, self._user, one.kind, one.resource_id)
            gateway.audit.write("user.erased", None, self._user)
        erase_traces(database_path(self._config), self._user)

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


async def _delete_resource(gateway: Gateway, owner: str, kind: str, resource_id: str) -> None:
    with suppress(NotFound):  # it was deleted with what it belongs to
        await gateway.resources.delete(kind, owner, resource_id)
    if kind == FILE:
        await gateway.files.remove(resource_id)


def _copy(source: Path, target: Path, names: Iterable[str]) -> None:
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, symlinks=True)
        elif (source / name).is_file():
            make_private_folder(target)
            shutil.copy2(source / name, target / name)
