"""Files and repositories that are mounted into a session: check, store and show them."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from adapters.cas.wire import CasSettings, FileMount, MemoryMount, RepositoryMount
from gateway.errors import Conflict, Invalid, NotFound
from gateway.http import Context, validate
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import DialectTable, Resource

from .session_setup import check_file, check_memory_store

MOUNT_KIND, MOUNT_PREFIX = "session_resource", "sesr"
MOUNT_ROOT = "/data"
SCHEMES = ("https", "http")
MAX_PATH, MAX_MOUNTS = 512, 100_000
"""How long a path may be, and more than a session can have."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One resource as it is stored."""

    body: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict, repr=False)


async def checked_mount(context: Context[CasSettings], owner: str, given: JsonObject, at: str = "") -> Mount:
    """The resource that a client describes; `at` is its place in the body."""
    kind = given.get("type", "file")
    if kind == "file":
        return await _file(context, owner, validate(FileMount, given, at), at)
    if kind == "github_repository":
        body = validate(RepositoryMount, given, at)
        mount = _repository(body, at)
        context.addresses.check(body.url, f"{at}.url" if at else "url")
        return mount
    if kind == "memory_store":
        return await _memory(context, owner, validate(MemoryMount, given, at), at)
    raise _refusal(at, "type", f"'{kind}' is none of 'file', 'github_repository' and 'memory_store'")


async def _file(context: Context[CasSettings], owner: str, body: FileMount, at: str) -> Mount:
    named = {"path": body.path, "mount_path": body.mount_path}
    paths = [normalized_path(given, at, word) for word, given in named.items() if given is not None]
    if len(set(paths)) > 1:
        raise _refusal(at, "mount_path", f"it is another word for path, and the two differ: {' and '.join(paths)}")
    path = paths[0] if paths else normalized_path(body.file_id, at)
    try:
        await check_file(context, owner, body.file_id)
    except Invalid as error:
        raise _refusal(at, "file_id", error.message) from None
    return Mount({"type": "file", "file_id": body.file_id, "path": path})


def normalized_path(given: str, at: str = "", word: str = "path") -> str:
    """An absolute path under `/data/`; a relative one is taken from there."""
    if not given or not given.isprintable():
        raise _refusal(at, word, "a path of printable characters is needed")
    path = posixpath.normpath("/" + posixpath.join(MOUNT_ROOT, given).lstrip("/"))
    if not path.startswith(f"{MOUNT_ROOT}/"):
        raise _refusal(at, word, f"it must lie under {MOUNT_ROOT}/")
    if len(path) > MAX_PATH:
        raise _refusal(at, word, f"it may have {MAX_PATH} characters at most")
    return path


async def _memory(context: Context[CasSettings], owner: str, body: MemoryMount, at: str) -> Mount:
    try:
        await check_memory_store(context, owner, body.memory_store_id)
    except Invalid as error:
        raise _refusal(at, "memory_store_id", error.message) from None
    return Mount(body.model_dump())


def _repository(fields: RepositoryMount, at: str) -> Mount:
    """The credentials of an address are stored as its token; no address is shown with them."""
    try:
        url = urlsplit(fields.url)
        has_host = bool(url.hostname) and url.port != 0
    except ValueError:
        has_host = False
    if not has_host or url.scheme not in SCHEMES or re.search(r"[^!-~]", fields.url):
        raise _refusal(at, "url", "the address of a repository is needed, such as https://host/owner/name")
    given = fields.authorization_token.get_secret_value() if fields.authorization_token else None
    token = given or unquote(url.password or url.username or "")
    shown = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
    body = {"type": fields.type, "url": shown, "mount_path": fields.mount_path, "checkout": fields.checkout}
    return Mount(body, {"authorization_token": token} if token else {})


def check_paths(mounts: Sequence[Mount]) -> None:
    """Refuse two files at one path."""
    taken: set[str] = set()
    for number, mount in enumerate(mounts):
        path = mount.body.get("path")
        if path in taken:
            raise _refusal(f"resources.{number}", "path", f"another file is mounted at '{path}'")
        taken |= {path} if path else set()


@dataclass(frozen=True, slots=True)
class SessionMounts:
    """The mounts of one session: each is a resource that belongs to the session."""

    context: Context[CasSettings]
    owner: str
    session_id: str

    async def all(self) -> Sequence[Resource]:
        return await self.context.resources.list(
            MOUNT_KIND, self.owner, parent=self.session_id, limit=MAX_MOUNTS, oldest_first=True,
        )

    async def get(self, mount_id: str) -> Resource:
        try:
            found = await self.context.resources.get(MOUNT_KIND, self.owner, mount_id)
        except NotFound:
            found = None
        if found is None or found.parent != self.session_id:
            raise NotFound(f"Resource '{mount_id}' was not found.")
        return found

    async def add_alone(self, mount: Mount) -> Resource:
        """Add a mount; raises `Conflict` if a file is mounted at the path of the mount already."""
        path = mount.body.get("path")
        if path is not None and any(one.body.get("path") == path for one in await self.all()):
            raise Conflict(f"path: another file is mounted at '{path}'", param="path")
        return await self.add(mount)

    async def add(self, mount: Mount) -> Resource:
        return await self.context.resources.create(
            MOUNT_KIND, self.owner, mount.body, secrets=mount.secrets, parent=self.session_id,
            resource_id=random_id(MOUNT_PREFIX),
        )

    async def renew(self, mount_id: str, token: SecretStr) -> Resource:
        found = await self.get(mount_id)
        if found.body["type"] != "github_repository":
            raise _refusal("", "authorization_token", f"a resource of type {found.body['type']} has none")
        secrets = {"authorization_token": token.get_secret_value()}
        return await self.context.resources.update(MOUNT_KIND, self.owner, mount_id, found.body, secrets=secrets)

    async def remove(self, mount_id: str) -> None:
        await self.get(mount_id)
        await self.context.resources.delete(MOUNT_KIND, self.owner, mount_id)

    async def clear(self) -> None:
        for one in await self.all():
            await self.context.resources.delete(MOUNT_KIND, self.owner, one.resource_id)


MOUNT = ("resource.file", "resource.github_repository", "resource.memory_store")
"""The shapes of what is mounted in a session."""


def mount_body(table: DialectTable, kept: Resource) -> JsonObject:
    """The body of a mount, without the mount's secrets."""
    body = {key: value for key, value in kept.body.items() if key != "type"}
    return table.object(
        f"resource.{kept.body['type']}", id=kept.resource_id, created_at=kept.created_at, updated_at=kept.updated_at,
        **body,
    )


def _refusal(at: str, word: str, why: str) -> Invalid:
    param = f"{at}.{word}" if at else word
    return Invalid(f"{param}: {why}", param=param)
