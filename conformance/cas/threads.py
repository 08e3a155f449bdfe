"""Section threads: the coordinator, the agents it hands work to, and what is told of them."""

from functools import partial

from conformance.cas import scenes
from conformance.cas.conversation import Conversation
from conformance.cas.examination import Body, CasExamination
from conformance.cas.object_comparison import agree, told_as_listed
from conformance.cas.requirement_owners import need
from conformance.cas.run import Run, text_of
from conformance.cas.scenes import Scene
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable

OF_THREADS = tuple(f"session.thread_{what}" for what in ("created", "status_running", "status_idle"))
MESSAGES = ("agent.thread_message_sent", "agent.thread_message_received")


async def _thread(exam: CasExamination, talk: Conversation, name: str) -> Body:
    reply = await exam.ask("GET", f"{talk.path}/threads/{name}")
    if reply.status == 404:
        raise NotTestable(f"the server shows no threads: {reply.asked} is a 404")
    with expect.owned("CAS-THR-02"):
        expect.status(reply, 200)
    found: Body = exam.fitting("thread", reply)
    return found


def _child(run: Run) -> Body:
    """What was told of the one new thread."""
    return run.one("session.thread_created")


def _listed(scene: Scene, name: str, thread: str) -> Body:
    """The thread of this id, as it was listed after this POST."""
    threads = scene.threads(name)
    found = (item for item in threads if item["id"] == thread)
    with expect.owned("CAS-THR-01"):
        return expect.first(f"the thread {thread} in the list", found, threads)


@requirement("CAS-THR-01")
async def a_coordinator_is_a_thread(exam: CasExamination) -> None:
    """Every session has a coordinator, without parent and without cause, of the session's agent."""
    talk = await exam.open()
    threads = await talk.threads()
    expect.equal("the roles", ["coordinator"], [thread["role"] for thread in threads])
    coordinator = threads[0]
    wanted = {"session_id": talk.id, "role": "coordinator", "parent_thread_id": None, "created_by_tool_use_id": None}
    wanted |= {"agent_id": talk.session["agent_id"], "archived_at": None}
    expect.equal("the coordinator", wanted, {name: coordinator[name] for name in wanted})
    expect.equal("the agent's version", coordinator["agent_version"], coordinator["agent"]["version"])
    session = await exam.agreed(talk, "agent")
    caught = {name: value for name, value in session["agent"].items() if name in ("id", "name", "version")}
    agree("the agent of the coordinator", caught, coordinator["agent"])


@requirement("CAS-THR-01")
async def a_child_is_a_thread(exam: CasExamination) -> None:
    """The thread of another agent has the coordinator as parent and says what made it."""
    scene = await scenes.forked(exam)
    created = _child(scene.run("fork"))
    threads = {thread["role"]: thread for thread in scene.threads("fork")}
    expect.subset("the roles", ["coordinator", "child"], threads)
    coordinator, child = threads["coordinator"], threads["child"]
    wanted = {"id": created["session_thread_id"], "session_id": scene.session["id"], "role": "child"}
    wanted |= {name: created[name] for name in ("parent_thread_id", "agent_id", "agent_version")}
    wanted |= {"created_by_tool_use_id": created["created_by_tool_use_id"], "parent_thread_id": coordinator["id"]}
    wanted |= {"archived_at": None}
    expect.equal("the child", wanted, {name: child[name] for name in wanted})


@requirement("CAS-THR-02")
async def threads_are_listed_and_read(exam: CasExamination) -> None:
    """The coordinator comes first, each thread can be read, and an unknown one is a 404."""
    scene = await scenes.forked(exam)
    created, talk = _child(scene.run("fork")), scene.talk(exam)
    listed = await talk.threads()
    expect.equal("the roles", ["coordinator", "child"], [thread["role"] for thread in listed])
    with expect.owned("CAS-THR-01"):
        expect.equal("the child's id", created["session_thread_id"], listed[1]["id"])
    for thread in listed:
        read = await exam.have("thread", "GET", f"{talk.path}/threads/{thread['id']}")
        agree("the thread", thread, read)
    for path in ("", "/events", "/stream"):
        exam.refused(await exam.ask("GET", f"{talk.path}/threads/{exam.stranger('sthr')}{path}"), 404)


@requirement("CAS-THR-02")
async def a_thread_has_events_of_its_own(exam: CasExamination) -> None:
    """Its list has only events of that thread, and its stream tells the same."""
    scene = await scenes.forked(exam)
    created, talk = _child(scene.run("fork")), scene.talk(exam)
    path = f"/threads/{created['session_thread_id']}"
    query = {"limit": "100", "order": "asc"}
    page = await exam.have("events", "GET", f"{talk.path}{path}/events", query=query)
    names = [event["id"] for event in page["data"]]
    expect.that(bool(names), "events of the thread", page)
    strange = [event for event in page["data"] if created["session_thread_id"] not in parties(event)]
    expect.equal("events of other threads", [], strange)
    async with talk.follow({"after_id": names[0]}, path=f"{path}/stream") as follower:
        seen = await follower.until(lambda event: event["id"] == names[-1], "the last event of the thread")
    told = [event["id"] for event in seen]
    expect.subset("the events of the thread", told, names)
    with expect.owned("CAS-SSE-03"):
        expect.equal("the events after the first", names[1:], told)


def parties(event: Body) -> list[object]:
    """The threads an event belongs to, comes from or goes to."""
    return [event.get(f"{end}session_thread_id") for end in ("", "from_", "to_")]


@requirement("CAS-THR-02")
async def a_cursor_must_be_of_the_thread(exam: CasExamination) -> None:
    """Resuming a thread's stream after an event of another thread is a 400."""
    scene = await scenes.forked(exam)
    run = scene.run("fork")
    path = f"{scene.talk(exam).path}/threads/{_child(run)['session_thread_id']}/stream"
    exam.refused(await exam.ask("GET", path, query={"after_id": run.events[0]["id"]}), 400)


@requirement("CAS-THR-02", "CAS-THR-04")
async def a_child_can_be_archived(exam: CasExamination) -> None:
    """An archived thread says so, with the stop reason archive; the coordinator cannot be archived."""
    talk = await exam.open()
    created = _child(await talk.say(exam.profile.prompt("fork")))
    coordinators = [thread for thread in await talk.threads() if thread["role"] == "coordinator"]
    for coordinator in coordinators:
        with expect.owned("CAS-THR-02"):
            exam.refused(await exam.ask("POST", f"{talk.path}/threads/{coordinator['id']}/archive", {}), 409)
    path = f"{talk.path}/threads/{created['session_thread_id']}"
    with expect.owned("CAS-THR-02"):
        await exam.have("thread", "POST", f"{path}/archive", {})
        thread = await exam.have("thread", "GET", path)
        expect.that(thread["archived_at"] is not None, "archived_at to be set", thread, "CAS-THR-01")
        expect.member("the status", ("archived", "terminated"), thread["status"])
    with expect.owned("CAS-THR-04"):
        expect.equal("the stop reason", "archive", thread["stop_reason"].get("type"))


@requirement("CAS-THR-03")
async def a_childs_life_is_told(exam: CasExamination) -> None:
    """created, running and idle come in order, each with the child's id."""
    run = (await scenes.forked(exam)).run("fork").stopped("end_turn").spoke()
    child = _child(run)["session_thread_id"]
    told = [event["type"] for event in run.of(*OF_THREADS) if event["session_thread_id"] == child]
    first = [told.index(kind) if kind in told else -1 for kind in OF_THREADS]
    expect.that(-1 not in first and first == sorted(first), "created, running and idle in this order", told)
    reasons = [event["stop_reason"] for event in run.of(OF_THREADS[2]) if event["session_thread_id"] == child]
    with expect.owned("CAS-THR-04"):
        expect.equal("the last stop reason of the child", "end_turn", reasons[-1].get("type"))


@requirement("CAS-THR-03")
async def messages_between_threads_are_told(exam: CasExamination) -> None:
    """What the coordinator sends and what the child answers is told, with both ends named."""
    run = (await scenes.forked(exam)).run("fork")
    created, sent, received = _child(run), run.one(MESSAGES[0]), run.one(MESSAGES[1])
    need("event.session.thread_created", created, "parent_thread_id", "session_thread_id")
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
    scene = await scenes.fork_asked(exam)
    run = scene.run("fork_ask").stopped("requires_action")
    child = _child(run)["session_thread_id"]
    idle = [event for event in run.of(OF_THREADS[2]) if event["session_thread_id"] == child]
    expect.that(bool(idle), f"a {OF_THREADS[2]} of the child that waits", run.kinds, "CAS-THR-03")
    scene.run("answered").stopped("end_turn").spoke()
    with expect.owned("CAS-THR-04"):
        expect.equal("the child's stop reason", {"requires_action"}, set(map(_why, idle)))
        thread = _listed(scene, "fork_ask", child)
        expect.member("the status of the waiting child", ("idle", "blocked"), thread["status"])
        expect.equal("its stop reason", "requires_action", _why(thread))
        expect.equal("the stop reason in the end", "end_turn", _why(_listed(scene, "answered", child)))


@requirement("CAS-THR-04")
async def a_running_thread_has_no_reason(exam: CasExamination) -> None:
    """While a turn runs its coordinator is running, with an empty stop reason; afterwards it says end_turn."""
    scene = await scenes.running(exam)
    coordinator = scene.coordinator("begun")
    seen = (coordinator["status"], coordinator["stop_reason"])
    async with expect.while_it_runs(partial(scene.was_over, "begun")):
        expect.equal("status and stop reason while it runs", ("running", {}), seen)
    coordinator = scene.coordinator("slow")
    seen = (coordinator["status"], coordinator["stop_reason"].get("type"))
    expect.equal("status and stop reason afterwards", ("idle", "end_turn"), seen)


@requirement("CAS-THR-04")
async def a_waiting_coordinator_says_so(exam: CasExamination) -> None:
    """While a call waits its coordinator says requires_action; once interrupted, neither that nor end_turn."""
    scene = await scenes.decided(exam)
    scene.run("asked").stopped("requires_action")
    expect.equal("the stop reason of the coordinator", "requires_action", _why(scene.coordinator("asked")))
    talk = await exam.open()
    (await talk.say(exam.profile.server_tool("asked_tool").prompt)).stopped("requires_action")
    run = await _interrupted(talk)
    for thread in await talk.threads():
        _was_cut(run, thread)


@requirement("CAS-THR-04")
async def an_interrupted_child_was_not_done(exam: CasExamination) -> None:
    """The turn of a child that waits is interrupted: no thread of it says end_turn, which means normal completion."""
    talk = await exam.open()
    created = _child((await talk.say(exam.profile.prompt("fork_ask"))).stopped("requires_action"))
    before = len(await talk.events())
    run = await _interrupted(talk)
    told_as_listed(await talk.events(), before, list(run.events))
    told = [event for event in run.of(OF_THREADS[2]) if event["session_thread_id"] == created["session_thread_id"]]
    expect.that("end_turn" not in map(_why, told), "no end_turn of the interrupted child", told)
    for thread in await talk.threads():
        _was_cut(run, thread)


@requirement("CAS-THR-04")
async def a_failed_thread_was_not_done(exam: CasExamination) -> None:
    """After a turn that failed its coordinator does not say end_turn, which means normal completion."""
    scene = await scenes.failed(exam)
    _was_cut(scene.run("fail"), scene.coordinator("fail"))


async def _interrupted(talk: Conversation) -> Run:
    """What comes of an interrupt; if the turn does not end, it is the interrupt's failure."""
    try:
        return await talk.send({"type": "user.interrupt"})
    except Failed as failure:
        is_untold = failure.owner == "CAS-EV-12"
        raise Failed(failure.expected, failure.seen, "CAS-EV-05" if is_untold else failure.owner) from failure


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
    scene = await scenes.forked(exam)
    name = _child(scene.run("fork"))["session_thread_id"]
    thread = await _thread(exam, scene.talk(exam), name)
    with expect.owned("CAS-THR-01"):
        agree("the thread, listed and read", _listed(scene, "fork", name), thread)
    expect.member("the status", ("idle", "terminated"), thread["status"])
    expect.equal("the stop reason", "end_turn", thread["stop_reason"].get("type"))
