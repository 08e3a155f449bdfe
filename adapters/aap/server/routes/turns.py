"""The place in a turn at which a client resumes its stream: how many events of which turn it has had."""

import re
from typing import NamedTuple

from aiohttp import web

import gateway.model as m
from adapters.aap.server.stream_options import StreamOptions
from adapters.aap.wire import AapSettings
from gateway.errors import Invalid, NotFound
from gateway.http import OWNER, Context

CURSOR_FORMAT = re.compile(r"(?:([0-9]{1,15})\.)?([0-9]{1,9})", re.ASCII)
TURN_BEGINNINGS = (m.TurnStarted, m.TurnResumed)
"""Each of them is the start of a turn of AAP's."""


class TurnCursor(NamedTuple):
    """The record that begins a turn, and how many of its events the client has; without a record, of the last turn."""

    begins: int | None
    had: int


def turn_cursor_of(request: web.Request) -> TurnCursor:
    """The cursor in the header or the query: `events` of the last turn, or `turn.events`."""
    given = {said for said in (request.headers.get("Last-Event-ID"), request.query.get("after")) if said}
    if len(given) > 1:
        raise Invalid("Last-Event-ID and after exclude each other: send one of them", param="after")
    found = CURSOR_FORMAT.fullmatch(given.pop()) if given else CURSOR_FORMAT.fullmatch("0")
    if found is None:
        raise Invalid("after: say how many events you have had, or the id of the last one", param="after")
    return TurnCursor(int(found[1]) if found[1] else None, int(found[2]))


class ResumePoint(NamedTuple):
    """After which record a turn is to be read, and how many of its events are to be left out."""

    after: int
    had: int
    is_over: bool
    """Whether the turn has no more events."""


async def resume_point(
    context: Context[AapSettings], request: web.Request, view: m.SessionView, options: StreamOptions
) -> ResumePoint:
    """Where the client goes on; a place that cannot be is refused."""
    begins, had = turn_cursor_of(request)
    if begins is None:
        begins = view.begun_at
    else:
        await _check_turn_begins(context, request, view, begins)
    if not begins:
        raise NotFound(f"session '{view.session_id}' has had no turn yet")
    told, is_over = await _count_events(context, request, view, options, begins - 1, had) if had else (0, False)
    if had > told:
        raise Invalid(f"after: the turn has had {told} events so far, not {had}", param="after")
    return ResumePoint(begins - 1, had, is_over)


async def _check_turn_begins(
    context: Context[AapSettings], request: web.Request, view: m.SessionView, begins: int
) -> None:
    first = await context.sessions.records(request[OWNER], view.session_id, max(0, begins - 1), 1)
    if begins < 1 or not first or not isinstance(first[0].event, TURN_BEGINNINGS):
        raise Invalid(f"after: no turn of this session begins at {begins}", param="after")


async def _count_events(
    context: Context[AapSettings], request: web.Request, view: m.SessionView, options: StreamOptions, after: int,
    had: int,
) -> tuple[int, bool]:
    """How many events the turn has, counted up to one more than the client has; and whether these are all."""
    told = 0
    chunks = await context.sessions.read(request[OWNER], view.session_id, context.dialect, options, after=after)
    async for chunk in chunks:
        told += len(chunk.frames)
        if told > had or chunk.yields:
            return told, told == had
    return told, False
