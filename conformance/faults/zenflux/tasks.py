"""Tasks of the ZenFlux reference server: the jobs that a chat can ask for, one of which runs by the clock."""

from typing import Any

from aiohttp import web

from conformance.faults.zenflux.chats import Chats
from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.memories import Memories
from conformance.faults.zenflux.state import Body, Refusal, object_time

DAILY = {"default_cron": "0 2 * * *", "description": "Every night at two."}
TASKS: dict[str, Body] = {
    "title_generation": {"description": "Gives a conversation a title.", "schedule_config": None},
    "recommended_questions": {"description": "Thinks of further questions.", "schedule_config": None},
    "mem0_update": {"description": "Keeps what users said.", "schedule_config": DAILY},
}
ON_CONVERSATIONS = ("title_generation", "recommended_questions")
TYPES: dict[str, type] = {
    "user_id": str, "conversation_id": str, "session_id": str, "params": dict, "wait": bool,
}  # fmt: skip


class Tasks:
    """Answers requests below /tasks."""

    def __init__(self, front: Front, chats: Chats, memories: Memories) -> None:
        self.front = front
        self.chats = chats
        self.memories = memories

    def task_info(self, name: str) -> Body:
        about = TASKS[name]
        return {"name": name, **about, "supports_scheduled": about["schedule_config"] is not None}

    def task(self, name: str) -> Body:
        if name not in TASKS:
            raise Refusal(404, "TASK_NOT_FOUND", "There is no such task.")
        return self.task_info(name)

    def scheduled_tasks(self) -> list[Body]:
        return [item for item in map(self.task_info, TASKS) if item["supports_scheduled"]]

    def task_list(self, scheduled_only: bool) -> Body:
        found = self.scheduled_tasks() if scheduled_only else list(map(self.task_info, TASKS))
        return {"tasks": found, "total": len(found)}

    async def get_tasks(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.task_list(request.query.get("scheduled_only", "false") == "true"))

    async def get_task(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.task(request.match_info["name"]))

    async def run_task(self, request: web.Request) -> web.StreamResponse:
        name = self.task(request.match_info["name"])["name"]
        body = self.check_run(name, await self.front.read(request))
        return self.front.reply(self.task_run(name, "manual", self.work(name, body)))

    def check_run(self, name: str, body: Body) -> Body:
        if wrong := [key for key, kind in TYPES.items() if not isinstance(body.get(key, kind()), kind)]:
            raise Refusal(400, "VALIDATION_ERROR", f"{wrong[0]} has a wrong type.")
        if name in ON_CONVERSATIONS and "conversation_id" not in body:
            raise Refusal(400, "VALIDATION_ERROR", "conversation_id is required.")
        return body

    def work(self, name: str, body: Body) -> Body:
        """Do the job, and say what came of it."""
        if name not in ON_CONVERSATIONS:
            return {"memories_added": 0}
        return {"conversation_id": self.chats.conversation(body["conversation_id"]).id}

    def task_run(self, name: str, trigger: str, result: Any) -> Body:
        now = object_time()
        about: Body = {"task_name": name, "status": "completed", "trigger_type": trigger, "started_at": now}
        return about | {"finished_at": now, "duration_ms": 0, "error": None, "result": result}

    async def batch_task(self, request: web.Request) -> web.StreamResponse:
        name = self.batchable(request.match_info["name"])
        self.memories.check_batch(await self.front.read(request))
        done = self.memories.memory_batch()
        result = {key: done[key] for key in ("total_users", "successful", "failed")} | {"total_memories_added": 0}
        return self.front.reply(self.task_run(name, "scheduled", result))

    def batchable(self, name: str) -> str:
        if not self.task(name)["supports_scheduled"]:
            raise Refusal(400, "VALIDATION_ERROR", "This task is not for many.")
        return name

    async def get_schedules(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.schedules())

    def schedules(self) -> Body:
        found = self.scheduled_tasks()
        return {"tasks": found, "total": len(found), "hint": "Set the times in the configuration."}

    async def get_scheduler(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.scheduler())

    def scheduler(self) -> Body:
        jobs = [self.job(item) for item in self.scheduled_tasks()]
        return {"running": True, "jobs": jobs, "total_jobs": len(jobs)}

    def job(self, item: Body) -> Body:
        about: Body = {"id": item["name"], "name": item["description"], "next_run_time": object_time()}
        return about | {"trigger_type": "cron", "cron": item["schedule_config"]["default_cron"],
                        "interval_seconds": None}  # fmt: skip

    def task_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/tasks", self.get_tasks),
            web.get("/tasks/scheduled/config", self.get_schedules),
            web.get("/tasks/scheduled/status", self.get_scheduler),
            web.get("/tasks/{name}", self.get_task),
            web.post("/tasks/{name}/run", self.run_task),
            web.post("/tasks/{name}/batch", self.batch_task),
        ]
