"""Sections memory, key and task: what is created, changed and deleted."""

from collections.abc import Iterator
from typing import Any

from conformance.blade import key, memory, task
from conformance.blade.offline.view import BladeView, done, member
from conformance.blade.schema_owners import SCHEMAS, expect_shape
from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


@rule("BL-MEM-02", "BL-MEM-03", needs="memory of another type, or without 1 to 500 characters")
def wrong_memories_are_refused(view: BladeView) -> Found:
    """A memory is feedback or experience and has 1 to 500 characters; others are refused, or kept as such a one."""
    for item, _ in view.recording.of(f"POST {memory.PATH}"):
        sent = item.sent if isinstance(item.sent, dict) else {}
        content, kind = sent.get("content"), sent.get("type", "feedback")
        is_wrong_content = not isinstance(content, str) or not 1 <= len(content) <= memory.LONGEST
        is_wrong = is_wrong_content or kind not in ("feedback", "experience")
        if item.is_whole and item.status not in (401, 403, 429) and is_wrong:
            yield item
            if item.is_done:
                expect_shape("memory", item.reply.json(), "a memory that is not refused")
            else:
                with expect.owned("BL-MEM-03" if is_wrong_content else "BL-MEM-02"):
                    expect.refused(item.reply, "there is no such memory")


@rule("BL-MEM-02", "BL-MEM-03", "BL-MEM-05", needs="new memory")
def a_new_memory_is_what_it_was_given(view: BladeView) -> Found:
    """A new memory has the content and type it was given, was never used, and is not disabled."""
    for item, _ in done(view, f"POST {memory.PATH}"):
        body, sent = item.reply.json(), item.sent or {}
        given = {"content": sent.get("content"), "type": sent.get("type", "feedback")}
        if SCHEMAS.problems("memory", body) or SCHEMAS.problems("memory", body | given):
            continue  # what was sent is no memory, or what came is none: others judge that
        yield item
        with expect.owned("BL-MEM-03"):
            expect.equal("the content", sent.get("content"), member(body, "content"))
        with expect.owned("BL-MEM-02"):
            expect.equal("the type", sent.get("type", "feedback"), member(body, "type"))
        seen = [member(body, name) for name in ("hit_count", "last_hit_at", "superseded_by", "disabled")]
        expect.that(seen == [0, None, None, False], "no hits, no successor, not disabled", seen, "BL-MEM-05")


def _minted(view: BladeView) -> Iterator[tuple[Exchange, dict[str, Any], str | None]]:
    """Every key that was made, with its plaintext."""
    for item, _ in done(view, f"POST {key.PATH.rstrip('/')}"):
        body = item.reply.json()
        made = member(body, "key") if isinstance(member(body, "key"), dict) else body
        yield item, made, member(body, "plaintext") or member(made, "plaintext")


@rule("BL-KEY-01", "BL-KEY-03", needs="new key")
def a_new_key_is_complete(view: BladeView) -> Found:
    """A new key has id, name, masked and created_at, and its plaintext, this once."""
    for item, made, plaintext in _minted(view):
        yield item
        expect_shape("key", made, "a new API key")
        expect.that(bool(plaintext), "the plaintext of a new key", sorted(made), "BL-KEY-03")


@rule("BL-KEY-02", needs="key")
def a_masked_key_hides_the_key(view: BladeView) -> Found:
    """masked has the ends of the key with dots between."""
    keys = [(item, made) for item, made, _ in _minted(view)]
    keys += [(item, item.reply.json()) for item, _ in done(view, f"GET {key.PATH}{{}}")]
    for item, made in keys:
        yield item
        head, dots, tail = str(member(made, "masked")).partition("...")
        expect.that(bool(head) and bool(dots) and len(tail) <= 8, "masked such as sk-blade-v2-...xxxx", made)


@rule("BL-KEY-03", needs="key that was read after it was made")
def a_plaintext_is_told_once(view: BladeView) -> Found:
    """The plaintext is in the answer that made the key and in no other."""
    for made_by, _, plaintext in _minted(view):
        for item in view.recording.exchanges:
            is_ours = item.path.startswith(key.PATH.rstrip("/")) and item.order > made_by.order and item.is_whole
            if is_ours and plaintext:
                yield item
                expect.that(plaintext not in item.reply.text, "no plaintext", "it is there")
    for item, _ in done(view, f"GET {key.PATH}{{}}"):
        expect.equal("plaintext afterwards", None, member(item.reply.json(), "plaintext"))


@rule("BL-REST-17", needs="key that was deleted")
def keys_come_and_go(view: BladeView) -> Found:
    """A key is made with 201 and deleted with 204, and then it is a 404."""
    for item, _, _ in _minted(view):
        yield item
        expect.status(item.reply, 201)
    gone = {names[0]: item for item, names in done(view, f"DELETE {key.PATH}{{}}")}
    for item in gone.values():
        yield item
        expect.status(item.reply, 204)
    for item, (name,) in view.recording.of(f"GET {key.PATH}{{}}"):
        if name in gone and gone[name].ended < item.order:
            yield item
            expect.status(item.reply, 404)


@rule("BL-REST-16", needs="memory that was made or deleted")
def memories_come_and_go(view: BladeView) -> Found:
    """A memory is made with 201; DELETE answers {ok true} and then it is a 404; batches answer {ok, count}."""
    for item, _ in done(view, f"POST {memory.PATH}"):
        yield item
        expect.status(item.reply, 201)
    gone = {names[0]: item for item, names in done(view, f"DELETE {memory.PATH}/{{}}")}
    for item in gone.values():
        yield item
        expect.equal("ok", True, member(item.reply.json(), "ok"))
    for item, (name,) in view.recording.of(f"GET {memory.PATH}/{{}}"):
        if name in gone and gone[name].ended < item.order and item.is_whole:
            yield item
            expect.status(item.reply, 404)
    for item, _ in done(view, f"POST {memory.PATH}/batch"):
        yield item
        body = item.reply.json()
        wanted = [True, len(member(item.sent, "ids") or [])]
        expect.equal("ok and count", wanted, [member(body, "ok"), member(body, "count")])


@rule("BL-TASK-01", needs="new task")
def a_task_is_what_it_was_given(view: BladeView) -> Found:
    """A task has the title, prompt, cron and timezone it was given."""
    for item, _ in done(view, f"POST {task.PATH}"):
        yield item
        given = {name: item.sent[name] for name in task.TASK if name in (item.sent or {})}
        expect.equal("the task", given, {name: member(item.reply.json(), name) for name in given})


@rule("BL-TASK-02", needs="list of runs of a task")
def runs_are_complete(view: BladeView) -> Found:
    """Whatever runs a task has are complete and name the task."""
    for item, (name,) in done(view, f"GET {task.PATH}/{{}}/runs"):
        yield item
        runs = item.reply.json()
        expect.that(isinstance(runs, list), "a list of runs", runs)
        for run in runs:
            expect_shape("run", run, "a run")
            expect.equal("the task_id of a run", name, run["task_id"])


@rule("BL-REST-18", needs="task that was made, deleted, started or stopped")
def tasks_come_and_go(view: BladeView) -> Found:
    """A task is made with 201; DELETE answers 204 and then it is a 404; start and stop answer whether it is enabled."""
    for item, _ in done(view, f"POST {task.PATH}"):
        yield item
        expect.status(item.reply, 201)
    gone = {names[0]: item for item, names in done(view, f"DELETE {task.PATH}/{{}}")}
    for item in gone.values():
        yield item
        expect.status(item.reply, 204)
    for item, (name,) in view.recording.of(f"GET {task.PATH}/{{}}"):
        if name in gone and gone[name].ended < item.order and item.is_whole:
            yield item
            expect.status(item.reply, 404)
    for verb, enabled in (("stop", False), ("start", True)):
        for item, _ in done(view, f"POST {task.PATH}/{{}}/{verb}"):
            yield item
            expect.equal(f"enabled after {verb}", enabled, member(item.reply.json(), "enabled"))
