"""Section events, turns: their order, their ends, their parts, and what carries which id."""

from functools import partial

from conformance.cas.examination import CasExamination
from conformance.cas.run import Body, Run, answer, message, text_of
from conformance.cas.talk import is_idle
from conformance.kit import expect
from conformance.kit.case import requirement

CUT = {"fail": "error", "refuse": "refusal", "max_tokens": "max_tokens"}
BESIDE_TURNS = ("session.updated", "user.define_outcome", "session.deleted")


def carries(run: Run, turn: str) -> None:
    """Expect every event of the run to carry this turn_id."""
    for event in (*run.accepted, *run.events):
        if event["type"] not in BESIDE_TURNS:
            with expect.owned("CAS-EV-10"):
                expect.equal(f"turn_id of {event['type']}", turn, event.get("turn_id"))


@requirement("CAS-EV-10")
async def a_turn_has_one_id(exam: CasExamination) -> None:
    """The answer to the POST, every streamed event, idle included, and every listed one carry the same turn_id."""
    talk = await exam.open()
    turns: list[str] = []
    for prompt in (exam.profile.prompt("thinking"), exam.profile.server_tool("allowed_tool").prompt):
        run = (await talk.say(prompt)).stopped("end_turn")
        turn = run.accepted[0].get("turn_id")
        expect.that(isinstance(turn, str), "the accepted message to have a turn_id", run.accepted[0])
        carries(run, str(turn))
        turns.append(str(turn))
    expect.that(turns[0] != turns[1], "another turn to have another turn_id", turns)
    listed = {event.get("turn_id") for event in await talk.events() if event["type"] not in BESIDE_TURNS}
    expect.equal("the turn_ids in the list", sorted(turns), sorted(str(turn) for turn in listed))


@requirement("CAS-EV-10")
async def a_resumed_turn_keeps_its_id(exam: CasExamination) -> None:
    """A turn that waited for an answer goes on under its id; the answers carry it too."""
    talk = await exam.open()
    run = (await talk.say(exam.profile.server_tool("asked_tool").prompt)).stopped("requires_action")
    turn = str(run.accepted[0].get("turn_id"))
    carries(run, turn)
    carries((await talk.send(*map(answer, run.pending))).stopped("end_turn"), turn)


@requirement("CAS-EV-12")
async def a_message_in_place_of_an_answer_has_a_turn_of_its_own(exam: CasExamination) -> None:
    """Where a message is taken while a call waits, what follows it up to the next idle is its own turn, idle too."""
    talk = await exam.open()
    run = (await talk.say(exam.profile.server_tool("asked_tool").prompt)).stopped("requires_action")
    async with talk.follow({"after_id": run.idle["id"]}) as follower:
        reply = await talk.attempt({"events": [message(exam.profile.prompt("text"))]})
        if reply.status == 409:
            return
        accepted = exam.fitting("accepted", expect.status(reply, 202))["data"]
        rest = await follower.run("a message in place of the answer", accepted)
    expect.that(run.idle.get("turn_id") != accepted[0].get("turn_id"), "another turn_id for the message", accepted)
    carries(rest, str(accepted[0].get("turn_id")))


@requirement("CAS-EV-12")
async def a_turn_is_told_in_order(exam: CasExamination) -> None:
    """user.message, status_running, spans around what the agent says and calls, and status_idle only at the end."""
    talk = await exam.open()
    tool = exam.profile.server_tool("allowed_tool").prompt
    for prompt in (exam.profile.prompt("text"), exam.profile.prompt("thinking"), tool):
        run = (await talk.say(prompt)).stopped("end_turn").spoke()
        kinds = [event["type"] for event in run.root]
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
    talk = await exam.open()
    (await talk.say(exam.profile.prompt("text"))).stopped("end_turn")
    run = (await talk.say(exam.profile.server_tool("asked_tool").prompt)).stopped("requires_action")
    (await talk.send(*map(answer, run.pending))).stopped("end_turn")


@requirement("CAS-EV-20")
async def an_end_before_its_time_says_so(exam: CasExamination) -> None:
    """end_turn is a natural end and nothing else: what fails, is cut off, refused or interrupted has its own reason."""
    talk = await exam.open()
    for situation, reason in CUT.items():
        if getattr(exam.profile.prompts, situation) is not None:
            run = (await talk.say(exam.profile.prompt(situation))).stopped(reason, owner="CAS-EV-20")
            run.one("session.status_running")
    async with talk.follow() as follower:
        accepted = await talk.begin(exam.profile.prompt("slow"), follower)
        (interrupt,) = await talk.post({"type": "user.interrupt"})
        idle = (await follower.until(is_idle, "session.status_idle"))[-1]
    async with expect.while_it_runs(partial(talk.is_over, accepted, interrupt)):
        expect.equal("the stop reason of an interrupted turn", "cancelled", idle["stop_reason"]["type"])


@requirement("CAS-EV-14")
async def thinking_and_text_have_their_fields(exam: CasExamination) -> None:
    """A thought has thinking, a message has text blocks; both say something."""
    run = (await (await exam.open()).say(exam.profile.prompt("thinking"))).stopped("end_turn").spoke()
    for thought in run.some("agent.thinking"):
        expect.that(bool(thought["thinking"]), "a thought that says something", thought)


@requirement("CAS-EV-14", "CAS-EV-15")
async def an_allowed_tool_runs(exam: CasExamination) -> None:
    """The call is allowed; its result names the event of the call, comes after it, and is no error."""
    tool = exam.profile.server_tool("allowed_tool")
    run = (await (await exam.open()).say(tool.prompt)).stopped("end_turn")
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
    run = (await (await exam.open()).say(exam.profile.prompt("text"))).stopped("end_turn")
    for event in run.of("span.model_request_start", "span.model_request_end"):
        exam.schemas.fit(f"event.{event['type']}", event, f"the event {event['type']}")
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
    talk = await exam.open()
    run = await talk.say(exam.profile.prompt("fail"))
    run.some("session.error")
    expect.equal("the turn_id of the error", run.accepted[0].get("turn_id"), run.of("session.error")[0].get("turn_id"))
    expect.equal("the status after the failure", "idle", (await talk.info())["status"])
    expect.status(await talk.attempt({"events": [message(exam.profile.prompt("text"))]}), 202)


@requirement("CAS-EV-19")
async def a_deleted_session_closes_its_streams(exam: CasExamination) -> None:
    """An open stream tells session.deleted and ends."""
    talk = await exam.open()
    async with talk.follow() as follower:
        with expect.owned("CAS-SESS-12"):
            await exam.have("deleted", "DELETE", talk.path)
        await follower.until(lambda event: event["type"] == "session.deleted", "session.deleted")
        after = await follower.next()
        expect.that(after is None, "the stream to end after session.deleted", after)
