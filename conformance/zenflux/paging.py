"""Section paging: the shapes and the order of lists, as the published implementation gives them."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import ABSENT
from conformance.zenflux.rest_calls import BASE
from conformance.zenflux.run import TOOL_USES
from conformance.zenflux.run_contents import as_blocks, as_text
from conformance.zenflux.sample_runs import kept, told

ROUNDS = 3


async def _talked(exam: ZenfluxExamination) -> str:
    """A conversation with some messages in it."""
    return await exam.once(f"a conversation of {ROUNDS} rounds", _talk)


async def _talk(exam: ZenfluxExamination) -> str:
    made = (await exam.conversation())["id"]
    async with exam.line() as line:
        for place in range(ROUNDS):
            run = await (await line.chat(f"Message {place}", conversation_id=made)).finish()
            is_own = run.conversation_id == made
            expect.that(is_own, "the run in the conversation it was sent to", run.conversation_id, "ZF-WS-07")
    kept = [as_text(item["content"]) for item in await exam.history(made) if item["role"] == "user"]
    wanted = [f"Message {place}" for place in range(ROUNDS)]
    expect.that(kept == wanted, "every message of the user to be listed", kept, "ZF-HTTP-3.2-06")
    return str(made)


@requirement("G-ZF-29")
async def messages_are_paged_by_cursor(exam: ZenfluxExamination) -> None:
    """The oldest come first; order=desc begins with the newest, and before_cursor leads back, each page in time."""
    path = f"/conversations/{await _talked(exam)}/messages"
    whole = await _read(exam, path)
    ids = [item["id"] for item in whole["messages"]]
    expect.equal("total and has_more", [2 * ROUNDS, False], [whole["total"], whole["has_more"]])
    contents = [item["content"] for item in whole["messages"]]
    expect.equal("the oldest first", ["Message 0"], [as_text(item) for item in contents[:1]])
    expect.that(all(isinstance(item, list) for item in contents[1::2]), "blocks in a reply", contents)
    newest = await _page(exam, path, order="desc", limit=2)
    expect.equal("the two newest, newest first, and the cursor", [[ids[5], ids[4]], True, ids[4]], newest)
    before = await _page(exam, path, order="desc", limit=2, before_cursor=newest[2])
    expect.equal("the two before, in order of time, and the cursor", [ids[2:4], True, ids[2]], before)
    oldest = await _page(exam, path, limit=3, before_cursor=before[2])
    expect.equal("the oldest, and that there are no more", [ids[:2], False], oldest[:2])


async def _read(exam: ZenfluxExamination, path: str, **query: Any) -> dict[str, Any]:
    """A page of messages; what is wrong with a message in it is not the page's."""
    data = await exam.get(path, **query)
    for item in data["messages"] if isinstance(data, dict) and isinstance(data.get("messages"), list) else ():
        exam.described("message", item, "a message of the conversation")
    with expect.owned(exam.departures.first or "G-ZF-29"):
        exam.schemas.fit("message_page", data, f"the data of GET {path}")
    return dict(data)


async def _page(exam: ZenfluxExamination, path: str, **query: Any) -> list[Any]:
    page = await _read(exam, path, **query)
    return [[item["id"] for item in page["messages"]], page["has_more"], page["next_cursor"]]


@requirement("G-ZF-29")
async def messages_are_paged_by_offset(exam: ZenfluxExamination) -> None:
    """limit, offset and order asc, which is the default, cut the same list; limits outside 1 to 200 are a 400."""
    path = f"/conversations/{await _talked(exam)}/messages"
    ids = [item["id"] for item in (await _read(exam, path))["messages"]]
    page = await _page(exam, path, limit=2, offset=2, order="asc")
    expect.equal("two messages from the third on", ids[2:4], page[0])
    expect.equal("two messages from the first on", ids[:2], (await _page(exam, path, limit=2))[0])
    for wrong in (0, 201, -1, "many"):
        (await exam.ask("GET", path, query={"limit": str(wrong)})).refused(f"limit is {wrong}")


@requirement("G-ZF-29")
async def a_call_is_kept_with_its_result(exam: ZenfluxExamination) -> None:
    """A call and its result stand in one stored message, though the stream had a message for each round."""
    run = await told(exam, "tool")
    run.one("tool_result")
    lists = [as_blocks(item["content"]) for item in await kept(exam, "tool")]
    contents = [content for content in lists if content is not None]
    places = [_calls(content, "id", *TOOL_USES) for content in contents]
    expect.that(any(places), "a stored message with the call", contents)
    results = [_calls(content, "tool_use_id", "tool_result") for content in contents]
    expect.equal("the calls of each message, with results beside them", places, results)


def _calls(content: list[dict[str, Any]], name: str, *types: str) -> list[str]:
    return sorted(block[name] for block in content if block["type"] in types)


@requirement("G-ZF-30")
async def lists_of_conversations_are_counted(exam: ZenfluxExamination) -> None:
    """GET /conversations is {conversations, total, limit, offset}, the one changed last first; search counts too."""
    made = [(await exam.conversation(f"Needle {place}"))["id"] for place in range(3)]
    async with exam.line() as line:
        run = await (await line.tell("text", conversation_id=made[0])).finish()
    is_own = run.conversation_id == made[0]
    expect.that(is_own, "the run in the conversation it was sent to", run.conversation_id, "ZF-WS-07")
    data = await _conversations(exam, "conversation_page", "/conversations", user_id=exam.user, limit=2, offset=0)
    others = [item for item in data["conversations"] if item["user_id"] != exam.user]
    expect.that(not others, "the conversations of this user only", others, "ZF-HTTP-3.2-02")
    told = {name: data[name] for name in ("total", "limit", "offset")}
    expect.equal("the counts", {"total": 3, "limit": 2, "offset": 0}, told)
    expect.equal("the one changed last", made[:1], [item["id"] for item in data["conversations"][:1]])
    found = await _conversations(exam, "search_page", "/conversations/search", user_id=exam.user, q="Needle 1")
    titles = [item.get("conversation", item).get("title") for item in found["conversations"]]
    is_found = all("Needle 1" in str(title) for title in titles)
    expect.that(is_found, "only conversations with the words that were looked for", titles, "ZF-HTTP-3.2-07")
    expect.equal("how many were found", 1, found["total"])
    expect.equal("what matched", ["title"], [item["match_type"] for item in found["conversations"]])


async def _conversations(exam: ZenfluxExamination, schema: str, path: str, **query: Any) -> dict[str, Any]:
    """A page of conversations; what is wrong with a conversation in it is not the page's."""
    data = await exam.get(path, **query)
    for item in data["conversations"] if isinstance(data, dict) else ():
        found = item.get("conversation", item) if isinstance(item, dict) else item
        exam.described("conversation", found, "a listed conversation")
    with expect.owned(exam.departures.first or "G-ZF-30"):
        exam.schemas.fit(schema, data, f"the data of GET {path}")
    return dict(data)


@requirement("G-ZF-35")
async def names_are_not_taken_for_ids(exam: ZenfluxExamination) -> None:
    """search and pending are places of their own: with things there or without, they are lists, not unknown ids."""
    places = [f"/conversations/search?user_id={exam.user}&q=x"]
    if exam.profile.has_confirmations:
        places.append("/human-confirmation/pending")
    for path in ("/agents/templates", "/tools/schemas", "/tools/mcp") if exam.profile.management else ():
        collection = path[: path.index("/", 1)]
        is_there = (await exam.http.ask("GET", BASE + collection)).status not in ABSENT
        places += [path] if is_there else []
    for path in places:
        answer = await exam.ask("GET", path)
        expect.that(answer.code != 404, f"{path} not to be taken for an id", answer.reply.told)


@requirement("G-ZF-22")
async def wrapped_objects_are_laid_out_too(exam: ZenfluxExamination) -> None:
    """What the published front end reads unwrapped stands beside the wrapper: status of /health, agents of /agents."""
    health = await exam.ask("GET", "/health")
    health.done()
    with expect.owned(exam.departures.first or "G-ZF-22"):
        expect.equal("status of /health", "ok", health.body.get("status"))
    answer = await exam.ask("GET", "/agents") if exam.profile.management else health
    if answer.is_done and isinstance(answer.body["data"], dict):
        with expect.owned(exam.departures.first or "G-ZF-22"):
            expect.subset("the body of /agents", [*answer.body["data"], "success"], answer.body)
