"""Section events, turns: their order, their ends, their parts, and what carries which id."""

from functools import partial

from conformance.cas import scenes
from conformance.cas.examination import CasExamination
from conformance.cas.requirement_owners import note_misfits
from conformance.cas.run import Body, Run, is_piece, message, text_of
from conformance.kit import expect
from conformance.kit.case import requirement

BESIDE_TURNS = ("session.updated", "user.define_outcome", "user.interrupt", "session.deleted")
"""Events of which nobody says that they belong to a turn."""


def carries(run: Run, turn: str) -> None:
    """Expect every event of the run to carry this turn_id; pieces of events are not judged by it."""
    for event in (*run.accepted, *run.events):
        if event["type"] not in BESIDE_TURNS and not is_piece(event):
            with expect.owned("CAS-EV-10"):
                expect.equal(f"turn_id of {event['type']}", turn, event.get("turn_id"))


@requirement("CAS-EV-10")
async def a_turn_has_one_id(exam: CasExamination) -> None:
    """The answer to the POST, every streamed event, idle included, and every listed one carry the same turn_id."""
    scene = await scenes.replies(exam)
    turns: list[str] = []
    for run in scene.runs:
        turn = run.accepted[0].get("turn_id")
        expect.that(isinstance(turn, str), "the accepted message to have a turn_id", run.accepted[0])
        carries(run, str(turn))
        turns.append(str(turn))
    expect.that(len(set(turns)) == len(turns), "another turn to have another turn_id", turns)
    listed = {event.get("turn_id") for event in scene.listed if event["type"] not in BESIDE_TURNS}
    expect.equal("the turn_ids in the list", sorted(turns), sorted(str(turn) for turn in listed))


@requirement("CAS-EV-10")
async def a_resumed_turn_keeps_its_id(exam: CasExamination) -> None:
    """A turn that waited for an answer goes on under its id; the answers carry it too."""
    scene = await scenes.decided(exam)
    for asked, answered in (("asked", "allowed"), ("asked again", "denied")):
        turn = str(scene.run(asked).accepted[0].get("turn_id"))
        carries(scene.run(asked), turn)
        carries(scene.run(answered), turn)


@requirement("CAS-EV-12")
async def a_message_in_place_of_an_answer_has_a_turn_of_its_own(exam: CasExamination) -> None:
    """Where a message is taken while a call waits, what follows it up to the next idle is its own turn, idle too."""
    talk = await exam.open()
    run = (await talk.say(exam.profile.server_tool("asked_tool").prompt)).stopped("requires_action")
    async with talk.follow({"after_id": run.idle["id"]}) as follower:
        reply = await talk.attempt({"events": [message(exam.profile.prompt("text"))]})
        if reply.status != 202:
            exam.refused(reply, 409)
            return
        accepted = exam.fitting("accepted", reply)["data"]
        rest = await follower.run("a message in place of the answer", accepted)
    is_other = run.idle.get("turn_id") != accepted[0].get("turn_id")
    expect.that(is_other, "another turn_id for the message", accepted, "CAS-EV-10")
    carries(rest, str(accepted[0].get("turn_id")))


@requirement("CAS-EV-12")
async def a_turn_is_told_in_order(exam: CasExamination) -> None:
    """user.message, status_running, spans around what the agent says and calls, and status_idle only at the end."""
    for run in (await scenes.replies(exam)).runs:
        kinds = [event["type"] for event in run.stopped("end_turn").spoke().root]
        expect.equal("the first two events", ["user.message", "session.status_running"], kinds[:2])
        expect.equal("the starts of the turn", 1, kinds.count("session.status_running"))
        in_spans(kinds)


def in_spans(kinds: list[str]) -> None:
    """Every span that begins ends, and the model says nothing outside of one."""
    is_open, spans = False, 0
    for kind in kinds:
        if kind in ("span.model_request_start", "span.model_request_end"):
            expect.that(is_open is (kind == "span.model_request_end"), "spans to begin and end in turn", kinds)
            is_open, spans = not is_open, spans + 1
        elif kind in ("agent.message", "agent.thinking"):
            expect.that(is_open, f"{kind} within a model request", kinds)
        elif kind == "agent.tool_use":
            expect.that(spans > 0, f"{kind} after a model request has begun", kinds)
    expect.that(spans > 0 and not is_open, "every model request to end before the turn", kinds)


@requirement("CAS-EV-13")
async def idle_says_why(exam: CasExamination) -> None:
    """A turn that is done, one that waits, and one that is done after waiting say so, with their usage."""
    (await scenes.replies(exam)).run("text").stopped("end_turn")
    scene = await scenes.decided(exam)
    scene.run("asked").stopped("requires_action")
    scene.run("allowed").stopped("end_turn")


@requirement("CAS-EV-20")
async def an_end_before_its_time_says_so(exam: CasExamination) -> None:
    """end_turn is a natural end and nothing else: what fails, is cut off, refused or interrupted has its own reason."""
    if exam.profile.prompts.fail is not None:
        (await scenes.failed(exam)).run("fail").stopped("error", owner="CAS-EV-20")
    for situation, reason in scenes.CUT.items():
        if getattr(exam.profile.prompts, situation) is not None:
            (await scenes.cut(exam)).run(situation).stopped(reason, owner="CAS-EV-20")
    scene = await scenes.interrupted(exam)
    run, whole = scene.run("slow"), (await scenes.running(exam)).run("slow").text
    async with expect.while_it_runs(partial(scene.talk(exam).is_over, *run.accepted)):
        expect.that(run.text != whole, "the turn to end before its time", run.text, "CAS-EV-05")
        expect.equal("the stop reason of an interrupted turn", "cancelled", run.stop)


@requirement("CAS-EV-14")
async def thinking_and_text_have_their_fields(exam: CasExamination) -> None:
    """A thought has thinking, a message has text blocks; both say something."""
    exam.profile.prompt("thinking")
    run = (await scenes.replies(exam)).run("thinking").stopped("end_turn").spoke()
    for thought in run.some("agent.thinking"):
        expect.that(bool(thought["thinking"]), "a thought that says something", thought)


@requirement("CAS-EV-14", "CAS-EV-15")
async def an_allowed_tool_runs(exam: CasExamination) -> None:
    """The call is allowed; its result names the event of the call, comes after it, and is no error."""
    tool = exam.profile.server_tool("allowed_tool")
    run = (await scenes.replies(exam)).run("tool").stopped("end_turn")
    call, result = run.one("agent.tool_use"), run.one("agent.tool_result")
    seen = (call["name"], call["evaluated_permission"], result["is_error"])
    with expect.owned("CAS-EV-14"):
        expect.equal("name, evaluated_permission and is_error", (tool.name, "allow", False), seen)
    with expect.owned("CAS-EV-15"):
        _follows(run, call, result)
    expect.that(bool(text_of(result["content"])), "a result that says something", result, "CAS-EV-14")


def _follows(run: Run, call: Body, result: Body) -> None:
    expect.equal("tool_use_id", call["id"], result["tool_use_id"])
    names = [event["id"] for event in run.events]
    expect.that(names.index(call["id"]) < names.index(result["id"]), "the result after the call", run.kinds)


@requirement("CAS-EV-17")
async def spans_name_model_and_usage(exam: CasExamination) -> None:
    """Each span ends with the id of its start, without error, and with its usage."""
    run = (await scenes.replies(exam)).run("text").stopped("end_turn")
    for event in run.of("span.model_request_start", "span.model_request_end"):
        schema = f"event.{event['type']}"
        note_misfits(exam.http.departures, exam.schemas, schema, event, f"the event {event['type']}")
    spans_are_whole(run)


def spans_are_whole(run: Run) -> None:
    """Expect every end of a span to name its own start, and no error."""
    starts, ends = run.some("span.model_request_start"), run.some("span.model_request_end")
    named = [event["model_request_start_id"] for event in ends]
    expect.equal("the starts the ends name", sorted(event["id"] for event in starts), sorted(named))
    expect.equal("errors", [False] * len(ends), [event["is_error"] for event in ends])


@requirement("CAS-EV-18")
async def a_failed_turn_ends_well(exam: CasExamination) -> None:
    """The stream tells session.error and then status_idle; the session can be used again."""
    scene = await scenes.failed(exam)
    run = scene.run("fail")
    error = run.some("session.error")[0]
    with expect.owned("CAS-EV-10"):
        expect.equal("the turn_id of the error", run.accepted[0].get("turn_id"), error.get("turn_id"))
    expect.equal("the status after the failure", "idle", scene.look("fail")["status"])
    scene.run("text")


@requirement("CAS-EV-19")
async def a_deleted_session_closes_its_streams(exam: CasExamination) -> None:
    """An open stream tells session.deleted and ends."""
    talk = await exam.open()
    async with talk.follow() as follower:
        with expect.owned("CAS-SESS-12"):
            await exam.have("deleted", "DELETE", talk.path)
            exam.refused(await exam.ask("GET", talk.path), 404)
        await follower.until(lambda event: event["type"] == "session.deleted", "session.deleted")
        after = await follower.next()
        expect.that(after is None, "the stream to end after session.deleted", after)
