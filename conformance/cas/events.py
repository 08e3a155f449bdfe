"""Section events: what clients may post, and what the list of events shows of it."""

from functools import partial

from conformance.cas import scenes
from conformance.cas.conversation import Conversation, is_event, is_idle
from conformance.cas.examination import Body, CasExamination
from conformance.cas.object_comparison import schema_of, told_as_listed
from conformance.cas.requirement_owners import need
from conformance.cas.run import confirmation, message, texts, tool_result
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.json_round_trip import CARRIED, HUGE, came_back, written

BESIDE_TURNS = ("session.updated", "session.deleted")
"""Events that may come at any time, whatever is going on."""
BUSY = "Session is currently processing a turn. Cancel the current turn or wait for completion."


async def _unchanged(talk: Conversation, before: list[Body]) -> None:
    """Expect no event, and no turn, to have come of what was refused."""
    names = [event["id"] for event in before]
    expect.equal("the events after a refusal", names, [event["id"] for event in await talk.events()])
    expect.equal("the status after a refusal", "idle", (await talk.info())["status"])


@requirement("CAS-EV-01")
async def every_event_has_its_fields(exam: CasExamination) -> None:
    """Accepted, streamed and listed events have the common fields of this session, and are the same events."""
    scene = await scenes.replies(exam)
    for event in (*scene.accepted, *filter(is_event, scene.told), *scene.listed):
        need(schema_of(event), event, "session_id")
        expect.equal(f"session_id of {event['type']}", scene.session["id"], event["session_id"])
    names = [event["id"] for event in scene.listed]
    expect.that(len(set(names)) == len(names), "every event to have an id of its own", names)
    told_as_listed(scene.listed, scene.before, scene.told)


@requirement("CAS-EV-02")
async def events_are_accepted_in_order(exam: CasExamination) -> None:
    """One POST may hold several events; the answer has them in order, and so does the list."""
    scene = await scenes.words(exam)
    scene.run("outcome")
    posted = [event["id"] for event in scene.listed if event["type"].startswith("user.")]
    expect.equal("the user's events", [event["id"] for event in scene.accepted], posted)


@requirement("CAS-EV-02")
async def there_must_be_an_event(exam: CasExamination) -> None:
    """An empty list, no list, or something else than events is a 400."""
    talk = await exam.open()
    before = await talk.events()
    wrong: tuple[Body, ...] = ({"events": []}, {}, {"events": "Hello"}, {"events": ["Hello"]}, {"events": None})
    for body in wrong:
        exam.refused(await talk.attempt(body), 400)
    await _unchanged(talk, before)


@requirement("CAS-EV-02")
async def all_are_accepted_or_none(exam: CasExamination) -> None:
    """One wrong event, wherever it stands, refuses the others with it."""
    talk = await exam.open()
    before = await talk.events()
    wrong: Body = {"type": "user.tool_confirmation", "tool_use_id": exam.stranger("evt"), "result": "perhaps"}
    right = message(exam.profile.prompt("text"))
    for events in ([right, wrong], [wrong, right]):
        exam.refused(await talk.attempt({"events": events}), 400)
    await _unchanged(talk, before)


@requirement("CAS-EV-03")
async def a_message_starts_a_turn(exam: CasExamination) -> None:
    """A string and blocks are both taken, echoed and stored as blocks, and answered by the agent."""
    as_string = (await scenes.replies(exam), "text", [exam.profile.prompt("text")])
    in_blocks = (await scenes.words(exam), "blocks", [text.strip() for text in scenes.blocks(exam)])
    for scene, name, wanted in (as_string, in_blocks):
        run = scene.run(name).stopped("end_turn").spoke()
        run.one("session.status_running")
        for event in scene.kept(run):
            expect.equal("the text blocks of the message", wanted, [text.strip() for text in texts(event["content"])])


@requirement("CAS-EV-03")
async def words_are_kept_to_the_letter(exam: CasExamination) -> None:
    """Blanks, line ends, quotes and letters of any script are in the message as they were sent, block by block."""
    scene = await scenes.words(exam)
    for event in scene.kept(scene.run("blocks")):
        expect.equal("the text blocks of the message", scenes.blocks(exam), texts(event["content"]))


@requirement("CAS-EV-03")
async def a_message_needs_content(exam: CasExamination) -> None:
    """A message without content, or with content that is neither string nor blocks, is a 400."""
    talk = await exam.open()
    before = await talk.events()
    for event in ({"type": "user.message"}, message(7), message(None)):
        exam.refused(await talk.attempt({"events": [event]}), 400)
    await _unchanged(talk, before)


@requirement("CAS-EV-04")
async def one_turn_at_a_time(exam: CasExamination) -> None:
    """A message while a turn runs is a 409 in the words clients look for; the turn ends as if nothing had been."""
    talk = await exam.open()
    async with talk.follow() as follower:
        accepted = await talk.begin(exam.profile.prompt("slow"), follower)
        async with expect.while_it_runs(partial(talk.is_over, accepted)):
            refusal = exam.refused(await talk.attempt({"events": [message("Hello")]}), 409)
        expect.equal("the words", BUSY, refusal["error"]["message"])
        idle = (await follower.until(is_idle, "session.status_idle"))[-1]
    expect.equal("the stop reason", "end_turn", idle["stop_reason"]["type"])
    said = [event["id"] for event in await talk.events() if event["type"] == "user.message"]
    expect.equal("the messages", [accepted["id"]], said)


@requirement("CAS-EV-05")
async def an_interrupt_ends_the_turn(exam: CasExamination) -> None:
    """The running turn ends in idle before its time, and another can begin."""
    whole = (await scenes.running(exam)).run("slow").text
    scene = await scenes.interrupted(exam)
    run = scene.run("slow")
    accepted, interrupt = run.accepted
    expect.member("the stop reason", ("cancelled", "end_turn"), run.stop)
    with expect.owned("CAS-EV-10"):
        expect.equal("the turn that ended", accepted.get("turn_id"), run.idle.get("turn_id"))
    async with expect.while_it_runs(partial(scene.talk(exam).is_over, accepted, interrupt)):
        expect.that(run.text != whole, "the turn to end before its time", run.text)
    scene.run("text").stopped("end_turn").spoke()


@requirement("CAS-EV-05")
async def an_interrupt_of_nothing_is_harmless(exam: CasExamination) -> None:
    """In an idle session an interrupt is accepted; no turn begins or ends, and the next one is whole."""
    talk = await exam.open()
    await talk.post({"type": "user.interrupt"})
    before = len(await talk.events())
    async with talk.follow() as follower:
        run = await follower.run("the message", await talk.post(message(exam.profile.prompt("text"))))
    listed = await talk.events()
    told_as_listed(listed, before, follower.events)
    run.stopped("end_turn").spoke().one("session.status_running")
    kinds = [event["type"] for event in listed]
    started, ended = kinds.count("session.status_running"), kinds.count("session.status_idle")
    expect.equal("the turns started and ended", (1, 1), (started, ended))


@requirement("CAS-EV-08")
async def an_outcome_keeps_what_it_is_given(exam: CasExamination) -> None:
    """user.define_outcome needs no field, and keeps those it is given, known or not."""
    talk = await exam.open()
    await talk.post({"type": "user.define_outcome"})
    extra = {"description": "A report.", "rubric": {"type": "text", "content": "Good."}, "examiners_own": [1, "two"]}
    before = len(await talk.events())
    async with talk.follow() as follower:
        (accepted,) = await talk.post({"type": "user.define_outcome", **extra})
        streamed = await follower.arrival(accepted)
    told_as_listed(await talk.events(), before, follower.events)
    stored = await talk.stored(accepted)
    for event in (accepted, streamed, stored):
        expect.equal("the fields of the outcome", extra, {name: event.get(name) for name in extra})


@requirement("CAS-EV-08")
async def an_outcome_carries_any_json(exam: CasExamination) -> None:
    """Fields of an outcome keep their values, nested as they are, and so does one named session_thread_id."""
    talk = await exam.open()
    extra = {"examiners_own": CARRIED, "session_thread_id": exam.stranger("sthr")}
    async with talk.follow() as follower:
        (accepted,) = await talk.post({"type": "user.define_outcome", **extra})
        streamed = await follower.arrival(accepted)
    for event in (accepted, streamed, await talk.stored(accepted)):
        came_back("the fields of the outcome", extra, {name: event.get(name) for name in extra})
    huge = {"events": [{"type": "user.define_outcome", "examiners_own": HUGE}]}
    reply = await talk.attempt(..., body=written(huge))
    if reply.status == 202:
        kept = await talk.stored(exam.fitting("accepted", reply)["data"][0])
        came_back("the fields of the outcome", HUGE, kept.get("examiners_own"))
    else:
        exam.refused(reply, 400)


@requirement("CAS-EV-09")
async def strange_events_are_refused(exam: CasExamination) -> None:
    """An event of an unknown type, or without one, is a 400 or 409 and changes nothing."""
    talk = await exam.open()
    before = await talk.events()
    for event in ({"type": "user.dance"}, {"type": "agent.message", "content": []}, {"content": "Hello"}, {}):
        exam.refused(await talk.attempt({"events": [event]}), 400, 409)
    await _unchanged(talk, before)


@requirement("CAS-EV-09")
async def answers_nobody_waits_for_are_refused(exam: CasExamination) -> None:
    """A confirmation or a result for something that is not pending is a 400 or 409 and changes nothing."""
    talk = await exam.open()
    (accepted,) = await talk.post({"type": "user.define_outcome"})
    before = await talk.events()
    for call in ({"id": exam.stranger("evt")}, accepted):
        for event in (confirmation(call), tool_result(call, content="x")):
            exam.refused(await talk.attempt({"events": [event]}), 400, 409)
    await _unchanged(talk, before)


@requirement("CAS-EV-11")
async def events_are_listed_in_order(exam: CasExamination) -> None:
    """Ascending by default, descending on demand, and only the asked types."""
    scene = await scenes.replies(exam)
    scene.run("text")
    names, talk = [event["id"] for event in scene.listed], scene.talk(exam)
    said = [event["id"] for event in scene.listed if event["type"] == "user.message"]
    expect.equal("the messages in the order they were accepted", [event["id"] for event in scene.accepted], said)
    for order, wanted in (([], names), ([("order", "asc")], names), ([("order", "desc")], names[::-1])):
        expect.equal(f"the events for {order}", wanted, [event["id"] for event in await talk.events(order)])
    idle, words = "session.status_idle", "user.message"
    filters: tuple[tuple[list[tuple[str, str]], tuple[str, ...]], ...] = (
        ([("types[]", words), ("types[]", idle)], (words, idle)),
        ([("types[]", idle)], (idle,)),
        ([("type", words)], (words,)),
    )
    for pairs, kinds in filters:
        wanted = [event["id"] for event in scene.listed if event["type"] in kinds]
        expect.equal(f"the events for {pairs}", wanted, [event["id"] for event in await talk.events(pairs)])


@requirement("CAS-EV-11")
async def the_list_can_be_the_stream(exam: CasExamination) -> None:
    """Under Accept: text/event-stream the list is a stream, live."""
    talk = await exam.open()
    before = len(await talk.events())
    async with talk.follow(path="/events", headers={"Accept": "text/event-stream"}) as follower:
        await follower.run("the message", await talk.post(message(exam.profile.prompt("text"))))
    told_as_listed(await talk.events(), before, follower.events)
