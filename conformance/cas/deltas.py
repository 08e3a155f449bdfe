"""Section stream, pieces: events on their way, for connections and sessions that asked for them."""

from functools import partial
from typing import Any

from conformance.cas import scenes
from conformance.cas.conversation import Conversation, Follower, is_idle
from conformance.cas.examination import Body, CasExamination
from conformance.cas.requirement_owners import of_event
from conformance.cas.run import Run, is_piece, message, text_of
from conformance.cas.scenes import Scene
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable

MESSAGES = [("event_deltas[]", "agent.message")]
BOTH = [*MESSAGES, ("event_deltas[]", "agent.thinking")]
TRIES = 3
RAW = ("agent.message_start", "agent.content_block_delta", "agent.message_stop")


def _name(event: Body) -> Any:
    """The id of the event that a piece belongs to."""
    return event["event"]["id"] if event["type"] == "event_start" else event.get("event_id")


def _piece(event: Body) -> str:
    content = event["delta"]["content"]
    return str(content.get("text", content.get("thinking", "")))


def _said(final: Body) -> str:
    return str(final["thinking"]) if final["type"] == "agent.thinking" else text_of(final["content"])


def add_up(run: Run, final: Body) -> None:
    """Expect a start and deltas before the event, that add up to it."""
    place = run.events.index(final)
    own = [(where, event) for where, event in enumerate(run.events) if is_piece(event) and _name(event) == final["id"]]
    kinds = [event["type"] for _, event in own]
    expect.that(kinds[:1] == ["event_start"] and kinds.count("event_start") == 1, "event_start first", kinds)
    expect.equal("the type in event_start", final["type"], own[0][1]["event"]["type"])
    expect.that(all(where < place for where, _ in own), "pieces before their event", run.kinds)
    expect.equal("the sum of the deltas", _said(final), "".join(_piece(event) for _, event in own[1:]))


def _is_whole(event: Body, name: str) -> bool:
    """Whether this is the event of that id, and no piece of it: pieces may bear the id too."""
    return not is_piece(event) and event["id"] == name


async def _run(talk: Conversation, prompt: str, query: Any = None) -> Run:
    async with talk.follow(query) as follower:
        return await follower.run("the message", await talk.post(message(prompt)))


async def _pieces(exam: CasExamination) -> Scene:
    """Turns on a stream with deltas; a stream that was opened again has missed some."""
    scene = await scenes.pieces(exam)
    expect.that(scene.is_one_stream, "the stream to stay open", "it was opened again", "CAS-SSE-07")
    return scene


@requirement("CAS-SSE-08")
async def deltas_add_up(exam: CasExamination) -> None:
    """Messages and thoughts come in pieces that bear the id of the event that follows, and add up to it."""
    scene = await _pieces(exam)
    for name in ("thinking", "burst"):
        exam.profile.prompt(name)
        run = scene.run(name)
        for final in (*run.some("agent.message"), *run.of("agent.thinking")):
            add_up(run, final)


async def _no_pieces(exam: CasExamination) -> None:
    """Expect no pieces on a connection, and in a session, that asked for none."""
    scene = await scenes.replies(exam)
    kinds = [event["type"] for event in scene.told]
    for piece in filter(is_piece, scene.told):
        expect.fail("no pieces where nobody asked for them", kinds, of_event(piece["type"]))


@requirement("CAS-SSE-08")
async def only_the_asked_kinds_come_in_pieces(exam: CasExamination) -> None:
    """A connection that asked for messages gets no pieces of thoughts, one that asked for nothing gets none."""
    run = await _run(await exam.open(), exam.profile.prompt("thinking"), MESSAGES)
    pieces = {_name(event) for event in run.events if is_piece(event)}
    expect.equal("what comes in pieces", {event["id"] for event in run.some("agent.message")}, pieces)
    await _no_pieces(exam)


@requirement("CAS-SSE-08")
async def pieces_are_never_listed(exam: CasExamination) -> None:
    """The list of events has no pieces; a replay that has them tells them as they were."""
    exam.profile.prompt("burst")
    scene = await _pieces(exam)
    run, talk = scene.run("burst"), scene.talk(exam)
    page = await exam.have("page", "GET", f"{talk.path}/events", query={"limit": "100"})
    kinds = [str(event.get("type")) for event in page["data"]]
    expect.that(not {"event_start", "event_delta"}.intersection(kinds), "a list without pieces", kinds)
    async with talk.follow([*BOTH, ("after_id", run.accepted[0]["id"])]) as follower:
        seen = await follower.until(lambda event: event.get("id") == run.idle["id"], "the idle seen before")
    replay = Run("the replay", run.accepted, seen)
    pieces = {_name(event) for event in seen if is_piece(event)}
    for final in replay.some("agent.message"):
        if final["id"] in pieces:
            add_up(replay, final)


@requirement("CAS-SSE-08")
async def an_event_in_progress_can_be_resumed(exam: CasExamination) -> None:
    """With the id of an event in progress as the cursor its old pieces are skipped; the event itself comes whole."""
    talk = await exam.open()
    for _ in range(TRIES):
        async with talk.follow(MESSAGES) as first:
            await talk.begin(exam.profile.prompt("slow"), first)
            if rest := await _resumed(talk, first):
                break
    else:
        raise NotTestable("every message was whole before it could be resumed")
    pieces = "".join(_piece(event) for event in rest if event["type"] == "event_delta")
    whole = _said(rest[-1])
    expect.that(whole.endswith(pieces) and pieces != whole, "the pieces that were still to come", pieces)


async def _resumed(talk: Conversation, first: Follower) -> list[Body]:
    """What a second stream tells after an event in progress; nothing if every event was whole before."""
    tried: set[str] = set()
    while not is_idle(event := (await first.until(_is_delta_or_idle, "event_delta"))[-1]):
        name = event["event_id"]
        if name in tried:
            continue
        tried.add(name)
        async with talk.follow([*MESSAGES, ("after_id", name)]) as second:
            rest = await second.until(partial(_is_news, name), "the event in progress, whole")
        known = {told.get("id") for told in first.events if not is_piece(told)}
        old = [told["id"] for told in rest[:-1] if not is_piece(told) and told["id"] in known]
        expect.that(not old, "a stream that was resumed to tell nothing again", old, "CAS-SSE-03")
        if _is_whole(rest[-1], name):
            return rest
    expect.that(bool(tried), "an event_delta in this turn", [told["type"] for told in first.events])
    return []


def _is_delta_or_idle(event: Body) -> bool:
    return event["type"] == "event_delta" or is_idle(event)


def _is_news(name: str, event: Body) -> bool:
    """Whether this is the event of that id, whole, or something of the next one."""
    is_next = is_piece(event) and _name(event) != name
    return _is_whole(event, name) or is_next or is_idle(event)


@requirement("CAS-SSE-09")
async def a_session_can_stream_incrementally(exam: CasExamination) -> None:
    """message_start to message_stop come before what they tell, and their text adds up to it."""
    talk = await exam.open(incremental_streaming_enabled=True, delta_flush_interval_ms=20)
    run = await _run(talk, exam.profile.prompt("burst"))
    for kind in RAW:
        run.some(kind)
    said = [event["delta"].get("text", "") for event in run.of("agent.content_block_delta")]
    expect.equal("the sum of the deltas", run.text, "".join(said))
    kinds = [kind for kind in run.kinds if kind in (*RAW[::2], "agent.message")]
    runs = [kind for place, kind in enumerate(kinds) if place == 0 or kind != kinds[place - 1]]
    expect.equal("starts, stops and messages in turn", [RAW[0], RAW[2], "agent.message"] * (len(runs) // 3), runs)


@requirement("CAS-SSE-09")
async def the_two_forms_never_mix(exam: CasExamination) -> None:
    """A connection that asks for event deltas in such a session gets one form, and other sessions have neither."""
    talk = await exam.open(incremental_streaming_enabled=True)
    run = await _run(talk, exam.profile.prompt("burst"), BOTH)
    is_event, is_raw = bool(run.of("event_delta")), bool(run.of(*RAW))
    expect.that(is_event != is_raw, "one form of pieces on one connection", sorted(set(run.kinds)))
    await _no_pieces(exam)
