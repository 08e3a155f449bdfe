"""Section threads: the coordinator, the agents it hands work to, and what is told of them."""

from functools import partial

from conformance.cas.agreement import agree
from conformance.cas.events import told_as_listed
from conformance.cas.examination import Body, CasExamination
from conformance.cas.listing import sound
from conformance.cas.run import Run, answer, text_of
from conformance.cas.talk import Talk, is_idle
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.http import Reply

OF_THREADS = tuple(f"session.thread_{what}" for what in ("created", "status_running", "status_idle"))
MESSAGES = ("agent.thread_message_sent", "agent.thread_message_received")


async def _threads(exam: CasExamination, talk: Talk) -> list[Body]:
    """The threads as they are listed; lists of threads are no MUST, what is in them is."""
    found: list[Body] = sound(exam.fitting("threads", await _offered(exam, f"{talk.path}/threads")))["data"]
    return found


async def _thread(exam: CasExamination, talk: Talk, name: str) -> Body:
    found: Body = exam.fitting("thread", await _offered(exam, f"{talk.path}/threads/{name}"))
    return found


async def _offered(exam: CasExamination, path: str) -> Reply:
    reply = await exam.ask("GET", path)
    if reply.status == 404:
        raise NotTestable(f"the server shows no threads: {reply.asked} is a 404")
    return expect.status(reply, 200)


async def _coordinator(exam: CasExamination, talk: Talk) -> Body:
    found = [thread for thread in await _threads(exam, talk) if thread["role"] == "coordinator"]
    expect.that(len(found) == 1, "one coordinator", found)
    return found[0]


async def _forked(exam: CasExamination, prompt: str = "fork") -> tuple[Talk, Run, Body]:
    """A session that handed something to another agent, its turn, and what was said of the new thread."""
    talk = await exam.open()
    run = await talk.say(exam.profile.prompt(prompt))
    return talk, run, run.one("session.thread_created")


@requirement("CAS-THR-01")
async def a_coordinator_is_a_thread(exam: CasExamination) -> None:
    """Every session has a coordinator, without parent and without cause, of the session's agent."""
    talk = await exam.open()
    threads = await _threads(exam, talk)
    expect.equal("the roles", ["coordinator"], [thread["role"] for thread in threads])
    coordinator = threads[0]
    wanted = {"session_id": talk.id, "role": "coordinator", "parent_thread_id": None, "created_by_tool_use_id": None}
    wanted |= {"agent_id": talk.session["agent_id"], "archived_at": None}
    expect.equal("the coordinator", wanted, {name: coordinator[name] for name in wanted})
    expect.equal("the agent's version", coordinator["agent_version"], coordinator["agent"]["version"])
    caught = {name: value for name, value in talk.session["agent"].items() if name in ("id", "name", "version")}
    agree("the agent of the coordinator", caught, coordinator["agent"])


@requirement("CAS-THR-01")
async def a_child_is_a_thread(exam: CasExamination) -> None:
    """The thread of another agent has the coordinator as parent and says what made it."""
    talk, _, created = await _forked(exam)
    threads = {thread["role"]: thread for thread in await _threads(exam, talk)}
    expect.subset("the roles", ["coordinator", "child"], threads)
    coordinator, child = threads["coordinator"], threads["child"]
    wanted = {"id": created["session_thread_id"], "session_id": talk.id, "role": "child", "archived_at": None}
    wanted |= {name: created[name] for name in ("parent_thread_id", "agent_id", "agent_version")}
    wanted |= {"created_by_tool_use_id": created["created_by_tool_use_id"], "parent_thread_id": coordinator["id"]}
    expect.equal("the child", wanted, {name: child[name] for name in wanted})


@requirement("CAS-THR-02")
async def threads_are_listed_and_read(exam: CasExamination) -> None:
    """The coordinator comes first, each thread can be read, and an unknown one is a 404."""
    talk, _, created = await _forked(exam)
    listed = await _threads(exam, talk)
    expect.equal("the roles", ["coordinator", "child"], [thread["role"] for thread in listed])
    expect.equal("the child's id", created["session_thread_id"], listed[1]["id"])
    for thread in listed:
        read = await exam.have("thread", "GET", f"{talk.path}/threads/{thread['id']}")
        agree("the thread", thread, read)
    for path in ("", "/events", "/stream"):
        exam.refused(await exam.ask("GET", f"{talk.path}/threads/{exam.stranger('sthr')}{path}"), 404)


@requirement("CAS-THR-02")
async def a_thread_has_events_of_its_own(exam: CasExamination) -> None:
    """Its list has only events of that thread, and its stream tells the same."""
    talk, _, created = await _forked(exam)
    path = f"/threads/{created['session_thread_id']}"
    page = await exam.have("events", "GET", f"{talk.path}{path}/events", query={"limit": "100"})
    names = [event["id"] for event in page["data"]]
    expect.that(bool(names), "events of the thread", page)
    strange = [event for event in page["data"] if created["session_thread_id"] not in parties(event)]
    expect.equal("events of other threads", [], strange)
    async with talk.follow({"after_id": names[0]}, path=f"{path}/stream") as follower:
        seen = await follower.until(lambda event: event["id"] == names[-1], "the last event of the thread")
    expect.equal("the events after the first", names[1:], [event["id"] for event in seen])


def parties(event: Body) -> list[object]:
    """The threads an event belongs to, comes from or goes to."""
    return [event.get(f"{end}session_thread_id") for end in ("", "from_", "to_")]


@requirement("CAS-THR-02")
async def a_cursor_must_be_of_the_thread(exam: CasExamination) -> None:
    """Resuming a thread's stream after an event of another thread is a 400."""
    talk, run, created = await _forked(exam)
    path = f"{talk.path}/threads/{created['session_thread_id']}/stream"
    exam.refused(await exam.ask("GET", path, query={"after_id": run.events[0]["id"]}), 400)


@requirement("CAS-THR-02", "CAS-THR-04")
async def a_child_can_be_archived(exam: CasExamination) -> None:
    """An archived thread says so, with the stop reason archive; the coordinator cannot be archived."""
    talk, _, created = await _forked(exam)
    coordinator = await _coordinator(exam, talk)
    exam.refused(await exam.ask("POST", f"{talk.path}/threads/{coordinator['id']}/archive", {}), 409)
    path = f"{talk.path}/threads/{created['session_thread_id']}"
    await exam.have("thread", "POST", f"{path}/archive", {})
    thread = await exam.have("thread", "GET", path)
    expect.that(thread["archived_at"] is not None, "archived_at to be set", thread)
    expect.equal("the stop reason", "archive", thread["stop_reason"].get("type"))
    expect.member("the status", ("archived", "terminated"), thread["status"])


@requirement("CAS-THR-03")
async def a_childs_life_is_told(exam: CasExamination) -> None:
    """created, running and idle come in order, each with the child's id."""
    _, run, created = await _forked(exam)
    run.stopped("end_turn").spoke()
    child = created["session_thread_id"]
    told = [event["type"] for event in run.of(*OF_THREADS) if event["session_thread_id"] == child]
    first = [told.index(kind) if kind in told else -1 for kind in OF_THREADS]
    expect.that(-1 not in first and first == sorted(first), "created, running and idle in this order", told)
    reasons = [event["stop_reason"] for event in run.of(OF_THREADS[2]) if event["session_thread_id"] == child]
    expect.equal("the last stop reason of the child", "end_turn", reasons[-1].get("type"))


@requirement("CAS-THR-03")
async def messages_between_threads_are_told(exam: CasExamination) -> None:
    """What the coordinator sends and what the child answers is told, with both ends named."""
    _, run, created = await _forked(exam)
    sent, received = run.one(MESSAGES[0]), run.one(MESSAGES[1])
    parent, child = created["parent_thread_id"], created["session_thread_id"]
    expect.equal("the ends of the sent message", (parent, child), ends(sent))
    expect.equal("the ends of the received message", (child, parent), ends(received))
    expect.equal("is_error", False, received["is_error"])
    for event in (sent, received):
        expect.that(bool(text_of(event["content"])), "a message that says something", event)


def ends(event: Body) -> tuple[str, str]:
    """Where a message comes from, and where it goes."""
    return event["from_session_thread_id"], event["to_session_thread_id"]


@requirement("CAS-THR-03", "CAS-THR-04")
async def a_child_can_ask(exam: CasExamination) -> None:
    """A child that waits says requires_action, and so does the session; once answered both come to their end."""
    talk, run, created = await _forked(exam, "fork_ask")
    child, pending = created["session_thread_id"], run.pending
    idle = [event for event in run.of(OF_THREADS[2]) if event["session_thread_id"] == child]
    expect.equal("the child's stop reason", ["requires_action"], [event["stop_reason"].get("type") for event in idle])
    thread = await _thread(exam, talk, child)
    expect.member("the status of the waiting child", ("idle", "blocked"), thread["status"])
    expect.equal("its stop reason", "requires_action", thread["stop_reason"].get("type"))
    (await talk.send(*map(answer, pending))).stopped("end_turn").spoke()
    thread = await _thread(exam, talk, child)
    expect.equal("the stop reason in the end", "end_turn", thread["stop_reason"].get("type"))


@requirement("CAS-THR-04")
async def a_running_thread_has_no_reason(exam: CasExamination) -> None:
    """While a turn runs its coordinator is running, with an empty stop reason; afterwards it says end_turn."""
    talk = await exam.open()
    async with talk.follow() as follower:
        accepted = await talk.begin(exam.profile.prompt("slow"), follower)
        coordinator = await _coordinator(exam, talk)
        seen = (coordinator["status"], coordinator["stop_reason"])
        async with expect.while_it_runs(partial(talk.is_over, accepted)):
            expect.equal("status and stop reason while it runs", ("running", {}), seen)
        await follower.until(is_idle, "session.status_idle")
    coordinator = await _coordinator(exam, talk)
    seen = (coordinator["status"], coordinator["stop_reason"].get("type"))
    expect.equal("status and stop reason afterwards", ("idle", "end_turn"), seen)


@requirement("CAS-THR-04")
async def a_waiting_coordinator_says_so(exam: CasExamination) -> None:
    """While a call waits its coordinator says requires_action; once interrupted, neither that nor end_turn."""
    talk = await exam.open()
    (await talk.say(exam.profile.server_tool("asked_tool").prompt)).stopped("requires_action")
    expect.equal("the stop reason of the coordinator", "requires_action", _why(await _coordinator(exam, talk)))
    run = await talk.send({"type": "user.interrupt"})
    _was_cut(run, await _coordinator(exam, talk))


@requirement("CAS-THR-04")
async def an_interrupted_child_was_not_done(exam: CasExamination) -> None:
    """The turn of a child that waits is interrupted: no thread of it says end_turn, which means normal completion."""
    talk, _, created = await _forked(exam, "fork_ask")
    before = len(await talk.events())
    run = await talk.send({"type": "user.interrupt"})
    await told_as_listed(talk, before, list(run.events))
    told = [event for event in run.of(OF_THREADS[2]) if event["session_thread_id"] == created["session_thread_id"]]
    expect.that("end_turn" not in map(_why, told), "no end_turn of the interrupted child", told)
    for thread in await _threads(exam, talk):
        _was_cut(run, thread)


@requirement("CAS-THR-04")
async def a_failed_thread_was_not_done(exam: CasExamination) -> None:
    """After a turn that failed its coordinator does not say end_turn, which means normal completion."""
    talk = await exam.open()
    run = await talk.say(exam.profile.prompt("fail"))
    _was_cut(run, await _coordinator(exam, talk))


def _why(about: Body) -> str | None:
    found: str | None = about["stop_reason"].get("type")
    return found


def _was_cut(run: Run, thread: Body) -> None:
    """Expect a thread that ended before its time to say so, in the word of the session's own end."""
    is_cut = run.stop not in ("end_turn", "requires_action")
    expect.that(is_cut, "a turn that was cut to say so", run.idle, "CAS-EV-20")
    seen = (thread["status"] == "running", _why(thread))
    expect.equal(f"whether the {thread['role']} runs, and its stop reason", (False, run.stop), seen)


@requirement("CAS-THR-04")
async def a_finished_child_says_so(exam: CasExamination) -> None:
    """After the turn the child is no longer running, and its stop reason is end_turn."""
    talk, _, created = await _forked(exam)
    thread = await _thread(exam, talk, created["session_thread_id"])
    listed = [item for item in await _threads(exam, talk) if item["id"] == created["session_thread_id"]]
    agree("the thread, listed and read", listed, [thread])
    expect.member("the status", ("idle", "terminated"), thread["status"])
    expect.equal("the stop reason", "end_turn", thread["stop_reason"].get("type"))
