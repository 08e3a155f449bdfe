"""What the Blade reference server keeps beside sessions: workspace files, memories, API keys, scheduled tasks."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import orjson
from aiohttp import web

from conformance.faults.blade.sessions import Sessions
from conformance.faults.blade.state import Body, Refusal, Session, mint, now

MEMORY = ("skill_name", "record_type", "scope", "owner", "topic", "mem0_id", "superseded_by", "write_reason")


class Resources(Sessions):
    """Keeps files, memories, API keys and scheduled tasks."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.memories: dict[str, Body] = {}
        self.keys: dict[str, Body] = {}
        self.tasks: dict[str, Body] = {}
        self.runs: dict[str, list[Body]] = {}
        self.numbers = count(1)

    def take(self, shelf: dict[str, Body], request: web.Request) -> Body:
        try:
            return shelf[request.match_info["id"]]
        except KeyError:
            raise Refusal(404, "there is no such thing") from None

    # -- files ---------------------------------------------------------------------------------------------------------

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
        session, path = self.find(request), self.path(request)
        session.files[path] = (await self.read(request, content=str))["content"].encode()
        await self.tell(session, "workspace:files_changed", {"session_id": session.id, "file_path": path})
        return self.reply("written", {"success": True})

    async def get_file(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self.file(self.find(request), self.path(request)), content_type="text/plain")

    async def delete_file(self, request: web.Request) -> web.StreamResponse:
        session, path = self.find(request), self.path(request)
        self.file(session, path)
        del session.files[path]
        return self.reply("file.deleted", {"deleted": True})

    async def post_rename(self, request: web.Request) -> web.StreamResponse:
        session, path = self.find(request), self.path(request)
        folder, _, _ = path.rpartition("/")
        renamed = f"{folder}/{(await self.read(request, new_name=str))['new_name']}".lstrip("/")
        session.files[renamed] = self.file(session, path)
        del session.files[path]
        return self.reply("renamed", {"path": renamed})

    async def post_upload(self, request: web.Request) -> web.StreamResponse:
        session, folder = self.find(request), self.path(request)
        form = await request.post()
        paths = orjson.loads(str(form["paths"]))
        for path, part in zip(paths, form.getall("files"), strict=True):
            assert isinstance(part, web.FileField)
            session.files[f"{folder}/{path}"] = part.file.read()
            part.file.close()
        return self.reply("uploaded", {"uploaded": paths, "failed": []})

    async def get_files(self, request: web.Request) -> web.StreamResponse:
        session, folder = self.find(request), self.path(request).strip("./")
        inside = [path.removeprefix(f"{folder}/") for path in session.files if path.startswith(folder)]
        return self.reply("listing", [{"name": path, "type": "file"} for path in sorted(inside)])

    # -- memories ------------------------------------------------------------------------------------------------------

    async def post_memory(self, request: web.Request) -> web.StreamResponse:
        body = await self.read(request, content=str)
        self.check_memory(body)
        told = {"id": next(self.numbers), "type": body.get("type", "feedback"), "content": body["content"]}
        times = {"created_at": now(), "updated_at": None, "hit_count": 0, "last_hit_at": None, "disabled": False}
        memory = told | {name: body.get(name) for name in MEMORY} | times | {"source_session": "sess_reference"}
        self.memories[str(memory["id"])] = memory
        return self.reply("memory", memory, 201)

    def check_memory(self, body: Body) -> None:
        self.check_length(body, content=500)
        if body.get("type", "feedback") not in ("feedback", "experience"):
            raise Refusal(422, "type is feedback or experience")

    async def get_memories(self, request: web.Request) -> web.StreamResponse:
        limit, offset = self.page(request, 100)
        word = request.query.get("keyword", "")
        found = [it for it in self.memories.values() if word in it["content"]]
        items = [self.shown("memory", dict(it)) for it in found[offset : offset + limit]]
        return self.reply("memories", {"items": items, "total": len(found)})

    async def get_memory(self, request: web.Request) -> web.StreamResponse:
        return self.reply("memory", self.take(self.memories, request))

    async def change_memory(self, request: web.Request) -> web.StreamResponse:
        memory = self.take(self.memories, request)
        body = await self.read(request)
        self.check_memory(body)
        memory |= {name: body[name] for name in ("content", "type", "disabled") if name in body}
        return self.reply("memory.changed", memory | {"updated_at": now()})

    async def delete_memory(self, request: web.Request) -> web.StreamResponse:
        del self.memories[str(self.take(self.memories, request)["id"])]
        return self.reply("memory.deleted", {"ok": True})

    async def post_batch(self, request: web.Request) -> web.StreamResponse:
        body = await self.read(request, action=str, ids=list)
        if body["action"] not in ("delete", "disable", "enable") or not body["ids"]:
            raise Refusal(422, "no such action, or no ids")
        for name in map(str, body["ids"]):
            if body["action"] == "delete":
                self.memories.pop(name, None)
            elif name in self.memories:
                self.memories[name]["disabled"] = body["action"] == "disable"
        return self.reply("batch", {"ok": True, "count": len(body["ids"])})

    # -- keys ----------------------------------------------------------------------------------------------------------

    async def post_key(self, request: web.Request) -> web.StreamResponse:
        body = await self.read(request, name=str)
        self.check_length(body, name=50)
        plaintext = mint("sk-blade-v2-")
        key = {"id": mint("key"), "name": body["name"], "masked": f"sk-blade-v2-...{plaintext[-4:]}", "plaintext": None}
        key |= {"created_at": now(), "last_used_at": None}
        self.keys[key["id"]], self.tokens[key["id"]] = key, plaintext
        shown = self.shown("key", dict(key))
        return self.reply("key.created", shown | {"key": shown, "plaintext": plaintext}, 201)

    async def get_keys(self, request: web.Request) -> web.StreamResponse:
        return self.reply("keys", [self.shown("key", dict(key)) for key in self.keys.values()])

    async def get_key(self, request: web.Request) -> web.StreamResponse:
        return self.reply("key", self.take(self.keys, request))

    async def patch_key(self, request: web.Request) -> web.StreamResponse:
        key = self.take(self.keys, request)
        key["name"] = (await self.read(request, name=str))["name"]
        return self.reply("key.changed", key)

    async def delete_key(self, request: web.Request) -> web.StreamResponse:
        name = self.take(self.keys, request)["id"]
        del self.keys[name]
        self.forget(name)
        return web.Response(status=204)

    def forget(self, name: str) -> None:
        del self.tokens[name]

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def check_task(self, body: Body) -> None:
        self.check_length(body, title=200, prompt=10**6, cron=100, timezone=100)
        if "cron" in body and len(body["cron"].split()) != 5:
            raise Refusal(422, "cron has five fields")

    async def post_task(self, request: web.Request) -> web.StreamResponse:
        body = await self.read(request, title=str, prompt=str, cron=str, timezone=str)
        self.check_task(body)
        given = {name: body[name] for name in ("title", "prompt", "cron", "timezone")}
        more = {"enabled": True, "expires_at": None, "skip_confirmations": False, "model": None}
        task = {"id": mint("task"), **given, **more}
        self.tasks[task["id"]] = task
        return self.reply("task", task, 201)

    async def get_tasks(self, request: web.Request) -> web.StreamResponse:
        return self.reply("tasks", [self.shown("task", dict(task)) for task in self.tasks.values()])

    async def get_task(self, request: web.Request) -> web.StreamResponse:
        return self.reply("task", self.take(self.tasks, request))

    async def patch_task(self, request: web.Request) -> web.StreamResponse:
        task, body = self.take(self.tasks, request), await self.read(request)
        self.check_task(body)
        task |= {name: value for name, value in body.items() if name in task}
        return self.reply("task.changed", task)

    async def delete_task(self, request: web.Request) -> web.StreamResponse:
        del self.tasks[self.take(self.tasks, request)["id"]]
        return web.Response(status=204)

    async def start_task(self, request: web.Request) -> web.StreamResponse:
        task = self.take(self.tasks, request)
        task["enabled"] = True
        run = {"id": mint("run"), "task_id": task["id"], "session_id": mint("sess"), "status": "running", "error": None}
        self.runs.setdefault(task["id"], []).append(run | {"triggered_at": now(), "finished_at": None})
        return self.reply("task.started", task)

    async def stop_task(self, request: web.Request) -> web.StreamResponse:
        task = self.take(self.tasks, request)
        task["enabled"] = False
        return self.reply("task.stopped", task)

    async def get_runs(self, request: web.Request) -> web.StreamResponse:
        runs = self.runs.get(self.take(self.tasks, request)["id"], [])
        return self.reply("runs", [self.shown("run", dict(run)) for run in runs])

    async def get_calendar(self, request: web.Request) -> web.StreamResponse:
        begin, end = (datetime.fromisoformat(request.query[name]) for name in ("from", "to"))
        named = [{"task_id": task["id"], "title": task["title"]} for task in self.tasks.values()]
        dates = [{"occurrences": due(task, begin, end)} for task in self.tasks.values()]
        return self.reply("calendar", [name | date for name, date in zip(named, dates, strict=True)])


def due(task: Body, begin: datetime, end: datetime) -> list[str]:
    """When a task of plain numbers and stars is due."""
    zone = ZoneInfo(task["timezone"])
    minutes = (begin + timedelta(minutes=place) for place in range(int((end - begin).total_seconds() // 60)))
    return [at.strftime("%Y-%m-%dT%H:%M:%SZ") for at in minutes if _fits(task["cron"].split(), at.astimezone(zone))]


def _fits(cron: list[str], at: datetime) -> bool:
    now: list[Any] = [at.minute, at.hour, at.day, at.month, at.isoweekday() % 7]
    return all(field == "*" or field == str(value) for field, value in zip(cron, now, strict=True))
