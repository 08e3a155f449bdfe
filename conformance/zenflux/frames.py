"""Section frames: requests, responses and event frames on the socket, and what is refused."""

from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed
from conformance.kit.multipart import Upload
from conformance.zenflux.examination import UPLOADS, ZenfluxExamination
from conformance.zenflux.management_common import ABSENT, some_agent
from conformance.zenflux.rest_calls import BASE
from conformance.zenflux.sample_runs import UNSTREAMED, aborted, kept, on_a_line, texts, to_its_end, told

WRONG_STRINGS: tuple[Any, ...] = (None, 7, ["x"], {"x": 1})
FILE = {
    "file_url": "https://example.com/examined.txt",
    "file_name": "examined.txt",
    "file_type": "text/plain",
    "file_size": 12,
}


@requirement("ZF-WS-01")
async def the_endpoint_opens(exam: ZenfluxExamination) -> None:
    """/api/v1/ws/chat opens as a WebSocket."""
    async with exam.line():
        pass


@requirement("ZF-GEN-01")
async def both_halves_are_below_the_base_path(exam: ZenfluxExamination) -> None:
    """The socket opens below /api/v1, and the REST half answers there."""
    try:
        async with exam.line():
            pass
    except Failed as failure:
        expect.fail("the WebSocket of the chat below /api/v1", failure.seen, "ZF-GEN-01")
    answer = await exam.ask("GET", "/conversations", query={"user_id": exam.user})
    expect.that(answer.code not in ABSENT, "the REST half below /api/v1", answer.reply.told)


@requirement("ZF-WS-02")
async def every_frame_is_one_json_object(exam: ZenfluxExamination) -> None:
    """Responses, events and pongs are JSON objects in text frames, and there is no other type."""
    await on_a_line(exam, "text", "tool", "thinking")
    async with exam.line() as line:
        await line.ask("chat.abort", {})
        await line.ping()
        expect.subset("the kinds of frames", ["res", "pong"], line.order)


@requirement("ZF-WS-03", "ZF-WS-14")
async def a_response_has_the_id_of_its_request(exam: ZenfluxExamination) -> None:
    """Each request is answered once under its own id, with ok and a payload, however many are under way."""
    run = await told(exam, "text")
    async with exam.line() as line:
        names = [await line.request("chat.abort", {"session_id": run.session_id}) for _ in range(3)]
        names.append(await line.request("chat.abort", {}))
        for name in reversed(names):
            await line.response(name)
        await line.ping()
        count = line.order.count("res")
        expect.that(count == 4, "one response to each of 4 requests", count, "ZF-WS-14")


@requirement("ZF-WS-04")
async def other_methods_are_refused(exam: ZenfluxExamination) -> None:
    """chat.send and chat.abort are the methods; any other is answered with ok false and an error."""
    run = await told(exam, "text")
    async with exam.line() as line:
        for method in ("chat.sing", "send", "", "CHAT.SEND"):
            await line.refused(method, line.params("Hello"), f"there is no method {method!r}")
        await line.ask("chat.abort", {"session_id": run.session_id})


@requirement("ZF-WS-05", "ZF-WS-15")
async def a_message_is_needed(exam: ZenfluxExamination) -> None:
    """chat.send without a message, or with one that is no string, is answered with ok false and no run."""
    await _expect_needed(exam, "message", "ZF-WS-05")


@requirement("ZF-WS-06", "ZF-WS-15")
async def a_user_is_needed(exam: ZenfluxExamination) -> None:
    """chat.send without a user_id, or with one that is no string, is answered with ok false and no run."""
    await _expect_needed(exam, "user_id", "ZF-WS-06")


async def _expect_needed(exam: ZenfluxExamination, name: str, owner: str) -> None:
    async with exam.line() as line:
        whole = line.params(exam.profile.prompt("text"))
        without = {key: value for key, value in whole.items() if key != name}
        await line.refused("chat.send", without, f"there is no {name}", owner)
        for wrong in WRONG_STRINGS:
            await line.refused("chat.send", whole | {name: wrong}, f"{name} is {wrong!r}", owner)
        await line.expect_silence(owner)


@requirement("ZF-WS-15")
async def requests_of_the_wrong_shape_are_refused(exam: ZenfluxExamination) -> None:
    """A request whose params are no object, or whose method is no string, is answered, and the line goes on."""
    methods: tuple[Any, ...] = (7, ["chat.send"], {"chat": "send"}, None, True)
    async with exam.line() as line:
        for params in ([], ["x"], "x", 7, True):
            for name in ("chat.send", "chat.abort"):
                owner = "ZF-WS-13" if name == "chat.abort" else "ZF-WS-05"
                await line.refused(name, params, "the params are no object", owner)
        for method in methods:
            await line.refused(method, line.params("Hello"), "the method is no string", "ZF-WS-04")
        await line.expect_silence("ZF-WS-15")


@requirement("ZF-WS-07")
async def a_conversation_is_continued_or_new(exam: ZenfluxExamination) -> None:
    """With conversation_id the run belongs to it; without, or with an empty one, to a new conversation each time."""
    made = (await exam.conversation())["id"]
    async with exam.line() as line:
        for _ in range(2):
            run = await (await line.tell("text", conversation_id=made)).completed()
            expect.equal("the conversation of the run", made, run.conversation_id)
        new = [await (await line.tell("text", **more)).completed() for more in ({}, {"conversation_id": ""})]
    names = [made, *(run.conversation_id for run in new)]
    expect.that(len(set(names)) == len(names), "a new conversation for every run that names none", names)


@requirement("ZF-WS-25")
async def an_agent_can_be_named(exam: ZenfluxExamination) -> None:
    """agent_id may be left out, or name an agent: the profile's, or one that the server lists."""
    run = await told(exam, "text")
    agent = await some_agent(exam)
    if agent is not None and not exam.profile.agent:
        async with exam.line() as line:
            await (await line.chat(run.message, "ZF-WS-25", agent_id=agent)).finish()


@requirement("ZF-WS-08")
async def the_agent_can_be_chosen(exam: ZenfluxExamination) -> None:
    """An agent that nobody has is refused, or the run says error: no other agent answers in its place."""
    async with exam.line() as line:
        response = await line.ask("chat.send", line.params("Hello", agent_id=f"nobody-{uuid4().hex}"))
        if response.get("ok") is True:
            run = await to_its_end(line.run("chat.send to an agent that nobody has"))
            expect.that(bool(run.of("error")), "an error for an agent nobody has", run.names)


@requirement("ZF-WS-09")
async def streaming_can_be_chosen(exam: ZenfluxExamination) -> None:
    """With stream true, false or nothing said the same story is told; without streaming in no more deltas."""
    usual, whole = await told(exam, "text"), await told(exam, "text", UNSTREAMED)
    streamed = await exam.told("text", "ZF-WS-09", stream=True)
    counts = [len(run.of("content_delta")) for run in (usual, streamed, whole)]
    expect.that(counts[2] <= min(counts[:2]), "stream false to need no more deltas than streaming", counts)
    expect.equal("the text told without streaming", texts(await kept(exam, "text", UNSTREAMED)), whole.text)


@requirement("ZF-WS-10", "ZF-WS-12")
async def tasks_and_variables_are_taken(exam: ZenfluxExamination) -> None:
    """background_tasks (strings) and variables (an object) may be given, empty or not."""
    variables = {"timezone": "Asia/Shanghai", "locale": "zh-CN", "nested": {"deep": [1, None]}}
    tasks = ["title_generation", "recommended_questions"]
    async with exam.line() as line:
        await (await line.tell("text", "ZF-WS-10", background_tasks=tasks, variables={})).finish()
        await (await line.tell("text", "ZF-WS-12", background_tasks=[], variables=variables)).finish()


@requirement("ZF-WS-11", "ZF-TYPE-02")
async def files_are_taken(exam: ZenfluxExamination) -> None:
    """files may be given as references, with the file_id of an upload, with file_url, with both, or none at all."""
    async with exam.line() as line:
        await (await line.tell("text", "ZF-WS-11", files=[FILE])).finish()
    file = Upload("examined.txt", b"Hello", "text/plain")
    if (await exam.http.ask("POST", BASE + UPLOADS)).status in ABSENT:
        return  # without uploads there are no ids of files
    kept = await exam.upload(file)
    both = {name: kept[name] for name in ("file_id", *FILE)}
    without_url = {name: value for name, value in both.items() if name != "file_url"}
    async with exam.line() as line:
        await (await line.tell("text", "ZF-TYPE-02", files=[both, FILE, without_url])).finish()


@requirement("ZF-WS-13")
async def an_abort_names_a_session(exam: ZenfluxExamination) -> None:
    """chat.abort ends the run of a session_id; without one, or with one that is no string, it is refused."""
    async with exam.line() as line:
        for params in ({}, *({"session_id": wrong} for wrong in WRONG_STRINGS)):
            await line.refused("chat.abort", params, "no session is named")
    found = await aborted(exam)
    expect.that(found.responses[0].get("ok") is True, "chat.abort to be answered with ok", found.responses)
    expect.that(not found.is_completed, "a run that was aborted to be cut short", found.run.names)


@requirement("ZF-WS-16")
async def an_event_frame_names_its_event(exam: ZenfluxExamination) -> None:
    """In every event frame `event` is the type of the payload, and seq a whole number."""
    run = await told(exam, "tool")
    expect.that(bool(run.events), "event frames", run.names)
