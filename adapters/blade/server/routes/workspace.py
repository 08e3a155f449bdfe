"""Blade's files of a session: list, read, write, upload, rename, copy and pack."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
from aiohttp import web

import gateway.model as m
from adapters.blade.server import views
from adapters.blade.wire import FILES_CHANGED, BladeSettings, CopyRequest, FileContent, RenameFile
from gateway.errors import DISK_FULL, Conflict, GatewayError, Invalid, is_disk_full
from gateway.http import (
    FORM,
    OWNER,
    Answers,
    Context,
    Row,
    attachment,
    guess_media_type,
    json_response,
    read_json,
    receive_files,
)
from gateway.ports import Workspace
from gateway.resources import pack_entries, workspace_entries

MAX_UPLOADED_FILES = 256
"""How many files one upload may have, and the name of their field."""


def workspace_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
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
    """The routes of workspaces, one method each."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context

    @Answers([("file", "folder")])
    async def listed(self, request: web.Request) -> web.Response:
        space, path = await self._space(request), _path(request)
        return json_response(
            [views.item_body(self.context.table, item, path) for item in await space.items(path)]
        )

    @Answers(media_type="*/*")
    async def get(self, request: web.Request) -> web.StreamResponse:
        space = await self._space(request)
        path = _path(request)
        name = path.rpartition("/")[2]
        return await attachment(request, await space.open(path), name, guess_media_type(None, name))

    @Answers("file.written", reads=FileContent)
    async def put(self, request: web.Request) -> web.Response:
        space, body = await self._space(request, changing=True), await read_json(request, FileContent)
        path = await space.write(_path(request), body.content.encode())
        return await self._changed(request, path, "file.written")

    @Answers("deleted")
    async def delete(self, request: web.Request) -> web.Response:
        space, path = await self._space(request, changing=True), _path(request)
        await space.remove(path)
        return await self._changed(request, path, "deleted")

    @Answers("file.path", reads=RenameFile)
    async def rename(self, request: web.Request) -> web.Response:
        space, body = await self._space(request, changing=True), await read_json(request, RenameFile)
        return await self._changed(request, await space.rename(_path(request), body.new_name), "file.path")

    @Answers("file.path", reads=CopyRequest, may_be_empty=True)
    async def copy(self, request: web.Request) -> web.Response:
        space = await self._space(request, changing=True)
        body = await read_json(request, CopyRequest) if request.can_read_body else CopyRequest()
        return await self._changed(request, await space.copy(_path(request), body.destination), "file.path")

    @Answers(media_type="application/zip")
    async def download(self, request: web.Request) -> web.StreamResponse:
        space, path = await self._space(request), _path(request)
        packed = await space.pack(pack_entries(workspace_entries(space, path)))
        name = f"{Path(path).name or request.match_info['id']}.zip"
        return await attachment(request, packed, name, "application/zip")

    @Answers(Row("files.uploaded", failed=["file.refused"]), reads_type=FORM)
    async def upload(self, request: web.Request) -> web.Response:
        space, drafts = await self._space(request, changing=True), list[str]()

        async def store(chunks: AsyncIterator[bytes]) -> None:
            drafts.append(await space.receive(chunks))

        try:
            fields, stored = await receive_files(request, store, most=MAX_UPLOADED_FILES)
            paths = _target_paths(fields.get("paths"), [name for name, _ in stored])
            taken, refused = await _store_drafts(space, _path(request), paths, drafts)
        finally:
            for draft in drafts:
                await space.discard(draft)
        return await self._uploaded(request, taken, refused)

    async def _uploaded(
        self, request: web.Request, taken: list[str], refused: list[tuple[str, str]],
    ) -> web.Response:
        if taken:
            await self._tell(request, taken[0] if len(taken) == 1 else None)
        return json_response(self.context.table.object("files.uploaded", uploaded=taken, failed=[
            self.context.table.object("file.refused", path=path, error=error) for path, error in refused
        ]))

    # -- whose files, and who learns of a change ------------------------------------------------------------------

    async def _space(self, request: web.Request, *, changing: bool = False) -> Workspace:
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        if changing and view.closed is not None:
            raise Conflict(f"the session is {view.closed}")
        return self.context.workspaces.of(view.session_id)

    async def _changed(self, request: web.Request, path: str, answer: str) -> web.Response:
        await self._tell(request, path)
        return json_response(self.context.table.object(answer, path=path))

    async def _tell(self, request: web.Request, path: str | None) -> None:
        event = m.CustomEvent(topic=FILES_CHANGED, payload={"file_path": path})
        await self.context.sessions.post_event(request[OWNER], request.match_info["id"], event)


def _path(request: web.Request) -> str:
    return request.match_info.get("path") or "."


def _target_paths(target: str | None, names: list[str]) -> list[str]:
    """The path of each file: from `paths`, or the name in the form."""
    try:
        paths = names if target is None else orjson.loads(target)
    except orjson.JSONDecodeError:
        raise Invalid("paths: not JSON", param="paths") from None
    if not names or not isinstance(paths, list) or len(paths) != len(names) or not all(map(_is_path, paths)):
        raise Invalid("paths: as many paths as there are files, and at least one", param="paths")
    return paths


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value != ""


async def _store_drafts(
    space: Workspace, folder: str, paths: list[str], drafts: list[str],
) -> tuple[list[str], list[tuple[str, str]]]:
    """Store each file by itself: one that fails does not stop the others."""
    taken, refused = list[str](), list[tuple[str, str]]()
    for path, draft in zip(paths, drafts, strict=True):
        try:
            taken.append(await space.take(draft, path if path.startswith("/") else f"{folder}/{path}"))
        except GatewayError as error:
            refused.append((path, error.message))
        except OSError as error:
            if not is_disk_full(error):
                raise
            refused.append((path, DISK_FULL))
    return taken, refused

