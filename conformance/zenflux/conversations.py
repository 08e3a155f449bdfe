"""Section conversations: made, listed page by page, shown, renamed, searched, deleted."""

from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.answer import listed
from conformance.zenflux.examination import ZenfluxExamination

MANY = 5


async def _page(exam: ZenfluxExamination, **query: Any) -> list[dict[str, Any]]:
    found = listed(await exam.get("/conversations", user_id=exam.user, **query), "conversations")
    for item in found:
        exam.schemas.fit("conversation", item, "a listed conversation")
    return found


@requirement("ZF-HTTP-3.2-01")
async def a_conversation_is_made(exam: ZenfluxExamination) -> None:
    """POST /conversations?user_id&title makes a conversation of this user with this title, a new one each time."""
    titles = ["Plain", "标题 & more? #1"]
    made = [await exam.conversation(title) for title in (*titles, titles[0])]
    told = [[item["user_id"], item["title"]] for item in made]
    expect.equal("user and title", [[exam.user, title] for title in (*titles, titles[0])], told)
    expect.that(len({item["id"] for item in made}) == 3, "an id for each", made)


@requirement("ZF-HTTP-3.2-02")
async def conversations_are_listed_in_pages(exam: ZenfluxExamination) -> None:
    """GET /conversations lists the user's own; limit and offset give pages that repeat and skip nothing."""
    made = {(await exam.conversation(f"Number {place}"))["id"] for place in range(MANY)}
    whole = [item["id"] for item in await _page(exam)]
    expect.equal("the user's conversations", sorted(made), sorted(whole))
    paged: list[str] = []
    for offset in range(0, MANY, 2):
        page = [item["id"] for item in await _page(exam, limit=2, offset=offset)]
        expect.equal(f"how many there are from {offset} on, at most 2", min(2, MANY - offset), len(page))
        paged += page
    expect.equal("the pages together", whole, paged)
    expect.equal("what comes after the end", [], await _page(exam, limit=2, offset=MANY))
    others = listed(await exam.get("/conversations", user_id=f"nobody-{uuid4().hex}"), "conversations")
    expect.equal("the conversations of somebody else", [], others)


@requirement("ZF-HTTP-3.2-03")
async def a_conversation_is_shown(exam: ZenfluxExamination) -> None:
    """GET /conversations/{id} shows what was made; an unknown id is refused."""
    made = await exam.conversation("Shown")
    shown = await exam.read("conversation", f"/conversations/{made['id']}")
    expect.equal("the conversation", [made["id"], "Shown"], [shown["id"], shown["title"]])
    (await exam.ask("GET", f"/conversations/{exam.stranger()}")).refused("there is no such conversation")


@requirement("ZF-HTTP-3.2-04")
async def a_conversation_is_renamed(exam: ZenfluxExamination) -> None:
    """PUT /conversations/{id}?title changes the title, and nothing but the title."""
    made, other = await exam.conversation("Before"), await exam.conversation("Other")
    (await exam.ask("PUT", f"/conversations/{made['id']}", query={"title": "之后 & after"})).done()
    shown = await exam.read("conversation", f"/conversations/{made['id']}")
    told = {name: shown[name] for name in ("id", "title", "user_id", "created_at")}
    expect.equal("the conversation", {**{name: made[name] for name in told}, "title": "之后 & after"}, told)
    kept = await exam.read("conversation", f"/conversations/{other['id']}")
    expect.equal("another one", "Other", kept["title"])
    answer = await exam.ask("PUT", f"/conversations/{exam.stranger()}", query={"title": "x"})
    answer.refused("there is no such conversation")


@requirement("ZF-HTTP-3.2-05")
async def a_conversation_is_deleted(exam: ZenfluxExamination) -> None:
    """DELETE /conversations/{id} removes it from everywhere; a second time, it is refused."""
    made, kept = await exam.conversation("Deleted"), await exam.conversation("Kept")
    (await exam.ask("DELETE", f"/conversations/{made['id']}")).done()
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/messages")):
        (await exam.ask(method, f"/conversations/{made['id']}{path}")).refused("it was deleted")
    expect.equal("what is left", [kept["id"]], [item["id"] for item in await _page(exam)])


@requirement("ZF-HTTP-3.2-06")
async def messages_are_listed(exam: ZenfluxExamination) -> None:
    """GET /conversations/{id}/messages has every message of the conversation; a new one has none."""
    made = (await exam.conversation())["id"]
    expect.equal("the messages of a new conversation", [], await exam.history(made))
    async with exam.line() as line:
        for place in range(2):
            await (await line.chat(f"Message {place}", conversation_id=made)).completed()
    kept = await exam.history(made)
    said = [message["content"] for message in kept if message["role"] == "user"]
    expect.equal("what the user said", ["Message 0", "Message 1"], [_user_text(item) for item in said])
    expect.equal("the roles", ["user", "assistant"] * 2, [message["role"] for message in kept])


@requirement("ZF-HTTP-3.2-06")
async def the_users_words_are_kept(exam: ZenfluxExamination) -> None:
    """What the user said is listed to the letter, said on the socket or over REST."""
    words = f"  {exam.profile.prompt('text')}  \n\t«中文» \"quoted\" \\ 😀 "
    made = (await exam.conversation())["id"]
    async with exam.line() as line:
        await (await line.chat(words, conversation_id=made)).completed()
    body = {"message": words, "userId": exam.user, "conversationId": made, "stream": False}
    await exam.post("/chat?format=zenflux", body)
    said = [_user_text(message["content"]) for message in await exam.history(made) if message["role"] == "user"]
    expect.equal("what the user said", [words, words], said)


def _user_text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@requirement("ZF-HTTP-3.2-07")
async def conversations_are_searched(exam: ZenfluxExamination) -> None:
    """GET /conversations/search?user_id&q&limit finds the user's conversations by their titles, and is no id."""
    word = f"needle{uuid4().hex[:8]}"
    made = {(await exam.conversation(f"A {word} {place}"))["id"] for place in range(3)}
    await exam.conversation("Hay")
    expect.equal("what was found", sorted(made), sorted(await _search(exam, q=word)))
    expect.equal("how many at most", 2, len(await _search(exam, q=word, limit=2)))
    expect.equal("what nobody said", [], await _search(exam, q=f"nothing{uuid4().hex}"))
    other = await exam.get("/conversations/search", user_id=f"nobody-{uuid4().hex}", q=word)
    expect.equal("what somebody else finds", [], listed(other, "conversations", "results"))


async def _search(exam: ZenfluxExamination, **query: Any) -> list[str]:
    data = await exam.get("/conversations/search", user_id=exam.user, **query)
    found = [item.get("conversation", item) for item in listed(data, "conversations", "results")]
    for item in found:
        exam.schemas.fit("conversation", item, "a conversation that was found")
    return [item["id"] for item in found]


@requirement("ZF-HTTP-3.2-08", "ZF-HTTP-3.2-09")
async def a_conversation_is_prepared_and_summed_up(exam: ZenfluxExamination) -> None:
    """POST …/preload and GET …/summary succeed for a conversation, empty or not, and not for an unknown one."""
    made = (await exam.conversation())["id"]
    run = await exam.told("text")
    for name in (made, run.conversation_id):
        await exam.post(f"/conversations/{name}/preload")
        await exam.get(f"/conversations/{name}/summary")
    for method, path in (("POST", "preload"), ("GET", "summary")):
        answer = await exam.ask(method, f"/conversations/{exam.stranger()}/{path}")
        answer.refused("there is no such conversation")
