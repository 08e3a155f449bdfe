"""Section conversations: made, listed page by page, shown, renamed, searched, deleted."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.rest_answer import listed
from conformance.zenflux.run_contents import as_text
from conformance.zenflux.sample_runs import told

MANY = 5


async def _page(exam: ZenfluxExamination, **query: Any) -> list[dict[str, Any]]:
    data = await exam.get("/conversations", user_id=exam.user, **query)
    found = listed(data, "conversations", owner="ZF-HTTP-3.2-02")
    for item in found:
        exam.described("conversation", item, "a listed conversation")
    return found


@requirement("ZF-HTTP-3.2-01")
async def a_conversation_is_made(exam: ZenfluxExamination) -> None:
    """POST /conversations?user_id&title makes a conversation of this user with this title, a new one each time."""
    titles = ["Plain", "标题 & more? #1"]
    made = [await exam.conversation(title) for title in (*titles, titles[0])]
    expect.equal("the users", [exam.user] * 3, [item["user_id"] for item in made])
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
    """GET /conversations/{id} shows what was made."""
    made = await exam.conversation("Shown")
    shown = await exam.read("conversation", f"/conversations/{made['id']}")
    expect.equal("the conversation", [made["id"], "Shown"], [shown["id"], shown["title"]])


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


@requirement("ZF-HTTP-3.2-05")
async def a_conversation_is_deleted(exam: ZenfluxExamination) -> None:
    """DELETE /conversations/{id} removes it from everywhere, and leaves the others."""
    made, kept = await exam.conversation("Deleted"), await exam.conversation("Kept")
    before = [item["id"] for item in await _page(exam)]
    (await exam.ask("DELETE", f"/conversations/{made['id']}")).done()
    for path in ("", "/messages") if await _unknown_is_refused(exam) else ():
        (await exam.ask("GET", f"/conversations/{made['id']}{path}")).refused("it was deleted")
    left = [item["id"] for item in await _page(exam)]
    expect.that(made["id"] not in left, "a deleted conversation not to be listed", left)
    wanted = [name for name in before if name == kept["id"]]
    expect.equal("what is left of the others", wanted, [name for name in left if name == kept["id"]])


async def _unknown_is_refused(exam: ZenfluxExamination) -> bool:
    """Whether the server refuses to show what nobody has made, so that a refusal says something."""
    return 400 <= (await exam.ask("GET", f"/conversations/{exam.stranger()}")).code < 500


@dataclass(frozen=True)
class Talk:
    """A conversation in which the user spoke on the socket and over REST, and its messages before and after."""

    id: str
    words: tuple[str, ...]
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]


async def talked(exam: ZenfluxExamination) -> Talk:
    exam.profile.prompt("text")
    return await exam.once("a conversation of two rounds", _talk)


async def _talk(exam: ZenfluxExamination) -> Talk:
    words = f'  {exam.profile.prompt("text")}  \n\t«中文» "quoted" \\ 😀 '
    made = (await exam.conversation())["id"]
    before = await exam.history(made)
    said = (words, f"Again: {words}")
    async with exam.line() as line:
        run = await (await line.chat(said[0], conversation_id=made)).finish()
    is_own = run.conversation_id == made
    expect.that(is_own, "the run in the conversation it was sent to", run.conversation_id, "ZF-WS-07")
    data = (await exam.chat_at_once(said[1], conversationId=made)).done()
    there = data.get("conversation_id", made) if isinstance(data, dict) else made
    expect.that(there == made, "the chat in the conversation it was sent to", data, "ZF-TYPE-07")
    return Talk(made, said, before, await exam.history(made))


@requirement("ZF-HTTP-3.2-06")
async def messages_are_listed(exam: ZenfluxExamination) -> None:
    """GET /conversations/{id}/messages has every message of the conversation; a new one has none."""
    talk = await talked(exam)
    expect.equal("the messages of a new conversation", [], talk.before)
    said = [as_text(message["content"]) for message in talk.after if message["role"] == "user"]
    expect.equal("how often the user spoke", len(talk.words), len(said))
    replies = [message for message in talk.after if message["role"] == "assistant"]
    expect.that(len(replies) >= len(talk.words), "a reply to each message", talk.after)


@requirement("ZF-HTTP-3.2-06")
async def the_users_words_are_kept(exam: ZenfluxExamination) -> None:
    """What the user said is listed to the letter, said on the socket or over REST."""
    talk = await talked(exam)
    said = [as_text(message["content"]) for message in talk.after if message["role"] == "user"]
    expect.equal("what the user said", list(talk.words), said)


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
        exam.described("conversation", item, "a conversation that was found")
    return [item["id"] for item in found]


@requirement("ZF-HTTP-3.2-08", "ZF-HTTP-3.2-09")
async def a_conversation_is_prepared_and_summed_up(exam: ZenfluxExamination) -> None:
    """POST …/preload and GET …/summary succeed for a conversation, empty or not."""
    made = (await exam.conversation())["id"]
    run = await told(exam, "text")
    for name in (made, run.conversation_id):
        prepared = await exam.ask("POST", f"/conversations/{name}/preload")
        with exam.departures.noting("ZF-HTTP-3.2-08"):
            prepared.done()
        (await exam.ask("GET", f"/conversations/{name}/summary")).done()
