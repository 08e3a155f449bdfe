"""Section frames: requests, responses and event frames on the socket, and what is refused."""

from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.multipart import Upload
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.line import OUTSIDE_RUNS

WRONG_STRINGS: tuple[Any, ...] = (None, 7, ["x"], {"x": 1})
FILE = {
    "file_url": "https://example.com/examined.txt",
    "file_name": "examined.txt",
    "file_type": "text/plain",
    "file_size": 12,
}


@requirement("ZF-WS-01", "ZF-GEN-01")
async def the_endpoint_opens(exam: ZenfluxExamination) -> None:
    """/api/v1/ws/chat opens as a WebSocket and chats; beside it the REST half answers below /api/v1."""
    await exam.told("text")
    await exam.get("/conversations", user_id=exam.user)


@requirement("ZF-WS-02")
async def every_frame_is_one_json_object(exam: ZenfluxExamination) -> None:
    """Responses, events and pongs are JSON objects in text frames, and there is no other type."""
    async with exam.line() as line:
        await line.refused("chat.abort", {}, "no session is named")
        for situation in ("text", "tool", "thinking"):
            await (await line.tell(situation)).completed()
        await line.ping()
        expect.subset("the kinds of frames", ["res", "session_start", "pong"], line.order)


@requirement("ZF-WS-03", "ZF-WS-14")
async def a_response_has_the_id_of_its_request(exam: ZenfluxExamination) -> None:
    """Each request is answered once under its own id, with ok and a payload, however many are under way."""
    async with exam.line() as line:
        run = await (await line.tell("text")).completed()
        names = [await line.request("chat.abort", {"session_id": run.session_id}) for _ in range(3)]
        names.append(await line.request("chat.abort", {}))
        for name in reversed(names):
            expect.equal("the id of the response", name, (await line.response(name))["id"])
        await line.ping()
        expect.equal("how many responses came to 5 requests", 5, line.order.count("res"))


@requirement("ZF-WS-04", "ZF-WS-15")
async def other_methods_are_refused(exam: ZenfluxExamination) -> None:
    """chat.send and chat.abort are the methods; any other is answered with ok false and an error."""
    async with exam.line() as line:
        for method in ("chat.sing", "send", "", "CHAT.SEND"):
            await line.refused(method, line.params("Hello"), f"there is no method {method!r}")
        run = await (await line.tell("text")).completed()
        await line.accepted("chat.abort", {"session_id": run.session_id})


@requirement("ZF-WS-05", "ZF-WS-15")
async def a_message_is_needed(exam: ZenfluxExamination) -> None:
    """chat.send without a message, or with one that is no string, is answered with ok false and no run."""
    await _expect_needed(exam, "message")


@requirement("ZF-WS-06", "ZF-WS-15")
async def a_user_is_needed(exam: ZenfluxExamination) -> None:
    """chat.send without a user_id, or with one that is no string, is answered with ok false and no run."""
    await _expect_needed(exam, "user_id")


async def _expect_needed(exam: ZenfluxExamination, name: str) -> None:
    async with exam.line() as line:
        whole = line.params(exam.profile.prompt("text"))
        without = {key: value for key, value in whole.items() if key != name}
        await line.refused("chat.send", without, f"there is no {name}")
        for wrong in WRONG_STRINGS:
            await line.refused("chat.send", whole | {name: wrong}, f"{name} is {wrong!r}")
        await line.ping()
        expect.equal("events after refusals", [], line.unread)
        await (await line.tell("text")).completed()


@requirement("ZF-WS-15")
async def requests_of_the_wrong_shape_are_refused(exam: ZenfluxExamination) -> None:
    """A request whose params are no object, or whose method is no string, is answered, and the line goes on."""
    methods: tuple[Any, ...] = (7, ["chat.send"], {"chat": "send"}, None, True)
    async with exam.line() as line:
        for params in ([], ["x"], "x", 7, True):
            for name in ("chat.send", "chat.abort"):
                await line.refused(name, params, "the params are no object")
        for method in methods:
            await line.refused(method, line.params("Hello"), "the method is no string")
        await line.ping()
        expect.equal("events after refusals", [], line.unread)
        await (await line.tell("text")).completed()


@requirement("ZF-WS-07")
async def a_conversation_is_continued_or_new(exam: ZenfluxExamination) -> None:
    """With conversation_id the run belongs to it; without, or with an empty one, to a new conversation each time."""
    made = (await exam.conversation())["id"]
    async with exam.line() as line:
        for _ in range(2):
            run = await (await line.tell("text", conversation_id=made)).completed()
            expect.equal("the conversation of the run", made, run.conversation_id)
        new = [await (await line.tell("text", **more)).completed() for more in ({}, {"conversation_id": ""}, {})]
    names = [made, *(run.conversation_id for run in new)]
    expect.that(len(set(names)) == len(names), "a new conversation for every run that names none", names)
    expect.equal("how often each spoke", [4, 2, 2, 2], [len(await exam.history(name)) for name in names])


@requirement("ZF-WS-08")
async def the_agent_can_be_chosen(exam: ZenfluxExamination) -> None:
    """The profile's agent, if any, takes a message; an agent nobody has is refused, or the run says error."""
    async with exam.line() as line:
        await (await line.tell("text")).completed()
        response = await line.ask("chat.send", line.params("Hello", agent_id=f"nobody-{uuid4().hex}"))
        if response["ok"]:
            while "error" not in line.order:
                expect.that("session_end" not in line.unread, "an error for an agent nobody has", line.unread)
                await line.read()


@requirement("ZF-WS-09")
async def streaming_can_be_chosen(exam: ZenfluxExamination) -> None:
    """With stream true, false or nothing said the same story is told; without streaming in no more deltas."""
    async with exam.line() as line:
        ways: tuple[dict[str, bool], ...] = ({}, {"stream": True}, {"stream": False})
        runs = [await (await line.tell("text", **more)).completed() for more in ways]
    counts = [len(run.of("content_delta")) for run in runs]
    expect.that(counts[2] <= min(counts[:2]), "stream false to need no more deltas than streaming", counts)
    if exam.profile.repeatable:
        expect.equal("the texts told", [runs[0].text] * 3, [run.text for run in runs])


@requirement("ZF-WS-10", "ZF-WS-12")
async def tasks_and_variables_are_taken(exam: ZenfluxExamination) -> None:
    """background_tasks (strings) and variables (an object) may be given, empty or not."""
    variables = {"timezone": "Asia/Shanghai", "locale": "zh-CN", "nested": {"deep": [1, None]}}
    async with exam.line() as line:
        for tasks, given in (([], {}), (["title_generation", "recommended_questions"], variables)):
            await (await line.tell("text", background_tasks=tasks, variables=given)).completed()


@requirement("ZF-WS-11", "ZF-TYPE-02")
async def files_are_taken(exam: ZenfluxExamination) -> None:
    """files may be given as references, with the file_id of an upload, with file_url, with both, or none at all."""
    kept = await exam.upload(Upload("examined.txt", b"Hello", "text/plain"))
    both = {name: kept[name] for name in ("file_id", *FILE)}
    without_url = {name: value for name, value in both.items() if name != "file_url"}
    async with exam.line() as line:
        for files in ([], [both], [FILE, without_url]):
            await (await line.tell("text", files=files)).completed()


@requirement("ZF-WS-13", "ZF-WS-15")
async def an_abort_names_a_session(exam: ZenfluxExamination) -> None:
    """chat.abort takes the session_id of a run; without one, or with one that is no string, it is refused."""
    async with exam.line() as line:
        for params in ({}, *({"session_id": wrong} for wrong in WRONG_STRINGS)):
            await line.refused("chat.abort", params, "no session is named")
        run = await line.tell("slow")
        await run.until("content_start")
        await line.accepted("chat.abort", {"session_id": run.session_id})
        await line.caught(run)
        await run.until("session_stopped")


@requirement("ZF-WS-16")
async def an_event_frame_names_its_event(exam: ZenfluxExamination) -> None:
    """In every event frame `event` is the type of the payload, and seq a whole number that grows over a run."""
    async with exam.line() as line:
        await line.accepted("chat.send", line.params(exam.profile.prompt("tool")))
        seqs: list[int] = []
        while True:
            frame = await line.read()
            if frame["type"] != "event" or frame["event"] in OUTSIDE_RUNS:
                continue
            seqs.append(frame["seq"])
            if frame["event"] == "session_end":
                break
    expect.equal("the numbers of the frames, each once and growing", sorted(set(seqs)), seqs)
