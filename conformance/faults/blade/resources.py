"""What the Blade reference server has beside sessions: workspace files, memories, API keys, facts about itself."""

import orjson
from aiohttp import web

from conformance.faults.blade.front import USER, Front
from conformance.faults.blade.state import Body, Refusal, Session, State, mint, now
from conformance.faults.blade.writer import Writer

MEMORY = ("skill_name", "record_type", "scope", "owner", "topic", "mem0_id", "superseded_by", "write_reason")


class Files:
    """Answers requests for the files of a session's workspace."""

    def __init__(self, writer: Writer, front: Front) -> None:
        self.writer = writer
        self.front = front

    def path(self, request: web.Request) -> str:
        path = request.match_info["path"]
        if ".." in path.split("/"):
            raise Refusal(400, "the path leaves the folder")
        return path

    def file(self, session: Session, path: str) -> bytes:
        if path not in session.files:
            raise Refusal(404, "there is no such file")
        return session.files[path]

    async def put_file(self, request: web.Request) -> web.StreamResponse:
        session, path = self.front.find(request), self.path(request)
        session.files[path] = (await self.front.read(request, content=str))["content"].encode()
        await self.writer.send_event(session, "workspace:files_changed", {"session_id": session.id, "file_path": path})
        return self.front.reply("written", {"success": True})

    async def get_file(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self.file(self.front.find(request), self.path(request)), content_type="text/plain")

    async def delete_file(self, request: web.Request) -> web.StreamResponse:
        session, path = self.front.find(request), self.path(request)
        self.file(session, path)
        del session.files[path]
        return self.front.reply("file.deleted", {"deleted": True})

    async def post_rename(self, request: web.Request) -> web.StreamResponse:
        session, path = self.front.find(request), self.path(request)
        folder, _, _ = path.rpartition("/")
        renamed = f"{folder}/{(await self.front.read(request, new_name=str))['new_name']}".lstrip("/")
        session.files[renamed] = self.file(session, path)
        del session.files[path]
        return self.front.reply("renamed", {"path": renamed})

    async def post_upload(self, request: web.Request) -> web.StreamResponse:
        session, folder = self.front.find(request), self.path(request)
        form = await request.post()
        paths = orjson.loads(str(form["paths"]))
        for path, part in zip(paths, form.getall("files"), strict=True):
            assert isinstance(part, web.FileField)
            session.files[f"{folder}/{path}"] = part.file.read()
            part.file.close()
        return self.front.reply("uploaded", {"uploaded": paths, "failed": []})

    async def get_files(self, request: web.Request) -> web.StreamResponse:
        session, folder = self.front.find(request), self.path(request).strip("./")
        inside = [path.removeprefix(f"{folder}/") for path in session.files if path.startswith(folder)]
        return self.front.reply("listing", [{"name": path, "type": "file"} for path in sorted(inside)])


class Memories:
    """Answers requests for memories of the agent."""

    def __init__(self, state: State, writer: Writer, front: Front) -> None:
        self.state = state
        self.writer = writer
        self.front = front

    async def post_memory(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request, content=str)
        self.check_memory(body)
        members = {"id": next(self.state.numbers), "type": body.get("type", "feedback"), "content": body["content"]}
        times = {"created_at": now(), "updated_at": None, "hit_count": 0, "last_hit_at": None, "disabled": False}
        memory = members | {name: body.get(name) for name in MEMORY} | times | {"source_session": "sess_reference"}
        self.state.memories[str(memory["id"])] = memory
        return self.front.reply("memory", memory, 201)

    def check_memory(self, body: Body) -> None:
        self.front.check_length(body, content=500)
        if body.get("type", "feedback") not in ("feedback", "experience"):
            raise Refusal(422, "type is feedback or experience")

    async def get_memories(self, request: web.Request) -> web.StreamResponse:
        limit, offset = self.front.page(request, 100)
        word = request.query.get("keyword", "")
        found = [it for it in self.state.memories.values() if word in it["content"]]
        items = [self.writer.shown("memory", dict(it)) for it in found[offset : offset + limit]]
        return self.front.reply("memories", {"items": items, "total": len(found)})

    async def get_memory(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("memory", self.front.take(self.state.memories, request))

    async def change_memory(self, request: web.Request) -> web.StreamResponse:
        memory = self.front.take(self.state.memories, request)
        body = await self.front.read(request)
        self.check_memory(body)
        memory |= {name: body[name] for name in ("content", "type", "disabled") if name in body}
        return self.front.reply("memory.changed", memory | {"updated_at": now()})

    async def delete_memory(self, request: web.Request) -> web.StreamResponse:
        del self.state.memories[str(self.front.take(self.state.memories, request)["id"])]
        return self.front.reply("memory.deleted", {"ok": True})

    async def post_batch(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request, action=str, ids=list)
        if body["action"] not in ("delete", "disable", "enable") or not body["ids"]:
            raise Refusal(422, "no such action, or no ids")
        for name in map(str, body["ids"]):
            if body["action"] == "delete":
                self.state.memories.pop(name, None)
            elif name in self.state.memories:
                self.state.memories[name]["disabled"] = body["action"] == "disable"
        return self.front.reply("batch", {"ok": True, "count": len(body["ids"])})


class Keys:
    """Answers requests for API keys."""

    def __init__(self, state: State, writer: Writer, front: Front) -> None:
        self.state = state
        self.writer = writer
        self.front = front

    async def post_key(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request, name=str)
        self.front.check_length(body, name=50)
        plaintext = mint("sk-blade-v2-")
        key = {"id": mint("key"), "name": body["name"], "masked": f"sk-blade-v2-...{plaintext[-4:]}", "plaintext": None}
        key |= {"created_at": now(), "last_used_at": None}
        self.state.keys[key["id"]], self.state.tokens[key["id"]] = key, plaintext
        shown = self.writer.shown("key", dict(key))
        return self.front.reply("key.created", shown | {"key": shown, "plaintext": plaintext}, 201)

    async def get_keys(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("keys", [self.writer.shown("key", dict(key)) for key in self.state.keys.values()])

    async def get_key(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("key", self.front.take(self.state.keys, request))

    async def patch_key(self, request: web.Request) -> web.StreamResponse:
        key = self.front.take(self.state.keys, request)
        key["name"] = (await self.front.read(request, name=str))["name"]
        return self.front.reply("key.changed", key)

    async def delete_key(self, request: web.Request) -> web.StreamResponse:
        name = self.front.take(self.state.keys, request)["id"]
        del self.state.keys[name]
        self.forget(name)
        return web.Response(status=204)

    def forget(self, name: str) -> None:
        del self.state.tokens[name]


class About:
    """Answers requests for models, the user, the version and the health of the server."""

    def __init__(self, front: Front) -> None:
        self.front = front

    async def get_models(self, request: web.Request) -> web.StreamResponse:
        models = [{"id": "reference-1", "name": "Reference"}]
        return self.front.reply("models", {"default": "reference-1", "models": models})

    async def get_me(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("me", {"id": USER, "username": "reference", "avatar_url": None, "created_at": now()})

    async def get_version(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("version", {"version": "1.0.0", "min_sdk": "0.1.0"})

    async def get_health(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("health", {"status": "ok"})
