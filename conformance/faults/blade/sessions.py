"""Sessions of the Blade reference server over REST, with their histories, shares and replays."""

import io
import zipfile
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.blade.chats import Chats
from conformance.faults.blade.front import USER, Front
from conformance.faults.blade.state import Body, Refusal, Session, State, copied, mint, new_session, now
from conformance.faults.blade.writer import Writer

TEXT = (str, type(None))


class Sessions:
    """Creates, lists, changes, shares, replays and deletes sessions."""

    def __init__(self, state: State, writer: Writer, front: Front, chats: Chats) -> None:
        self.state = state
        self.writer = writer
        self.front = front
        self.chats = chats

    async def post_session(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request, intent=str, solution_id=TEXT, biz_role_id=TEXT, model=TEXT)
        session = new_session(body, USER)
        self.state.sessions[session.id] = session
        return self.front.reply("created", {"session_id": session.id}, 201)

    def info(self, session: Session) -> Body:
        more: Body = {"solution": None, "primary_skill_snapshot": None, "session_setup": {}, "viewer_role": "owner"}
        shown: Body = self.writer.shown("session", session.fields | more)
        return shown

    async def get_session(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("session.get", self.info(self.front.find(request)))

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        limit, offset = self.front.page(request, 100)
        word = request.query.get("q", "")
        found = [it for it in reversed(self.state.sessions.values()) if word in it.fields["intent"]]
        items = [self.writer.shown("session", dict(it.fields)) for it in found[offset : offset + limit]]
        page = {"items": items, "total": len(found), "limit": limit, "offset": offset}
        return self.front.reply("sessions", page | {"content_match_truncated": False})

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        del self.state.sessions[session.id]
        return self.front.reply("deleted", {"deleted": True})

    async def patch_session(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        session.fields["intent"] = (await self.front.read(request, intent=str))["intent"]
        updated = {"session_id": session.id, "intent": session.fields["intent"]}
        await self.writer.send_event(session, "session:updated", updated)
        return self.front.reply("session.patch", self.info(session))

    async def put_env(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        await self.front.read(request, env=dict)
        return self.front.reply("session.env", self.info(session))

    async def patch_pin(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        session.fields["is_pinned"] = (await self.front.read(request, pinned=bool))["pinned"]
        return self.front.reply("session.pin", self.info(session))

    async def patch_sharing(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        session.fields["shared"] = (await self.front.read(request, shared=bool))["shared"]
        return self.front.reply("sharing", {"shared": session.fields["shared"]})

    async def patch_memory(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        session.fields["memory_enabled"] = (await self.front.read(request, memory_enabled=bool))["memory_enabled"]
        return self.front.reply("memory_switch", {"memory_enabled": session.fields["memory_enabled"]})

    async def post_chat(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        body = await self.front.read(request)
        self.chats.check_room(session)
        session.run = mint("run")
        return self.front.reply("rest_chat", await self.chats.chat(session, body | {"headless": True}, None))

    def messages(self, session: Session) -> Any:
        return self.writer.shown("messages", [self.writer.shown_turn(copied(turn)) for turn in session.turns])

    async def get_messages(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("messages.get", self.messages(self.front.find(request)))

    async def get_history(self, request: web.Request) -> web.StreamResponse:
        nodes = [{"turn_id": turn["turn_id"]} for turn in self.front.find(request).turns]
        members = {"nodes": nodes, "system_prompt_tokens": 1, "tools_tokens": 2, "tokenizer_model": "reference"}
        return self.front.reply("history", members)

    async def get_checkpoints(self, request: web.Request) -> web.StreamResponse:
        turns = self.front.find(request).turns
        points = [{"checkpoint_id": f"cp_{turn['sequence']}", "turn_id": turn["turn_id"]} for turn in turns]
        return self.front.reply("checkpoints", points)

    async def post_rewind(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        place = (await self.front.read(request, checkpoint_id=str))["checkpoint_id"]
        self.rewind(session, int(place.removeprefix("cp_")))
        return self.front.reply("rewind", {"checkpoint_id": place})

    def rewind(self, session: Session, place: int) -> None:
        del session.turns[place + 1 :]

    async def post_checkout(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        body = await self.front.read(request, checkpoint_id=str, position=str)
        return self.front.reply("checkout", {"session_id": session.id, "checkpoint_id": body["checkpoint_id"]})

    async def get_preview(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        members = {"session_id": session.id, "intent": session.fields["intent"], "supported": True, "reason": None}
        return self.front.reply("preview", members)

    async def post_replay(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        speed = (await self.front.read(request, speed=int))["speed"]
        if speed not in (1, 2, 5):
            raise Refusal(422, "the speed is 1, 2 or 5")
        copy = new_session({"intent": session.fields["intent"]}, USER)
        copy.fields["replay_state"] = {"speed": speed}
        self.state.sessions[copy.id] = copy
        return self.front.reply("replay.created", {"session_id": copy.id}, 201)

    async def patch_replay(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        session.fields["replay_state"] = await self.front.read(request)
        return self.front.reply("replay", {"replay_state": session.fields["replay_state"]})

    async def post_share(self, request: web.Request) -> web.StreamResponse:
        token = mint("share")
        self.state.shares[token] = self.front.find(request).id
        return self.front.reply("share", {"token": token, "url": f"/share/{token}", "expires_at": now()}, 201)

    async def delete_share(self, request: web.Request) -> web.StreamResponse:
        self.front.find(request)
        self.state.shares.pop(request.match_info["token"], None)
        return self.front.reply("revoked", {"revoked": True})

    async def get_shared(self, request: web.Request) -> web.StreamResponse:
        session = self.state.shares.get(request.match_info["token"])
        return self.front.reply("shared", self.messages(self.front.session(session)))

    async def get_export(self, request: web.Request) -> web.StreamResponse:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("session.json", orjson.dumps(self.front.find(request).fields))
        return web.Response(body=packed.getvalue(), content_type="application/zip")

    async def post_preview_import(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        part = form.get("file")
        if not isinstance(part, web.FileField) or not zipfile.is_zipfile(part.file):
            raise Refusal(422, "file is no ZIP")
        part.file.close()
        return self.front.reply("imported", {"name": part.filename})

    async def post_extra(self, request: web.Request) -> web.StreamResponse:
        session = self.front.find(request)
        extra = (await self.front.read(request))["extra"]
        made = session.extra["created_at"] if session.extra else now()
        session.extra = {"session_id": session.id, "extra": extra, "created_at": made, "updated_at": now()}
        return self.front.reply("extra", session.extra)

    async def get_extra(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("extra.get", self.front.find(request).extra)
