"""Packs a session into a ZIP with its records, its files and a manifest; and reads such a ZIP, whoever made it.

The addresses that a client named in the records of a session: asked before records from elsewhere are taken over.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import orjson
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Invalid, TooLarge
from gateway.field_errors import describe_struct_error
from gateway.json_values import MAX_JSON_ITEMS, JsonLimitExceeded, JsonObject, read_json

from .workspaces import Workspace

FORMAT, VERSION = "dragoman.session", 1
MANIFEST, RECORDS, FILES = "manifest.json", "records.jsonl", "workspace/"
MAX_MANIFEST, MAX_RECORDS, MAX_ENTRIES = 64 * 1024, 32 * 1024 * 1024, 10_002
MAX_LINES, MAX_ITEMS = 500_000, 2 * MAX_JSON_ITEMS
"""How many records a ZIP may have, and how many items each record may have."""
MAX_DIRECTORY = 512 * MAX_ENTRIES
"""How many bytes the list of the entries may have."""
ROOM, RATIO = 16 * 1024 * 1024, 20
"""So many bytes all files together may have, and so many more for each byte of the ZIP."""
CHUNK = 1024 * 1024
LAST, END, END_OF_LARGE = 65_536 + 22, b"PK\5\6", b"PK\6\7"
"""Where the end of a ZIP begins at the latest, and with what; a ZIP of more than 4 GB has another end before that."""
WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the ZIP, and which version of the model can read it."""

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
def pack_session(draft: Path, records: Sequence[m.Record], workspace: Workspace, now: float) -> None:
    """Write the ZIP without secrets, up to the last turn that has ended."""
    records = [m.with_secrets(record, _nothing) for record in _whole(records)]
    created = records[0].event
    assert isinstance(created, m.SessionCreated)
    titles = (record.event.title for record in reversed(records) if isinstance(record.event, m.SessionUpdated))
    manifest = ArchiveManifest(
        format=FORMAT, version=VERSION, model_version=m.MODEL_VERSION, session_id=records[0].session_id,
        agent=created.agent, title=next((title for title in titles if title is not None), created.title),
        exported_at=now, records=len(records),
    )
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        archive.writestr(RECORDS, b"".join(m.encode_record(record) + b"\n" for record in records))
        for path in workspace.paths():
            archive.write(workspace.file(path), FILES + path)


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
def unpack_session(file: Path, keep: str) -> SessionArchive:
    """Read the ZIP; raises `Invalid`. Of the private metadata of dialects, only that of `keep` is read."""
    with _opened(file) as archive:
        names = _checked(archive)
        manifest = _manifest(_read(archive, MANIFEST, MAX_MANIFEST))
        written = _read(archive, RECORDS, MAX_RECORDS)
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


def unpack_session_files(file: Path, workspace: Workspace) -> None:
    """Unpack the files, each within the limits of the workspace, and all within the limit of the ZIP."""
    room = _room(file)
    with _opened(file) as archive:
        for name in _checked(archive):
            if name.startswith(FILES):
                path = name.removeprefix(FILES)
                room -= workspace.file(workspace.fill(path, _chunks(archive, name, room))).stat().st_size


def _room(file: Path) -> int:
    """How many bytes the files of a ZIP may have: a small ZIP does not become a large workspace."""
    return ROOM + RATIO * file.stat().st_size


def _opened(file: Path) -> zipfile.ZipFile:
    try:
        _check_directory(file)
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        raise Invalid("the file is not a ZIP") from None


def _check_directory(file: Path) -> None:
    """Refuse a list of entries that is too long, before it is read: every entry takes a kilobyte of memory."""
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - LAST))
        last = opened.read(LAST)
    at = last.rfind(END)
    if at < 0:
        raise ValueError("it has no end")
    [size] = struct.unpack_from("<L", last, at + 12)
    if size > MAX_DIRECTORY or last[max(0, at - 20):at].startswith(END_OF_LARGE):
        raise TooLarge(f"the ZIP has more than {MAX_ENTRIES} entries")


def _checked(archive: zipfile.ZipFile) -> list[str]:
    """The names of the entries, if all of them are such as `pack` makes."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    names = [entry.filename for entry in entries]
    if len(archive.infolist()) > MAX_ENTRIES:
        raise TooLarge(f"the ZIP has more than {MAX_ENTRIES} entries")
    if len(set(names)) != len(names) or not {MANIFEST, RECORDS} <= set(names):
        raise Invalid(f"the ZIP has no {MANIFEST} or no {RECORDS}, or has something twice")
    for entry in entries:
        if entry.filename not in (MANIFEST, RECORDS) and not entry.filename.startswith(FILES):
            raise Invalid(f"{entry.filename[:80]!r} has no place in a session")
        if entry.flag_bits & 0x1 or entry.compress_type not in WAYS or stat.S_ISLNK(entry.external_attr >> 16):
            raise Invalid(f"{entry.filename[:80]!r} is encrypted, a link, or packed in an unknown way")
    return names


def _read(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """One entry; never more than so many bytes, whatever the ZIP says of itself."""
    try:
        with archive.open(name) as opened:
            content = opened.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise Invalid(f"{name[:80]!r} cannot be unpacked: {error}") from None
    if len(content) > most:
        raise TooLarge(f"{name[:80]!r} is larger than {most} bytes")
    return content


def _chunks(archive: zipfile.ZipFile, name: str, most: int) -> Iterator[bytes]:
    """One entry, a chunk at a time; never more than so many bytes, whatever the ZIP says of itself."""
    size = 0
    try:
        with archive.open(name) as opened:
            while chunk := opened.read(CHUNK):
                size += len(chunk)
                if size > most:
                    raise TooLarge(f"{name[:80]!r} becomes more than a ZIP of this size may")
                yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise Invalid(f"{name[:80]!r} cannot be unpacked: {error}") from None


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


def _record(number: int, line: bytes, manifest: ArchiveManifest) -> m.Record:
    try:
        read_json(line, MAX_ITEMS)
        record = m.decode_record(line)
    except JsonLimitExceeded as error:
        raise Invalid(f"{RECORDS}: line {number}: {error}") from None
    except orjson.JSONDecodeError as error:
        raise Invalid(f"{RECORDS}: line {number} is not JSON: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{RECORDS}: line {number} is no record: {describe_struct_error(error)}") from None
    if record.session_id != manifest.session_id:
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
