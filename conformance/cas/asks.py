"""Section events, asks: what waits for the client, and how the turn goes on."""

from conformance.cas import scenes
from conformance.cas.conversation import Conversation, is_idle
from conformance.cas.examination import CasExamination
from conformance.cas.object_comparison import told_as_listed
from conformance.cas.profile import CustomTool
from conformance.cas.run import Body, Run, answer, confirmation, text_of, texts, tool_result
from conformance.cas.scenes import FOUND, PARTS, called
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable


def _call(exam: CasExamination, run: Run) -> Body:
    """The one call of the tool that asks."""
    name = exam.profile.server_tool("asked_tool").name
    calls = [event for event in run.stopped("requires_action").of("agent.tool_use") if event["name"] == name]
    expect.that(len(calls) == 1, f"one call of {name}", run.kinds, "CAS-EV-14")
    return calls[0]


async def _asked(exam: CasExamination) -> tuple[Conversation, Run, Body]:
    """A session that waits for permission, its turn so far, and the call in question."""
    tool = exam.profile.server_tool("asked_tool")
    talk = await exam.open()
    run = await talk.say(tool.prompt)
    return talk, run, _call(exam, run)


def _custom(exam: CasExamination) -> CustomTool:
    if exam.profile.custom_tool is None:
        raise NotTestable("the profile has no entry `custom_tool`")
    return exam.profile.custom_tool


async def _custom_asked(exam: CasExamination) -> tuple[Conversation, Body]:
    """A session that waits for a custom tool's result, and the call."""
    talk = await exam.open()
    return talk, called(await talk.say(exam.profile.prompt("custom_tool")))


def _results(run: Run, call: Body) -> list[Body]:
    return [event for event in run.of("agent.tool_result") if event["tool_use_id"] == call["id"]]


@requirement("CAS-EV-06", "CAS-EV-14", "CAS-EV-15")
async def an_allowed_call_is_run(exam: CasExamination) -> None:
    """The call asks; once allowed the server runs it, tells its result and goes on."""
    scene = await scenes.decided(exam)
    run = scene.run("asked")
    call = _call(exam, run)
    with expect.owned("CAS-EV-14"):
        expect.equal("evaluated_permission", "ask", call["evaluated_permission"])
    with expect.owned("CAS-EV-06"):
        expect.equal("results before the permission", [], _results(run, call))
    with expect.owned("CAS-EV-16"):
        expect.equal("what is pending", [call["id"]], [event["id"] for event in run.pending])
    after = scene.run("allowed").stopped("end_turn").spoke()
    results = _results(after, call)
    named = bool(results) or not after.of("agent.tool_result")
    expect.that(named, "a result that names the event of the call", after.kinds, "CAS-EV-15")
    with expect.owned("CAS-EV-06"):
        expect.equal("the errors of the results", [False], [event["is_error"] for event in results])


@requirement("CAS-EV-06")
async def a_denied_call_is_not_run(exam: CasExamination) -> None:
    """A denial, with words or without, lets the agent go on without the result."""
    scene = await scenes.decided(exam)
    asked = scene.run("asked")
    real = [text_of(event["content"]) for event in _results(scene.run("allowed"), _call(exam, asked))]
    _went_on_without(exam, scene.run("asked again"), scene.run("denied"), real)
    talk, run, call = await _asked(exam)
    _went_on_without(exam, run, await talk.send(confirmation(call, "deny")), real)


def _went_on_without(exam: CasExamination, run: Run, after: Run, real: list[str]) -> None:
    """Expect the agent to go on after a denial, and the call to have no result but an error."""
    after.stopped("end_turn").spoke()
    for result in _results(after, _call(exam, run)):
        is_real = text_of(result["content"]) in real
        expect.that(result["is_error"] and not is_real, "a denied call to have no result but an error", result)


@requirement("CAS-EV-06")
async def a_decision_is_allow_or_deny(exam: CasExamination) -> None:
    """Any other result, or none, is a 400, and the call is still pending."""
    talk, _, call = await _asked(exam)
    bare = {"type": "user.tool_confirmation", "tool_use_id": call["id"]}
    nameless = {"type": "user.tool_confirmation", "result": "allow"}
    for event in (confirmation(call, "maybe"), confirmation(call, "ALLOW"), bare, nameless):
        exam.refused(await talk.attempt({"events": [event]}), 400)
    (await talk.send(confirmation(call))).stopped("end_turn").spoke()


@requirement("CAS-EV-07", "CAS-EV-14")
async def a_custom_tool_is_answered(exam: CasExamination) -> None:
    """A string and blocks are both kept as text blocks, with is_error; the agent goes on."""
    tool, scene = _custom(exam), await scenes.returned(exam)
    with expect.owned("CAS-EV-14"):
        expect.equal("the name of the tool", tool.name, called(scene.run("called"))["name"])
    in_blocks = [part.strip() for part in PARTS]
    for name, wanted, is_error in (("returned", [FOUND], False), ("returned in blocks", in_blocks, True)):
        for event in scene.kept(scene.run(name).stopped("end_turn").spoke()):
            kept = ([text.strip() for text in texts(event.get("content"))], bool(event.get("is_error")))
            with expect.owned("CAS-EV-07"):
                expect.equal("the kept result", (wanted, is_error), kept)


@requirement("CAS-EV-07")
async def a_result_may_be_empty(exam: CasExamination) -> None:
    """Without content the result is taken all the same."""
    talk, call = await _custom_asked(exam)
    (await talk.send(tool_result(call))).stopped("end_turn").spoke()


@requirement("CAS-EV-07")
async def a_result_is_kept_to_the_letter(exam: CasExamination) -> None:
    """A result of several blocks is kept block by block, with its blanks and line ends."""
    scene = await scenes.returned(exam)
    for event in scene.kept(scene.run("returned in blocks")):
        expect.equal("the text blocks of the result", list(PARTS), texts(event.get("content")))


@requirement("CAS-EV-15")
async def an_answer_names_the_event(exam: CasExamination) -> None:
    """The custom tool's answer is echoed with the event id of the call."""
    scene = await scenes.returned(exam)
    call = called(scene.run("called"))
    expect.equal("custom_tool_use_id", call["id"], scene.run("returned").accepted[0]["custom_tool_use_id"])


def _waiting(exam: CasExamination, run: Run) -> Run:
    """The run, in which a call waits for permission and another for the client's result."""
    asking = exam.profile.server_tool("asked_tool").name
    ran = {event["tool_use_id"] for event in run.of("agent.tool_result")}
    early = [event["id"] for event in run.of("agent.tool_use") if event["name"] == asking and event["id"] in ran]
    expect.that(not early, f"no result of {asking} before it is allowed", run.kinds, "CAS-RES-04")
    names = sorted([asking, _custom(exam).name])
    with expect.owned("CAS-EV-16"):
        expect.equal("the pending calls", names, sorted(str(event.get("name")) for event in run.pending))
    return run


@requirement("CAS-EV-16")
async def every_pending_call_is_listed(exam: CasExamination) -> None:
    """event_ids has every call that waits and none that ran; the session is idle meanwhile."""
    scene = await scenes.parallel(exam)
    run = _waiting(exam, scene.run("parallel"))
    ran = {event["tool_use_id"] for event in run.of("agent.tool_result")}
    made = [event["id"] for event in run.of("agent.tool_use", "agent.custom_tool_use")]
    with expect.owned("CAS-EV-15"):
        expect.subset("the calls", ran, made)
    calls = [name for name in made if name not in ran]
    expect.equal("event_ids", sorted(calls), sorted(run.idle["stop_reason"]["event_ids"]))
    expect.equal("the status meanwhile", "idle", scene.look("parallel")["status"])


@requirement("CAS-EV-16")
async def all_can_be_answered_at_once(exam: CasExamination) -> None:
    """One POST with all answers: the same turn runs again and comes to its end."""
    scene = await scenes.parallel(exam)
    run = _waiting(exam, scene.run("parallel"))
    run.one("session.status_running")
    after = scene.run("answered").stopped("end_turn").spoke()
    expect.equal("how often the turn runs again", 1, len(after.of("session.status_running")))
    with expect.owned("CAS-EV-10"):
        expect.equal("the turn", run.idle.get("turn_id"), after.idle.get("turn_id"))


@requirement("CAS-EV-16")
async def all_can_be_answered_one_by_one(exam: CasExamination) -> None:
    """The turn goes on with the last answer and not before, in whichever order the answers come."""
    for is_reversed in (False, True):
        talk = await exam.open()
        run = _waiting(exam, await talk.say(exam.profile.prompt("parallel")))
        first, last = run.pending[::-1] if is_reversed else run.pending
        await _posted(talk, answer(first))
        expect.equal("the status between the answers", "idle", (await talk.info())["status"])
        before = len(await talk.events())
        async with talk.follow() as follower:
            accepted = await _posted(talk, answer(last))
            await follower.arrival(accepted[0])
            rest = await follower.until(_is_end, "a session.status_idle with end_turn")
        with expect.owned("CAS-EV-10"):
            expect.equal("the turn", run.idle.get("turn_id"), rest[-1].get("turn_id"))
        told_as_listed(await talk.events(), before, follower.events)
        await _went_on_last(talk, run, accepted[0])


async def _posted(talk: Conversation, event: Body) -> list[Body]:
    """Post one answer of several; that it is taken by itself is what is examined."""
    try:
        return await talk.post(event)
    except Failed as failure:
        raise Failed(failure.expected, failure.seen, "CAS-EV-16") from failure


def _is_end(event: Body) -> bool:
    return is_idle(event) and event["stop_reason"]["type"] == "end_turn"


def _answers(event: Body) -> str:
    """The event that an answer is for."""
    return str(event.get("tool_use_id") or event.get("custom_tool_use_id"))


async def _went_on_last(talk: Conversation, run: Run, last: Body) -> None:
    """Expect status_running, and what the agent says, only after the last answer, and idle to name what still waits."""
    listed = await talk.events()
    names = [event["id"] for event in listed]
    expect.subset("the listed events", [run.idle["id"], last["id"]], names)
    between = listed[names.index(run.idle["id"]) + 1 : names.index(last["id"])]
    kinds = [event["type"] for event in between]
    stops = [event["stop_reason"] for event in between if is_idle(event)]
    named = [stop["event_ids"] for stop in stops if stop["type"] == "requires_action"]
    expect.equal("what still waits after the first answer", [[_answers(last)]] * len(stops), named)
    early = {"session.status_running", "agent.message", "agent.thinking"}.intersection(kinds)
    expect.that(not early, "the turn to wait for the last answer", kinds)


@requirement("CAS-EV-16", "CAS-RES-04")
async def whatever_asks_can_be_answered(exam: CasExamination) -> None:
    """With every tool set to ask, any call waits and goes on when it is allowed."""
    policies = dict.fromkeys(exam.profile.policies, "always_ask")
    talk = await exam.open(agent=(await exam.new_agent(policies))["id"])
    run = (await talk.say(exam.profile.prompt("permit"))).stopped("requires_action")
    with expect.owned("CAS-EV-14"):
        expect.equal("evaluated_permission", ["ask"], [event.get("evaluated_permission") for event in run.pending])
    with expect.owned("CAS-EV-16"):
        (await talk.send(*map(answer, run.pending))).stopped("end_turn").spoke()
