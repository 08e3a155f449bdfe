"""Section paging: the shapes and the order of lists, as the published implementation gives them."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.answer import wrapped
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import TOOL_USES

ROUNDS = 3


async def _talked(exam: ZenfluxExamination) -> str:
    """A conversation with some messages in it."""
    made = (await exam.conversation())["id"]
    async with exam.line() as line:
        for place in range(ROUNDS):
            await (await line.chat(f"Message {place}", conversation_id=made)).completed()
    return str(made)


@requirement("G-ZF-29")
async def messages_are_paged_by_cursor(exam: ZenfluxExamination) -> None:
    """The oldest come first; order=desc begins with the newest, and before_cursor leads back, each page in time."""
    path = f"/conversations/{await _talked(exam)}/messages"
    whole = await exam.read("message_page", path)
    ids = [item["id"] for item in whole["messages"]]
    expect.equal("total and has_more", [2 * ROUNDS, False], [whole["total"], whole["has_more"]])
    contents = [item["content"] for item in whole["messages"]]
    expect.equal("the oldest first", ["Message 0"], contents[:1])
    expect.that(all(isinstance(item, list) for item in contents[1::2]), "blocks in a reply", contents)
    newest = await _page(exam, path, order="desc", limit=2)
    expect.equal("the two newest, newest first, and the cursor", [[ids[5], ids[4]], True, ids[4]], newest)
    before = await _page(exam, path, order="desc", limit=2, before_cursor=newest[2])
    expect.equal("the two before, in order of time, and the cursor", [ids[2:4], True, ids[2]], before)
    oldest = await _page(exam, path, limit=3, before_cursor=before[2])
    expect.equal("the oldest, and that there are no more", [ids[:2], False], oldest[:2])


async def _page(exam: ZenfluxExamination, path: str, **query: Any) -> list[Any]:
    page = await exam.read("message_page", path, **query)
    return [[item["id"] for item in page["messages"]], page["has_more"], page["next_cursor"]]


@requirement("G-ZF-29")
async def messages_are_paged_by_offset(exam: ZenfluxExamination) -> None:
    """limit, offset and order asc, which is the default, cut the same list; limits outside 1 to 200 are a 400."""
    path = f"/conversations/{await _talked(exam)}/messages"
    ids = [item["id"] for item in (await exam.read("message_page", path))["messages"]]
    page = await _page(exam, path, limit=2, offset=2, order="asc")
    expect.equal("two messages from the third on", ids[2:4], page[0])
    expect.equal("two messages from the first on", ids[:2], (await _page(exam, path, limit=2))[0])
    for wrong in (0, 201, -1, "many"):
        (await exam.ask("GET", path, query={"limit": str(wrong)})).refused(f"limit is {wrong}")


@requirement("G-ZF-29")
async def a_call_is_kept_with_its_result(exam: ZenfluxExamination) -> None:
    """A call and its result stand in one stored message, though the stream had a message for each round."""
    run = await exam.told("tool")
    kept = [item["content"] for item in await exam.history(run.conversation_id) if isinstance(item["content"], list)]
    places = [_calls(content, "id", *TOOL_USES) for content in kept]
    expect.that(any(places), "a stored message with the call", kept)
    results = [_calls(content, "tool_use_id", "tool_result") for content in kept]
    expect.equal("the calls of each message, with results beside them", places, results)


def _calls(content: list[dict[str, Any]], name: str, *types: str) -> list[str]:
    return sorted(block[name] for block in content if block["type"] in types)


@requirement("G-ZF-30")
async def lists_of_conversations_are_counted(exam: ZenfluxExamination) -> None:
    """GET /conversations is {conversations, total, limit, offset}, the one changed last first; search counts too."""
    made = [(await exam.conversation(f"Needle {place}"))["id"] for place in range(3)]
    async with exam.line() as line:
        await (await line.tell("text", conversation_id=made[0])).completed()
    data = await exam.read("conversation_page", "/conversations", user_id=exam.user, limit=2, offset=0)
    told = {name: data[name] for name in ("total", "limit", "offset")}
    expect.equal("the counts", {"total": 3, "limit": 2, "offset": 0}, told)
    expect.equal("the one changed last", made[:1], [item["id"] for item in data["conversations"][:1]])
    found = await exam.read("search_page", "/conversations/search", user_id=exam.user, q="Needle 1")
    expect.equal("how many were found", 1, found["total"])
    expect.equal("what matched", ["title"], [item["match_type"] for item in found["conversations"]])


@requirement("G-ZF-35")
async def names_are_not_taken_for_ids(exam: ZenfluxExamination) -> None:
    """search and pending are places of their own: with things there or without, they are lists, not unknown ids."""
    await exam.get("/conversations/search", user_id=exam.user, q="x")
    await exam.get("/human-confirmation/pending")
    if exam.profile.management:
        for path in ("/agents/templates", "/tools/schemas", "/tools/mcp"):
            answer = await exam.ask("GET", path)
            expect.that(answer.code != 404, f"{path} not to be taken for an id", answer.reply.told)


@requirement("G-ZF-22")
async def wrapped_objects_are_laid_out_too(exam: ZenfluxExamination) -> None:
    """What the published front end reads unwrapped stands beside the wrapper: status of /health, agents of /agents."""
    health = wrapped(await exam.http.ask("GET", "/health"), exam.schemas).body
    expect.equal("status of /health", "ok", health.get("status"))
    if exam.profile.management:
        answer = await exam.ask("GET", "/agents")
        if answer.is_done and isinstance(answer.body["data"], dict):
            expect.subset("the body of /agents", [*answer.body["data"], "success"], answer.body)
