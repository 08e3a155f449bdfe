"""CAS servers whose threads are wrong."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body, Talk, mint, now
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault

COORDINATOR, CHILD = "threads.a_coordinator_is_a_thread", "threads.a_child_is_a_thread"
LISTED, OWN = "threads.threads_are_listed_and_read", "threads.a_thread_has_events_of_its_own"
CURSOR, ARCHIVED = "threads.a_cursor_must_be_of_the_thread", "threads.a_child_can_be_archived"
LIFE, MESSAGES = "threads.a_childs_life_is_told", "threads.messages_between_threads_are_told"
ASKS, FINISHED = "threads.a_child_can_ask", "threads.a_finished_child_says_so"


class _Showing(CasServer):
    """Shows threads otherwise than they are."""

    def changed(self, thread: Body) -> Body:
        return thread

    def shown_thread(self, talk: Talk, thread: Body) -> Body:
        return self.changed(dict(super().shown_thread(talk, thread)))


@fault("CAS-THR-01", cases=f"{COORDINATOR} {CHILD}")
class VersionUntold(_Showing):
    """A thread has no agent_version."""

    def changed(self, thread: Body) -> Body:
        del thread["agent_version"]
        return thread


@fault("CAS-THR-01", cases=COORDINATOR)
class CoordinatorWithParent(_Showing):
    """The coordinator is its own parent."""

    def changed(self, thread: Body) -> Body:
        return thread | {"parent_thread_id": thread["parent_thread_id"] or thread["id"]}


@fault("CAS-THR-01", cases=CHILD)
class CauseForgotten(_Showing):
    """A child does not say what made it."""

    def changed(self, thread: Body) -> Body:
        return thread | {"created_by_tool_use_id": None}


@fault("CAS-THR-01", "CAS-THR-02", cases=f"{COORDINATOR} {CHILD} {LISTED}")
class ChildrenOnly(CasServer):
    """The coordinator is not listed."""

    async def get_threads(self, request: web.Request) -> web.StreamResponse:
        talk = self.find(request)
        return reply(self.page(request, [thread for thread in talk.threads.values() if thread["role"] == "child"]))


@fault("CAS-THR-02", cases=LISTED)
class ChildrenFirst(CasServer):
    """The coordinator is listed last."""

    async def get_threads(self, request: web.Request) -> web.StreamResponse:
        talk = self.find(request)
        self.coordinator(talk)
        return reply(self.page(request, list(talk.threads.values())[::-1]))


@fault("CAS-THR-02", cases=f"{OWN} {CURSOR}")
class OneStreamForAllThreads(CasServer):
    """A thread's stream and its cursors are those of the session."""

    def is_of(self, event: Body, talk: Talk, thread: str | None) -> bool:
        return True


@fault("CAS-THR-02", cases=OWN)
class EventsOfAllThreads(CasServer):
    """A thread's list has the events of all threads."""

    async def get_thread_events(self, request: web.Request) -> web.StreamResponse:
        talk, _ = self.thread(request)
        return reply(self.page(request, self.chosen(request, talk.events)))


@fault("CAS-THR-02", cases=ARCHIVED)
class CoordinatorArchived(CasServer):
    """The coordinator can be archived."""

    async def archive_thread(self, request: web.Request) -> web.StreamResponse:
        talk, thread = self.thread(request)
        thread |= {"status": "archived", "stop_reason": {"type": "archive"}, "archived_at": now()}
        return reply(self.shown_thread(talk, thread))


@fault("CAS-THR-02", "CAS-THR-04", cases=ARCHIVED)
class ArchivedWithoutReason(_Showing):
    """An archived thread still says end_turn."""

    def changed(self, thread: Body) -> Body:
        return thread | ({"stop_reason": {"type": "end_turn"}} if thread["archived_at"] else {})


@fault("CAS-THR-03", cases=f"{LIFE} {MESSAGES} {ASKS}")
class ChildrenUnannounced(CasServer):
    """A new thread is not told."""

    def announce(self, talk: Talk, child: Body) -> None:
        return None


@fault("CAS-THR-03", cases=f"{LIFE} {MESSAGES}")
class ThreadUnnamed(CasServer):
    """Events of threads do not say which."""

    def emit_of(self, talk: Talk, thread: Body, kind: str, **told: Any) -> Body:
        return self.emit(talk, kind, **told)


@fault("CAS-THR-03", cases=LIFE)
class ChildrenNeverIdle(CasServer):
    """That a child is done is not told."""

    def emit_of(self, talk: Talk, thread: Body, kind: str, **told: Any) -> Body:
        return {} if kind == "session.thread_status_idle" else super().emit_of(talk, thread, kind, **told)


@fault("CAS-THR-03", cases=MESSAGES)
class EndsSwapped(CasServer):
    """Messages between threads come from where they go."""

    def emit_of(self, talk: Talk, thread: Body, kind: str, **told: Any) -> Body:
        ends = ("from_session_thread_id", "to_session_thread_id")
        if ends[0] in told:
            told |= {ends[0]: told[ends[1]], ends[1]: told[ends[0]]}
        return super().emit_of(talk, thread, kind, **told)


@fault("CAS-THR-03", "CAS-THR-04", cases=ASKS)
class WaitingIsDone(CasServer):
    """A child that waits says it is done."""

    def move(self, talk: Talk, thread: Body, status: str, reason: Body, shown: str | None = None) -> None:
        is_waiting = reason.get("type") == "requires_action"
        super().move(talk, thread, status, {"type": "end_turn"} if is_waiting else reason, shown)


@fault("CAS-THR-04", cases=FINISHED)
class DoneWithoutReason(_Showing):
    """A child that is done has no stop reason."""

    def changed(self, thread: Body) -> Body:
        return thread | ({"stop_reason": {}} if thread["role"] == "child" else {})


@fault("CAS-THR-04", cases="threads.a_running_thread_has_no_reason")
class RunningWithReason(_Showing):
    """A thread that runs says why it stopped."""

    def changed(self, thread: Body) -> Body:
        return thread | {"stop_reason": thread["stop_reason"] or {"type": "end_turn"}}


class _Done(_Showing):
    """Shows threads as done that are not."""

    role: str
    reason: str

    def changed(self, thread: Body) -> Body:
        is_meant = thread["role"] == self.role and thread["stop_reason"].get("type") == self.reason
        return thread | ({"stop_reason": {"type": "end_turn"}} if is_meant else {})


@fault("CAS-THR-04", cases="threads.a_waiting_coordinator_says_so threads.an_interrupted_child_was_not_done")
class InterruptedCoordinatorsDone(_Done):
    """The coordinator of an interrupted turn says it is done."""

    role, reason = "coordinator", "cancelled"


@fault("CAS-THR-04", cases="threads.a_waiting_coordinator_says_so")
class WaitingCoordinatorsDone(_Done):
    """The coordinator of a turn that waits says it is done."""

    role, reason = "coordinator", "requires_action"


@fault("CAS-THR-04", cases="threads.a_failed_thread_was_not_done")
class FailedCoordinatorsDone(_Done):
    """The coordinator of a turn that failed says it is done."""

    role, reason = "coordinator", "error"


@fault("CAS-THR-04", cases="threads.an_interrupted_child_was_not_done")
class InterruptedChildrenDone(_Done):
    """A child whose turn was interrupted says it is done."""

    role, reason = "child", "cancelled"


@fault("CAS-THR-04", cases="threads.an_interrupted_child_was_not_done")
class InterruptedChildrenEnd(CasServer):
    """It is told of a child whose turn was interrupted that it is done."""

    def emit_of(self, talk: Talk, thread: Body, kind: str, **told: Any) -> Body:
        is_cut = told.get("stop_reason") == {"type": "cancelled"}
        return super().emit_of(talk, thread, kind, **told | ({"stop_reason": {"type": "end_turn"}} if is_cut else {}))


@fault("CAS-THR-02", cases=CURSOR)
class AnyCursorInThreads(CasServer):
    """A thread's stream takes cursors of other threads."""

    def unknown_cursor(self, talk: Talk, cursor: str) -> int:
        return len(talk.feed)


@fault("CAS-THR-01", cases=CHILD)
class OtherChildren(_Showing):
    """A child's id in the list is not the one that was told."""

    def changed(self, thread: Body) -> Body:
        return thread | ({"id": mint("sthr")} if thread["role"] == "child" else {})
