"""The operations that say something to a session: canonical commands, and files for messages."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

import gateway.model as m
from gateway.errors import Invalid
from gateway.field_errors import describe_struct_error
from gateway.http import OWNER, attachment, json_response, read_json_object, receive_form
from gateway.resources import create_file_resource

from .operations import ConsoleServices, Operation

FILE = "file"
MAX_COMMANDS = 64
ConsoleCommand = (
    m.SendMessage | m.AnswerQuestion | m.DecidePermission | m.ReturnResult | m.ContinueTurn | m.RollBack | m.Withdraw
    | m.Interrupt | m.Compact
)
SENT_PARTS = (m.TextPart, m.ImagePart, m.FilePart)
"""What a person may send; the other parts are what agents say."""
S = TypeVar("S", bound=Struct)


class CommandList(Struct, frozen=True):
    """Canonical commands, accepted or refused together."""

    commands: tuple[ConsoleCommand, ...]


class CommandReceipt(Struct, kw_only=True):
    """What became of the commands: their turn, whether it was started or resumed, and their records."""

    turn_id: str | None
    begun: bool
    after: int
    """The record after which the turn's stream begins."""
    records: list[int]


async def read_struct(request: web.Request, kind: type[S]) -> S:
    """The body as a struct of the model; raises `Invalid`, which names the member."""
    body = await read_json_object(request)
    try:
        return msgspec.convert(body, kind, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid(describe_struct_error(error)) from None


class CommandRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="POST", path="/sessions/{id}/commands", handler=self.submit, body=CommandList,
                      answer=CommandReceipt, status=202,
                      summary="Send canonical commands: a message, the answer to an ask, an interrupt."),
            Operation(method="POST", path="/files", handler=self.upload, body_type="multipart/form-data",
                      answer=m.FilePart, status=201,
                      summary="Upload one file (the field `file` of a form); the answer is a part for a message."),
            Operation(method="GET", path="/files/{id}", handler=self.download, media_type="application/octet-stream",
                      summary="Download a file that was uploaded."),
        ]

    async def submit(self, request: web.Request) -> web.Response:
        given = (await read_struct(request, CommandList)).commands
        if not 0 < len(given) <= MAX_COMMANDS:
            raise Invalid(f"commands: send 1 to {MAX_COMMANDS} commands", param="commands")
        await self._check_parts(request[OWNER], given)
        done = await self._services.sessions.submit(request[OWNER], request.match_info["id"], given)
        return json_response(CommandReceipt(
            turn_id=done.turn_id, begun=done.begun, after=done.after, records=[record.seq for record in done.records],
        ), 202)

    async def _check_parts(self, owner: str, commands: Sequence[ConsoleCommand]) -> None:
        """Refuse parts that people do not send, addresses that clients may not name, and files of others."""
        named = list[tuple[str, str]]()
        for place, part in _parts(commands):
            if not isinstance(part, SENT_PARTS):
                raise Invalid(f"{place}: a person sends text, images and files", param=place)
            url = part.url if isinstance(part, m.ImagePart | m.FilePart) else None
            if url is not None and not url.startswith("data:"):
                named.append((place, url))
            if isinstance(part, m.FilePart) and part.file_id is not None:
                await self._services.resources.get(FILE, owner, part.file_id)
        if named:
            await self._services.addresses().check_resolved(named)

    async def upload(self, request: web.Request) -> web.Response:
        files, owner = self._services.files, request[OWNER]
        form, stored = await receive_form(request, files)
        body = {"name": form.name, "media_type": form.media_type}
        made = await create_file_resource(files, self._services.resources, owner, stored, body)
        return json_response(m.FilePart(
            name=form.name, file_id=made.resource_id, media_type=form.media_type, size=stored.size), 201)

    async def download(self, request: web.Request) -> web.StreamResponse:
        found = await self._services.resources.get(FILE, request[OWNER], request.match_info["id"])
        content = await self._services.files.open(found.resource_id)
        return await attachment(request, content, str(found.body["name"]), str(found.body["media_type"]))


def _parts(commands: Sequence[ConsoleCommand]) -> Iterator[tuple[str, m.AnyPart]]:
    """Every part that the commands carry, with its path."""
    for number, command in enumerate(commands):
        for name in ("content", "said"):
            for at, part in enumerate(m.parts_of(getattr(command, name, ""))):
                yield f"commands.{number}.{name}.{at}", part
        if isinstance(command, m.SendMessage) and command.results:
            raise Invalid(f"commands.{number}.results: results of an earlier history are not sent here",
                          param="results")
