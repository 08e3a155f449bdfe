"""Packs a session into a ZIP with its records, its files and a manifest; and reads such a ZIP, whoever made it.

The addresses that a client named in the records of a session: asked before records from elsewhere are taken over.
"""

import asyncio
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

import msgspec
import orjson
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Invalid, NotFound, TooLarge
from gateway.field_errors import describe_struct_error
from gateway.json_values import MAX_JSON_ITEMS, JsonLimitExceeded, JsonObject, read_json
from gateway.ports import Workspace

from .zip_entries import ZipEntry, check_entry, entry_chunks, open_zip, read_entry

FORMAT, VERSION = "dragoman.session", 1
MANIFEST, RECORDS, FILES = "manifest.json", "records.jsonl", "workspace/"
MAX_MANIFEST, MAX_RECORDS, MAX_ENTRIES = 64 * 1024, 32 * 1024 * 1024, 10_002
PIECE = 1024 * 1024
MAX_LINES, MAX_ITEMS = 500_000, 2 * MAX_JSON_ITEMS
"""How many records a ZIP may have, and how many items each record may have."""
ROOM, RATIO = 16 * 1024 * 1024, 20
"""So many bytes all files together may have, and so many more for each byte of the ZIP."""


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the ZIP, and the version of the model of its records."""

    format: str
    version: int
    model_version: int
    session_id: str
    agent: str
    title: str | None = None
    exported_at: float = 0.0
    records: int = 0


@dataclass(frozen=True, slots=True)
class SessionArchive:
    """A session that was read from a ZIP and checked."""

    manifest: ArchiveManifest
    records: list[m.Record]
    files: list[str]
    bytes: int = 0
    """How many bytes the records and the files have, as the ZIP says; more are refused while unpacking."""


# -- in ---------------------------------------------------------------------------------------------------------------
async def session_entries(
    records: Sequence[m.Record], workspace: Workspace, now: float,
) -> AsyncIterator[ZipEntry]:
    """The entries of the ZIP: the session without secrets, up to the last turn that has ended, and its files."""
    for name, content in (await asyncio.to_thread(_written, records, now)).items():
        yield ZipEntry(name, _once(content), now)
    async for entry in workspace_entries(workspace, prefix=FILES):
        yield entry


async def workspace_entries(workspace: Workspace, folder: str = ".", prefix: str = "") -> AsyncIterator[ZipEntry]:
    """The files of a folder; one that is removed meanwhile is left out."""
    for path in await workspace.paths(folder):
        with suppress(NotFound):
            file = await workspace.open(f"{folder}/{path}")
            yield ZipEntry(prefix + path, file.read(0, file.size), file.changed_at)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE):
        yield content[start:start + PIECE]


def _written(records: Sequence[m.Record], now: float) -> dict[str, bytes]:
    """The manifest and the records."""
    records = [m.with_secrets(record, _nothing) for record in _whole(records)]
    created = records[0].event
    assert isinstance(created, m.SessionCreated)
    titles = (record.event.title for record in reversed(records) if isinstance(record.event, m.SessionUpdated))
    manifest = ArchiveManifest(
        format=FORMAT, version=VERSION, model_version=m.MODEL_VERSION, session_id=records[0].session_id,
        agent=created.agent, title=next((title for title in titles if title is not None), created.title),
        exported_at=now, records=len(records),
    )
    return {
        MANIFEST: msgspec.json.format(msgspec.json.encode(manifest), indent=2),
        RECORDS: b"".join(m.encode_record(record) + b"\n" for record in records),
    }


def _whole(records: Sequence[m.Record]) -> Sequence[m.Record]:
    """The records before the turn that still runs."""
    starts = [place for place, record in enumerate(records) if isinstance(record.event, m.TurnStarted)]
    if not starts or any(isinstance(record.event, m.TurnEnded) for record in records[starts[-1]:]):
        return records
    turn_id = records[starts[-1]].turn_id
    return records[:next(place for place, record in enumerate(records) if record.turn_id == turn_id)]


def _nothing(secrets: JsonObject) -> JsonObject:
    return {}


# -- out --------------------------------------------------------------------------------------------------------------
def unpack_session(file: BinaryIO, keep: str) -> SessionArchive:
    """Read the ZIP; raises `Invalid`. Of the private metadata of dialects, only that of `keep` is read."""
    with _opened(file) as archive:
        names = _checked(archive)
        manifest = _manifest(read_entry(archive, MANIFEST, MAX_MANIFEST))
        written = read_entry(archive, RECORDS, MAX_RECORDS)
        count = written.count(b"\n") + (not written.endswith(b"\n"))
        if count != manifest.records or count > MAX_LINES:
            raise Invalid(f"{MANIFEST} tells of {manifest.records} records, and there are {count}; {MAX_LINES} may be")
        lines = written.removesuffix(b"\n").split(b"\n")
        records = [_cleaned(_record(number, line, manifest), keep) for number, line in enumerate(lines, 1)]
        files = [name for name in names if name.startswith(FILES)]
        size = sum(archive.getinfo(name).file_size for name in files)
        if size > _room(file):
            raise TooLarge(f"the files have {size} bytes, which is more than a ZIP of this size may become")
        return SessionArchive(manifest, records, [name.removeprefix(FILES) for name in files], len(written) + size)


def read_session_lines(content: bytes) -> SessionArchive:
    """Read records, one a line, up to the last turn that has ended; raises `Invalid`.

    Of the private metadata of dialects nothing is read.
    """
    lines = [line for line in content.splitlines() if line.strip()]
    if not 0 < len(lines) <= MAX_LINES:
        raise Invalid(f"the file has {len(lines)} lines; it may have 1 to {MAX_LINES}")
    first = _record(1, lines[0], None)
    created = first.event
    if not isinstance(created, m.SessionCreated):
        raise Invalid(f"{RECORDS}: line 1 is not session.created")
    manifest = ArchiveManifest(format=FORMAT, version=VERSION, model_version=m.MODEL_VERSION,
                               session_id=first.session_id, agent=created.agent, title=created.title)
    records = [_cleaned(_record(number, line, manifest), "") for number, line in enumerate(lines, 1)]
    return SessionArchive(manifest, list(_whole(records)), [], len(content))


async def unpack_session_files(file: BinaryIO, workspace: Workspace) -> None:
    """Unpack the files, each within the limits of the workspace, and all within the limit of the ZIP."""
    room, archive = _room(file), await asyncio.to_thread(_opened, file)
    with archive:
        for name in _checked(archive):
            if name.startswith(FILES):
                counted = _Counted(entry_chunks(archive, name, room))
                await workspace.take(await workspace.receive(counted.chunks()), name.removeprefix(FILES))
                room -= counted.size


class _Counted:
    """Chunks of an entry, each unpacked in a thread, and how many bytes they have."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.size = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await asyncio.to_thread(next, self._chunks, b""):
            self.size += len(chunk)
            yield chunk


def _room(file: BinaryIO) -> int:
    """How many bytes the files of a ZIP may have: a small ZIP does not become a large workspace."""
    return ROOM + RATIO * file.seek(0, 2)


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    return open_zip(file, MAX_ENTRIES)


def _checked(archive: zipfile.ZipFile) -> list[str]:
    """The names of the entries, if all of them are such as `pack` makes."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names) or not {MANIFEST, RECORDS} <= set(names):
        raise Invalid(f"the ZIP has no {MANIFEST} or no {RECORDS}, or has something twice")
    for entry in entries:
        if entry.filename not in (MANIFEST, RECORDS) and not entry.filename.startswith(FILES):
            raise Invalid(f"{entry.filename[:80]!r} has no place in a session")
        check_entry(entry)
    return names


def _manifest(content: bytes) -> ArchiveManifest:
    try:
        manifest = msgspec.json.decode(content, type=ArchiveManifest)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{MANIFEST}: {describe_struct_error(error)}") from None
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        raise Invalid(f"{MANIFEST} is of another format: {manifest.format!r}, version {manifest.version}")
    if manifest.model_version != m.MODEL_VERSION:
        raise Invalid(f"the records are of version {manifest.model_version}; this server reads {m.MODEL_VERSION}")
    return manifest


def _record(number: int, line: bytes, manifest: ArchiveManifest | None) -> m.Record:
    try:
        read_json(line, MAX_ITEMS)
        record = m.decode_record(line)
    except JsonLimitExceeded as error:
        raise Invalid(f"{RECORDS}: line {number}: {error}") from None
    except orjson.JSONDecodeError as error:
        raise Invalid(f"{RECORDS}: line {number} is not JSON: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{RECORDS}: line {number} is not a record: {describe_struct_error(error)}") from None
    if manifest is not None and record.session_id != manifest.session_id:
        raise Invalid(f"{RECORDS}: line {number} is of another session")
    return record


def _cleaned(record: m.Record, keep: str) -> m.Record:
    """The record without secrets, and without the private metadata of other dialects."""
    record = m.with_secrets(record, _nothing)
    event = record.event
    if isinstance(event, m.SessionCreated | m.SessionUpdated) and event.metadata and m.PRIVATE in event.metadata:
        private = event.metadata[m.PRIVATE]
        own = {keep: private[keep]} if isinstance(private, dict) and isinstance(private.get(keep), dict) else {}
        return replace(record, event=replace(record.event, metadata={**event.metadata, m.PRIVATE: own}))
    return record


Named = tuple[str, str]
"""The field of an address, and the address."""


def addresses_in(records: Iterable[m.Record]) -> Iterator[Named]:
    """The addresses of images, files and MCP servers of clients, and of pages that browsers load for a tool."""
    for record in records:
        for field, url in _of_event(record.event):
            yield f"record {record.seq}: {field}", url


def _of_event(event: object) -> Iterator[Named]:
    match event:
        case m.SessionCreated(settings=settings, history=history):
            yield from _of_settings(settings)
            for message in history:
                yield from _of_content(message.content)
        case (
            m.SessionUpdated(settings=m.Settings() as settings)
            | m.InputAccepted(command=m.Configure(settings=settings))
        ):
            yield from _of_settings(settings)
        case m.InputAccepted(command=m.SendMessage(content=content, results=results)):
            yield from _of_content(content)
            for message in results:
                yield from _of_content(message.content)
        case m.InputAccepted(command=m.ReturnResult(content=content)):
            yield from _of_content(content)
        case m.ToolReturned(meta={"ui": {"resourceUri": str() as url}}):
            yield "resourceUri", url


def _of_settings(settings: m.Settings) -> Iterator[Named]:
    for number, server in enumerate(settings.mcp_servers):
        if "url" in server:
            yield f"mcp_servers.{number}.url", str(server["url"])


def _of_content(content: m.Content) -> Iterator[Named]:
    for part in m.parts_of(content):
        if isinstance(part, m.ImagePart | m.FilePart) and part.url:
            yield "url", part.url
