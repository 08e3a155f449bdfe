"""Servers that keep memories, API keys and scheduled tasks wrongly."""

from typing import Any

from aiohttp import web

from conformance.faults.blade.bending import bending, instead, setting, without
from conformance.faults.blade.ledger import Body, Refusal
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault


@fault("BL-MEM-01", cases="memory.a_memory_is_complete")
class MemoryWithoutSource(BladeServer):
    """A memory does not say where it comes from."""

    bends = bending({"memory": without("source_session")})


@fault("BL-MEM-01", cases="memory.a_memory_is_complete")
class MemoryIdAsText(BladeServer):
    """Memories have string ids."""

    bends = bending({"memory": lambda memory: {**memory, "id": f"mem_{memory['id']}"}})


@fault("BL-MEM-02", cases="memory.a_memory_is_feedback_or_experience")
class AnyKindOfMemory(BladeServer):
    """Any type of memory is kept."""

    def check_memory(self, body: Body) -> None:
        self.check_length(body, content=500)


@fault("BL-MEM-03", cases="memory.a_memory_has_1_to_500_characters")
class LongMemory(BladeServer):
    """Memories may be of any length."""

    def check_memory(self, body: Body) -> None:
        super().check_memory({**body, "content": "x"})


@fault("BL-MEM-03", cases="memory.a_memory_has_1_to_500_characters")
class MemoryInBytes(BladeServer):
    """The length of a memory is counted in bytes."""

    def check_memory(self, body: Body) -> None:
        super().check_memory({**body, "content": "x" * len(body.get("content", "x").encode())})


@fault("BL-MEM-04", cases="memory.a_record_type_is_one_of_two")
class InventedRecordType(BladeServer):
    """record_type is note."""

    bends = bending({"memory": setting(record_type="note")})


@fault("BL-MEM-05", cases="memory.a_new_memory_was_never_used")
class UsedFromTheStart(BladeServer):
    """A new memory has a hit."""

    bends = bending({"memory": setting(hit_count=1)})


@fault("BL-REST-16", cases="rest_more.memories_are_kept")
class MemoryKeptWith200(BladeServer):
    """A new memory is answered with 200."""

    async def post_memory(self, request: web.Request) -> web.StreamResponse:
        reply = await super().post_memory(request)
        reply.set_status(200)
        return reply


@fault("BL-REST-16", cases="rest_more.memories_are_paged")
class MemoriesUnpaged(BladeServer):
    """All memories come at once, whatever the limit."""

    def page(self, request: web.Request, longest: int) -> tuple[int, int]:
        return 1000, 0


@fault("BL-REST-16", cases="rest_more.memories_are_handled_in_batches")
class BatchUncounted(BladeServer):
    """A batch does not count."""

    bends = bending({"batch": without("count")})


@fault("BL-REST-16", cases="rest_more.an_empty_batch_is_refused")
class EmptyBatchIsAll(BladeServer):
    """A batch without ids is taken for all memories."""

    async def post_batch(self, request: web.Request) -> web.StreamResponse:
        if (await request.json()).get("ids") == []:
            self.memories.clear()
            return self.reply("batch", {"ok": True, "count": 0})
        return await super().post_batch(request)


# -- keys --------------------------------------------------------------------------------------------------------------


@fault("BL-KEY-01", cases="key.a_key_is_complete")
class KeyWithoutTime(BladeServer):
    """A key does not say when it was made."""

    bends = bending({"key": without("created_at")})


@fault("BL-KEY-02", cases="key.a_masked_key_hides_the_key")
class MaskedByStars(BladeServer):
    """A masked key shows nothing of the key."""

    bends = bending({"key": setting(masked="****")})


@fault("BL-KEY-03", cases="key.a_plaintext_is_told_once")
class PlaintextTwice(BladeServer):
    """The plaintext can be read again."""

    async def get_key(self, request: web.Request) -> web.StreamResponse:
        key = self.take(self.keys, request)
        return self.reply("key", {**key, "plaintext": self.tokens[key["id"]]})


@fault("BL-REST-17", cases="rest_more.keys_are_kept")
class KeyDeletedWith200(BladeServer):
    """A deleted key is answered with 200."""

    async def delete_key(self, request: web.Request) -> web.StreamResponse:
        reply = await super().delete_key(request)
        reply.set_status(200)
        return reply


@fault("BL-REST-17", cases="rest_more.keys_work_as_tokens")
class DeletedKeysWork(BladeServer):
    """A deleted key still works."""

    def forget(self, name: str) -> None:
        """Nothing is forgotten."""


@fault("BL-REST-17", cases="rest_more.keys_work_as_tokens")
class KeysForShow(BladeServer):
    """A new key does not work."""

    def is_known(self, token: Any) -> bool:
        return self.key is None or token == self.key


# -- tasks -------------------------------------------------------------------------------------------------------------


@fault("BL-TASK-01", cases="task.a_task_is_complete")
class CronInWords(BladeServer):
    """cron is a word."""

    bends = bending({"task": setting(cron="daily")})


@fault("BL-TASK-02", cases="task.runs_are_complete")
class RunIsOk(BladeServer):
    """A run has the status ok."""

    bends = bending({"run": setting(status="ok")})


@fault("BL-REST-18", cases="rest_more.tasks_are_kept")
class NeverStopped(BladeServer):
    """A stopped task is still enabled."""

    bends = bending({"task.stopped": setting(enabled=True)})


@fault("BL-REST-18", cases="rest_more.wrong_tasks_are_refused")
class AnyTask(BladeServer):
    """Tasks are not checked."""

    def check_task(self, body: Body) -> None:
        """Nothing is checked."""


@fault("BL-REST-18", cases="rest_more.tasks_have_a_calendar")
class EmptyCalendar(BladeServer):
    """Nothing is ever due."""

    bends = bending({"calendar": instead([])})


@fault("BL-REST-03", cases="rest.other_unknown_things_are_404")
class UnknownThingsAre400(BladeServer):
    """An unknown memory, key or task is a 400."""

    def take(self, shelf: dict[str, Body], request: web.Request) -> Body:
        if request.match_info["id"] not in shelf:
            raise Refusal(400, "there is no such thing")
        return super().take(shelf, request)
