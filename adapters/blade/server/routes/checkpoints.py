"""Blade's checkpoints, to which a session can be rewound, and replays, which repeat a session in a new one."""


from aiohttp import web

import gateway.model as m
from adapters.blade.server import views
from adapters.blade.server.history import MESSAGE, message_bodies, update_private
from adapters.blade.wire import BladeSettings, CheckoutRequest, ReplayChange, ReplayRequest, RewindRequest
from gateway.errors import NotFound
from gateway.http import OWNER, Answers, Context, Row, json_response, read_json
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import Replays, ReplayState
from gateway.time_slices import sliced

CHECKPOINT_PREFIX = "cp_"
PREVIEW_LENGTH = 120


def checkpoint_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    checkpoints, at = CheckpointRoutes(context), f"{context.mount}/sessions/{{id}}"
    return [
        web.get(f"{at}/checkpoints", checkpoints.listed),
        web.post(f"{at}/rewind", checkpoints.rewind),
        web.post(f"{at}/checkout", checkpoints.check_out),
    ]


class CheckpointRoutes:
    """The routes of checkpoints, one method each; the id of a checkpoint is its place in the log."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context

    @Answers(["checkpoint"])
    async def listed(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        last, titles = _last_messages(view), _first_words(view)
        leaf, shown = f"{CHECKPOINT_PREFIX}{view.checkpoints[-1].seq}", list[JsonValue]()
        async for some in sliced(view.checkpoints[:]):
            shown += [
                views.checkpoint_body(self.context.table, f"{CHECKPOINT_PREFIX}{mark.seq}", mark, last[mark.entries],
                                 titles.get(mark.turn_id, ""), leaf)
                for mark in some
            ]
        return json_response(shown)

    @Answers("rewound", reads=RewindRequest)
    async def rewind(self, request: web.Request) -> web.Response:
        body, view = await read_json(request, RewindRequest), await self._view(request)
        mark = view.checkpoints[_checkpoint_index(view, body.checkpoint_id)]
        if mark is not view.checkpoints[-1] or view.status != "idle":
            await self.context.sessions.rewind(view.owner, view.session_id, mark.seq)
        return json_response(
            self.context.table.object("rewound", checkpoint_id=body.checkpoint_id, session_id=view.session_id)
        )

    @Answers(Row("checked_out", messages=[MESSAGE]), reads=CheckoutRequest)
    async def check_out(self, request: web.Request) -> web.Response:
        """Show the session as it was at a checkpoint; nothing changes."""
        body, view = await read_json(request, CheckoutRequest), await self._view(request)
        place = _checkpoint_index(view, body.checkpoint_id)
        mark = view.checkpoints[max(place - 1, 0) if body.position == "before" else place]
        messages = await message_bodies(self.context, view.owner, view.session_id, upto=mark.seq)
        return json_response(self.context.table.object(
            "checked_out", checkpoint_id=body.checkpoint_id, position=body.position, messages=messages,
        ))

    async def _view(self, request: web.Request) -> m.SessionView:
        return await self.context.sessions.get(request[OWNER], request.match_info["id"])


def _checkpoint_index(view: m.SessionView, checkpoint_id: str) -> int:
    """The index of the named checkpoint among those that were not rewound."""
    for place, mark in enumerate(view.checkpoints):
        if checkpoint_id == f"{CHECKPOINT_PREFIX}{mark.seq}":
            return place
    raise NotFound(f"there is no checkpoint '{checkpoint_id}'")


def _last_messages(view: m.SessionView) -> list[str | None]:
    """For each number of entries, the message that was the last then."""
    last: list[str | None] = [None]
    for entry in view.entries:
        last.append(entry.message_id if entry.scope_id == m.ROOT and entry.message_id else last[-1])
    return last


def _first_words(view: m.SessionView) -> dict[str | None, str]:
    """The message that began each turn."""
    titles: dict[str | None, str] = {None: ""}
    for entry in view.entries:
        if entry.turn_id not in titles:
            titles[entry.turn_id] = m.text_of(entry.content)[:PREVIEW_LENGTH]
    return titles


def replay_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    assert context.replays is not None, "a gateway replays"
    replays, at = ReplayRoutes(context, context.replays), f"{context.mount}/sessions/{{id}}/replay"
    return [
        web.post(at, replays.start),
        web.get(f"{at}/preview", replays.preview),
        web.patch(at, replays.change),
    ]


class ReplayRoutes:
    """The routes of replays, one method each; the progress of a replay is stored with its session."""

    def __init__(self, context: Context[BladeSettings], replays: Replays) -> None:
        self.context = context
        self.replays = replays

    @Answers("replay.started", reads=ReplayRequest, may_be_empty=True)
    async def start(self, request: web.Request) -> web.Response:
        body = await read_json(request, ReplayRequest) if request.can_read_body else ReplayRequest()
        owner = request[OWNER]
        old = await self.context.sessions.get(owner, request.match_info["id"])
        kept: JsonObject = {m.PRIVATE: {self.context.dialect: old.private(self.context.dialect)}}

        async def changed(session_id: str, state: ReplayState) -> None:
            await update_private(self.context, owner, session_id, replay_state=self._shown(state))

        view = await self.replays.start(owner, old.session_id, body.speed, kept, changed)
        return json_response(self.context.table.object("replay.started", session_id=view.session_id))

    @Answers("replay.preview")
    async def preview(self, request: web.Request) -> web.Response:
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        reason = await self.replays.can(view.owner, view.session_id)
        return json_response(self.context.table.object(
            "replay.preview", session_id=view.session_id, intent=view.title or "", supported=reason is None,
            reason=reason,
        ))

    @Answers(Row("replay", state="replay.state"), reads=ReplayChange)
    async def change(self, request: web.Request) -> web.Response:
        body, session_id = await read_json(request, ReplayChange), request.match_info["id"]
        state = await self.replays.change(
            request[OWNER], session_id, speed=body.speed, stop=body.status == "autonomous",
        )
        return json_response(self.context.table.object("replay", state=self._shown(state)))

    def _shown(self, state: ReplayState) -> object:
        return self.context.table.object("replay.state", state=state)
