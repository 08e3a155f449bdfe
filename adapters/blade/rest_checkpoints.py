"""Blade's checkpoints: where a session can be rewound to, how it looked there, and going back."""

from typing import Any

from aiohttp import web

from gateway.errors import NotFound
from gateway.model import ROOT, SessionView, text_of
from gateway.time_slices import sliced
from gateway.web import OWNER, Context, read_as, reply

from . import rest_views as views
from .rest_reading import messages_of
from .rest_wire import CheckOut, Rewinding

PREFIX = "cp_"
PREVIEW = 120


def checkpoint_routes(context: Context) -> list[web.RouteDef]:
    checkpoints, at = CheckpointRoutes(context), f"{context.mount}/sessions/{{id}}"
    return [
        web.get(f"{at}/checkpoints", checkpoints.listed),
        web.post(f"{at}/rewind", checkpoints.rewind),
        web.post(f"{at}/checkout", checkpoints.check_out),
    ]


class CheckpointRoutes:
    """One method per route; a checkpoint is named after its place in the log."""

    def __init__(self, context: Context) -> None:
        self.house = context

    async def listed(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        last, said = _last_messages(view), _first_words(view)
        leaf, shown = f"{PREFIX}{view.checkpoints[-1].seq}", list[Any]()
        async for some in sliced(view.checkpoints[:]):
            shown += [
                views.checkpoint(self.house.table, f"{PREFIX}{mark.seq}", mark, last[mark.entries],
                                 said.get(mark.turn_id, ""), leaf)
                for mark in some
            ]
        return reply(shown)

    async def rewind(self, request: web.Request) -> web.Response:
        said, view = await read_as(request, Rewinding), await self._view(request)
        mark = view.checkpoints[_place(view, said.checkpoint_id)]
        if mark is not view.checkpoints[-1] or view.status != "idle":
            await self.house.sessions.rewind(view.owner, view.session_id, mark.seq)
        return reply(self.house.table.object("rewound", checkpoint_id=said.checkpoint_id, session_id=view.session_id))

    async def check_out(self, request: web.Request) -> web.Response:
        """How the session looked there; nothing changes."""
        said, view = await read_as(request, CheckOut), await self._view(request)
        place = _place(view, said.checkpoint_id)
        mark = view.checkpoints[max(place - 1, 0) if said.position == "before" else place]
        messages = await messages_of(self.house, view.owner, view.session_id, upto=mark.seq)
        return reply(self.house.table.object(
            "checked_out", checkpoint_id=said.checkpoint_id, position=said.position, messages=messages,
        ))

    async def _view(self, request: web.Request) -> SessionView:
        return await self.house.sessions.get(request[OWNER], request.match_info["id"])


def _place(view: SessionView, checkpoint_id: str) -> int:
    """Which of the checkpoints that were not rewound."""
    for place, mark in enumerate(view.checkpoints):
        if checkpoint_id == f"{PREFIX}{mark.seq}":
            return place
    raise NotFound(f"there is no checkpoint '{checkpoint_id}'")


def _last_messages(view: SessionView) -> list[str | None]:
    """For each number of entries, the message that was the last then."""
    last: list[str | None] = [None]
    for entry in view.entries:
        last.append(entry.message_id if entry.scope_id == ROOT and entry.message_id else last[-1])
    return last


def _first_words(view: SessionView) -> dict[str | None, str]:
    """What somebody said to begin each turn."""
    said: dict[str | None, str] = {None: ""}
    for entry in view.entries:
        if entry.turn_id not in said:
            said[entry.turn_id] = text_of(entry.content)[:PREVIEW]
    return said
