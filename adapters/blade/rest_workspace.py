"""Blade's files of a session: listed, read, written, uploaded, renamed, copied and packed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import orjson
from aiohttp import web

from gateway.errors import FULL, Conflict, GatewayError, Invalid, is_full
from gateway.model import CustomEvent
from gateway.resources import Workspace, Workspaces
from gateway.web import OWNER, Context, attachment, media_type_of, read_as, receive_many, reply

from . import rest_views as views
from .rest_wire import CopyTo, FileContent, NewName

TOPIC = "workspace.files_changed"
MAX_FILES = 256
"""How many files one upload has, with the field that names them."""

T = TypeVar("T")


def workspace_routes(context: Context) -> list[web.RouteDef]:
    files, at = WorkspaceRoutes(context), f"{context.mount}/sessions/{{id}}"
    return [
        *(web.get(f"{at}/ls{path}", files.listed) for path in ("", "/{path:.*}")),
        web.get(f"{at}/files/{{path:.+}}", files.get),
        web.put(f"{at}/files/{{path:.+}}", files.put),
        web.delete(f"{at}/files/{{path:.+}}", files.delete),
        *(web.post(f"{at}/upload{path}", files.upload) for path in ("", "/{path:.*}")),
        web.post(f"{at}/rename/{{path:.+}}", files.rename),
        web.post(f"{at}/copy/{{path:.+}}", files.copy),
        *(web.get(f"{at}/download-dir{path}", files.download) for path in ("", "/{path:.*}")),
    ]


class WorkspaceRoutes:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.workspaces = Workspaces(context.data / "workspaces", trusted=lambda: context.trust_uploads)

    async def listed(self, request: web.Request) -> web.Response:
        space, path = await self._space(request), _path(request)
        return reply([views.item(self.house.table, item, path) for item in await _on_disk(space.items, path)])

    async def get(self, request: web.Request) -> web.StreamResponse:
        space = await self._space(request)
        file = await _on_disk(space.file, _path(request))
        return attachment(file, file.name, media_type_of(None, file.name))

    async def put(self, request: web.Request) -> web.Response:
        space, said = await self._space(request, changing=True), await read_as(request, FileContent)
        path = await _on_disk(space.write, _path(request), said.content.encode())
        return await self._changed(request, path, "file.written")

    async def delete(self, request: web.Request) -> web.Response:
        space, path = await self._space(request, changing=True), _path(request)
        await _on_disk(space.remove, path)
        return await self._changed(request, path, "deleted")

    async def rename(self, request: web.Request) -> web.Response:
        space, said = await self._space(request, changing=True), await read_as(request, NewName)
        return await self._changed(request, await _on_disk(space.rename, _path(request), said.new_name), "file.path")

    async def copy(self, request: web.Request) -> web.Response:
        space = await self._space(request, changing=True)
        said = await read_as(request, CopyTo) if request.can_read_body else CopyTo()
        return await self._changed(request, await _on_disk(space.copy, _path(request), said.destination), "file.path")

    async def download(self, request: web.Request) -> web.StreamResponse:
        space, path = await self._space(request), _path(request)
        draft = await _on_disk(space.zipped, path)
        name = f"{Path(path).name or request.match_info['id']}.zip"
        return attachment(draft, name, "application/zip", fleeting=True)

    async def upload(self, request: web.Request) -> web.Response:
        space, drafts = await self._space(request, changing=True), list[Path]()

        async def store(chunks: AsyncIterator[bytes]) -> None:
            drafts.append(await space.receive(chunks))

        try:
            fields, stored = await receive_many(request, store, most=MAX_FILES)
            paths = _named(fields.get("paths"), [name for name, _ in stored])
            taken, refused = await _on_disk(_taken, space, _path(request), paths, drafts)
        finally:
            await asyncio.to_thread(_dropped, drafts)
        return await self._uploaded(request, taken, refused)

    async def _uploaded(
        self, request: web.Request, taken: list[str], refused: list[tuple[str, str]],
    ) -> web.Response:
        if taken:
            await self._tell(request, taken[0] if len(taken) == 1 else None)
        return reply(self.house.table.object("files.uploaded", uploaded=taken, failed=[
            self.house.table.object("file.refused", path=path, error=error) for path, error in refused
        ]))

    # -- whose files, and who learns of a change ------------------------------------------------------------------

    async def _space(self, request: web.Request, *, changing: bool = False) -> Workspace:
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        if changing and view.closed is not None:
            raise Conflict(f"the session is {view.closed}")
        return self.workspaces.of(view.session_id)

    async def _changed(self, request: web.Request, path: str, answer: str) -> web.Response:
        await self._tell(request, path)
        return reply(self.house.table.object(answer, path=path))

    async def _tell(self, request: web.Request, path: str | None) -> None:
        event = CustomEvent(topic=TOPIC, payload={"file_path": path})
        await self.house.sessions.tell(request[OWNER], request.match_info["id"], event)


async def _on_disk(work: Callable[..., T], *given: Any) -> T:
    return await asyncio.to_thread(work, *given)


def _path(request: web.Request) -> str:
    return request.match_info.get("path") or "."


def _named(said: str | None, names: list[str]) -> list[str]:
    """Where each file goes: as `paths` says, or as the form calls it."""
    try:
        paths = names if said is None else orjson.loads(said)
    except orjson.JSONDecodeError:
        raise Invalid("paths: not JSON", param="paths") from None
    if not names or not isinstance(paths, list) or len(paths) != len(names) or not all(map(_is_path, paths)):
        raise Invalid("paths: as many paths as there are files, and at least one", param="paths")
    return paths


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _taken(
    space: Workspace, folder: str, paths: list[str], drafts: list[Path],
) -> tuple[list[str], list[tuple[str, str]]]:
    """Each file by itself: what cannot be taken does not keep the others out."""
    taken, refused = list[str](), list[tuple[str, str]]()
    for path, draft in zip(paths, drafts, strict=True):
        try:
            taken.append(space.take(draft, path if path.startswith("/") else f"{folder}/{path}"))
        except GatewayError as error:
            refused.append((path, error.message))
        except OSError as error:
            if not is_full(error):
                raise
            refused.append((path, FULL))
    return taken, refused


def _dropped(drafts: list[Path]) -> None:
    for draft in drafts:
        draft.unlink(missing_ok=True)
