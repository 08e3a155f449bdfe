"""The operations about examinations, for admins: start one, follow it, read its report, cancel it."""

import asyncio
import re
from typing import Annotated, Any

import orjson
from aiohttp import web
from msgspec import Struct
from pydantic import Field

from gateway.errors import Invalid, NotFound
from gateway.http import (
    CALLER,
    WireModel,
    absolute_url,
    attachment,
    bearer_token,
    json_response,
    read_bytes,
    read_json,
    safe_file_name,
    stream_sse,
)
from gateway.json_values import JsonObject
from gateway.resources import content_of

from .examination import CaseProgress, ExaminationEnd, ExaminationSubscription, Examiner, OutputLine, ShownExamination
from .operations import OCTETS, SSE, ConsoleQuery, ConsoleServices, Operation, read_query

DialectWord = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
SCHEMES = ("http://", "https://", "ws://", "wss://")


class ExaminationToStart(WireModel):
    """`url` None is this server; `cases` are names of requirements, with `*`, separated by commas."""

    dialect: DialectWord
    url: Annotated[str, Field(max_length=2000)] | None = None
    key: Annotated[str, Field(max_length=10_000)] | None = None
    cases: Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9*,_ .-]*$")] = ""


class StartedExamination(Struct, kw_only=True):
    id: str


class ExaminationList(Struct, kw_only=True):
    examinations: list[ShownExamination]


class ExaminationReport(ShownExamination, kw_only=True):
    """An examination, its report as `conform --report json` writes it, and the last lines of its output."""

    report: dict[str, Any] | None
    output: str


class ReportQuery(ConsoleQuery):
    """The name of the file, and its dialect, if the recording does not name it."""

    name: Annotated[str, Field(max_length=200)] = "recording"
    dialect: DialectWord | None = None


class JudgedRecording(Struct, kw_only=True):
    id: str
    report: JsonObject


class ExaminationRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices, examiner: Examiner) -> None:
        self._services, self._examiner = services, examiner

    def operations(self) -> list[Operation]:
        one = "/examinations/{id}"
        return [
            Operation(method="GET", path="/examinations", handler=self.page, answer=ExaminationList, for_admins=True,
                      summary="List the last examinations, newest first."),
            Operation(method="POST", path="/examinations", handler=self.start, body=ExaminationToStart, status=202,
                      answer=StartedExamination, for_admins=True,
                      summary="Examine this server, or another one; one examination runs at a time."),
            Operation(method="POST", path="/reports", handler=self.judge, query=ReportQuery, body_type=OCTETS,
                      answer=JudgedRecording, for_admins=True,
                      summary="Judge a recording of `dragoman record`, or a HAR file, sent as it is."),
            Operation(method="GET", path=one, handler=self.get, answer=ExaminationReport, for_admins=True,
                      summary="Read an examination and its report."),
            Operation(method="GET", path=f"{one}/report.html", handler=self.html, media_type=OCTETS, for_admins=True,
                      summary="Download the report of an examination as a page."),
            Operation(method="GET", path=f"{one}/stream", handler=self.stream, media_type=SSE, for_admins=True,
                      events={"progress": CaseProgress, "line": OutputLine, "end": ExaminationEnd},
                      summary="Follow an examination from its start to its end."),
            Operation(method="DELETE", path=one, handler=self.cancel, status=204, for_admins=True,
                      summary="Cancel an examination; delete one that has ended."),
        ]

    async def page(self, request: web.Request) -> web.Response:
        return json_response(ExaminationList(examinations=[one.shown for one in self._examiner.known]))

    async def start(self, request: web.Request) -> web.Response:
        body = await read_json(request, ExaminationToStart)
        url, key = body.url, body.key
        if url is None:
            mounts = {place.name: place.mount for place in self._services.places}
            if body.dialect not in mounts:
                raise Invalid(f"dialect: this server does not serve '{body.dialect}'; it serves {', '.join(mounts)}",
                              param="dialect")
            url, key = absolute_url(request, mounts[body.dialect]), key or bearer_token(request)
        elif not url.startswith(SCHEMES):
            raise Invalid("url: must be an http or https address", param="url")
        made = self._examiner.start(body.dialect, url, key, body.cases.strip())
        return json_response(StartedExamination(id=made.id), 202)

    async def judge(self, request: web.Request) -> web.Response:
        query, content = read_query(request, ReportQuery), await read_bytes(request)
        dialect = query.dialect or _dialect_of(content)
        if dialect is None:
            raise Invalid("this is no recording of `dragoman record`; of a HAR file, name the dialect: ?dialect=…",
                          param="dialect")
        one = self._examiner.start(dialect, safe_file_name(query.name), None, recording=content)
        assert one.task is not None
        await asyncio.shield(one.task)
        report = one.report()
        if report is None:
            raise Invalid(f"the recording cannot be judged: {one.output[-1] if one.output else 'nothing is said'}")
        return json_response({"id": one.id, "report": report})

    async def get(self, request: web.Request) -> web.Response:
        one = self._examiner.get(request.match_info["id"])
        shown = {name: getattr(one.shown, name) for name in ShownExamination.__struct_fields__}
        return json_response({**shown, "report": one.report(), "output": "\n".join(one.output)})

    async def html(self, request: web.Request) -> web.StreamResponse:
        one = self._examiner.get(request.match_info["id"])
        if not one.page_file.is_file():
            raise NotFound("this examination has no report")
        return await attachment(request, content_of(one.page_file), f"{one.dialect}-report.html", "text/html")

    async def stream(self, request: web.Request) -> web.StreamResponse:
        one, services = self._examiner.get(request.match_info["id"]), self._services
        services.check_open()
        with services.sessions.reserve_stream(request[CALLER].user):
            return await stream_sse(
                request, ExaminationSubscription(one), heartbeat=services.heartbeat(),
                patience=services.send_timeout())

    async def cancel(self, request: web.Request) -> web.Response:
        await self._examiner.cancel(request.match_info["id"])
        return web.Response(status=204)


def _dialect_of(recording: bytes) -> str | None:
    """The dialect that the first line of a recording names."""
    try:
        first = orjson.loads(recording.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return None
    found = first.get("dialect") if isinstance(first, dict) else None
    return found if isinstance(found, str) and re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", found) else None
