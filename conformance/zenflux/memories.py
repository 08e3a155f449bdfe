"""Section memories: what is kept of users, found again and forgotten; every case has a user of its own."""

from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import BAD, UNKNOWN, coded, heard, is_refused, is_taken, manage, obtained
from conformance.zenflux.rest_answer import Answer, listed

MANY = "lets the server go through the conversations of all users"
TOO_SHORT = {"since_hours": 0}
"""A batch that is refused; nothing needs to be gone through to see that the call is there."""


def _word() -> str:
    return f"word{uuid4().hex[:12]}"


def _message(words: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": words}


async def _add(exam: ZenfluxExamination, *words: str, user: str | None = None) -> Answer:
    """The answer to an addition; what was added is deleted after the case."""
    return await _posted(exam, {"user_id": user or exam.user, "messages": [*map(_message, words)]})


async def _posted(exam: ZenfluxExamination, body: dict[str, Any]) -> Answer:
    """The answer to POST /mem0/add; memories that it names are deleted one by one, or else the user is forgotten."""
    whose = body.get("user_id", exam.user)
    exam.undo(f"the memories of {whose}", "DELETE", f"/mem0/user/{whose}")
    answer = await manage(exam, "POST", "/mem0/add", body)
    for name in _ids_in(answer.body["data"]):
        exam.undos.pop(f"the memories of {whose}", None)
        exam.undo(f"the memory {name}", "DELETE", f"/mem0/memory/{name}")
    if is_refused(answer):
        exam.undos.pop(f"the memories of {whose}")
    return answer


async def _added(exam: ZenfluxExamination, *words: str, user: str | None = None) -> list[dict[str, Any]]:
    """What is listed of the user after an addition that is carried out."""
    whose = user or exam.user
    with expect.preparing("memories"):
        (await _add(exam, *words, user=whose)).done()
        found = await _list(exam, whose)
        expect.that(len(found) >= len(words), "what was added in the list", found)
    return found


async def _list(exam: ZenfluxExamination, user: str, **query: str) -> list[dict[str, Any]]:
    return listed(await obtained(exam, "GET", f"/mem0/user/{user}", **query), "memories", "results")


async def _kept(exam: ZenfluxExamination) -> list[dict[str, Any]] | None:
    """The user's memories as a witness lists them; None if it cannot be heard or read."""
    answer = await heard(exam, f"/mem0/user/{exam.user}")
    try:
        return listed(answer.body["data"], "memories", "results") if answer else None
    except Failed:
        return None


async def _search(exam: ZenfluxExamination, query: str, **more: Any) -> list[dict[str, Any]]:
    body = {"user_id": exam.user, "query": query, **more}
    return listed(await obtained(exam, "POST", "/mem0/search", body), "memories", "results")


async def _found(exam: ZenfluxExamination, query: str) -> str:
    """What a search is answered with; nothing if it does not succeed."""
    try:
        answer = await manage(exam, "POST", "/mem0/search", {"user_id": exam.user, "query": query})
    except Failed:
        return ""
    return answer.reply.text if answer.is_done else ""


# -- the six rows ------------------------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.10-01")
async def memories_are_searched(exam: ZenfluxExamination) -> None:
    """POST /mem0/search finds a memory of the user by its words."""
    word = _word()
    await _add(exam, f"I collect {word}")
    answer = await manage(exam, "POST", "/mem0/search", {"user_id": exam.user, "query": word})
    listed(answer.done(), "memories", "results")
    if word in str(await _kept(exam)):
        expect.that(word in answer.reply.text, f"the memory with {word} to be found", answer.reply.told)


@requirement("ZF-HTTP-3.10-02")
async def memories_are_listed(exam: ZenfluxExamination) -> None:
    """GET /mem0/user/{user_id} lists the memories of a user."""
    word = _word()
    await _add(exam, f"I collect {word}")
    answer = await manage(exam, "GET", f"/mem0/user/{exam.user}")
    listed(answer.done(), "memories", "results")
    if word in await _found(exam, word):
        expect.that(word in answer.reply.text, f"the memory with {word} in the list", answer.reply.told)


@requirement("ZF-HTTP-3.10-03")
async def memories_are_added(exam: ZenfluxExamination) -> None:
    """POST /mem0/add keeps something of what the user said."""
    word = _word()
    (await _add(exam, f"My name is {word} and I collect stamps")).done()
    kept = await _kept(exam)
    expect.that(kept != [] or word in await _found(exam, word), "a memory of the user", kept)


@requirement("ZF-HTTP-3.10-04")
async def memories_are_updated_together(exam: ZenfluxExamination) -> None:
    """POST /mem0/batch-update is there: a span of no hours is refused or taken."""
    is_taken(await manage(exam, "POST", "/mem0/batch-update", TOO_SHORT), *BAD)


@requirement("ZF-HTTP-3.10-05")
async def a_memory_is_deleted(exam: ZenfluxExamination) -> None:
    """DELETE /mem0/memory/{id} deletes one memory, which is then no longer listed."""
    answer = await _add(exam, f"I collect {_word()}")
    kept = await _kept(exam)
    name = next(iter(_ids_in(answer.body["data"] if kept is None else kept)), None)
    answer = await manage(exam, "DELETE", f"/mem0/memory/{name or exam.stranger()}")
    if name is None and answer.code == UNKNOWN and await _kept(exam) is not None:
        raise NotTestable("no memory is known that could be deleted")
    answer.done()
    names = [str(item.get("id")) for item in await _kept(exam) or []]
    expect.that(name not in names, f"the memory {name} not to be listed any more", names)


def _ids_in(data: Any) -> list[str]:
    """The ids of the memories in a list, as far as they can be read."""
    try:
        items = listed(data, "results", "memories")
    except Failed:
        return []
    return [str(item["id"]) for item in items if isinstance(item.get("id"), str | int)]


@requirement("ZF-HTTP-3.10-06")
async def a_user_is_forgotten(exam: ZenfluxExamination) -> None:
    """DELETE /mem0/user/{user_id} forgets all that is kept of a user."""
    word = _word()
    await _add(exam, f"I collect {word}")
    (await manage(exam, "DELETE", f"/mem0/user/{exam.user}")).done()
    expect.equal("what is kept of the user", [], await _kept(exam) or [])


# -- searching and listing ---------------------------------------------------------------------------------------------


@requirement("ZF-MEM-01.in")
async def a_search_has_a_limit(exam: ZenfluxExamination) -> None:
    """POST /mem0/search finds no more than limit, and only what is the user's."""
    word, other = _word(), f"{exam.user}-other"
    await _added(exam, f"{word} one", f"{word} two", f"{word} three")
    await _added(exam, f"{word} four", user=other)
    found = await _search(exam, word)
    expect.that(len(found) > 2, "the three memories with the word", found)
    expect.equal("whose they are", {exam.user}, {item.get("user_id", exam.user) for item in found})
    expect.that(not any("four" in str(item.get("memory")) for item in found), "nothing of another user", found)
    expect.equal("how many there are with limit 2", 2, len(await _search(exam, word, limit=2)))


@requirement("ZF-MEM-01.out")
async def what_is_found_has_a_score(exam: ZenfluxExamination) -> None:
    """POST /mem0/search is an array of memories with a score from 0 to 1, the best first."""
    one, two = _word(), _word()
    await _added(exam, f"I collect {one}", f"I collect {one} {two}")
    data = await obtained(exam, "POST", "/mem0/search", {"user_id": exam.user, "query": f"{one} {two}"})
    exam.schemas.fit("memory_list", data, "the data of POST /mem0/search")
    scores = [item["score"] for item in data]
    is_scored = bool(scores) and all(isinstance(score, int | float) and 0 <= score <= 1 for score in scores)
    expect.that(is_scored, "a score from 0 to 1 for each", scores)
    expect.equal("the scores, the best first", sorted(scores, reverse=True), scores)


@requirement("ZF-MEM-01.err")
async def wrong_searches_are_refused(exam: ZenfluxExamination) -> None:
    """POST /mem0/search without user_id or query, with an empty query or a limit outside 1 to 50 is a 400."""
    await obtained(exam, "GET", f"/mem0/user/{exam.user}")
    whole: dict[str, Any] = {"user_id": exam.user, "query": "x"}
    parts: tuple[dict[str, Any], ...] = ({}, {"user_id": exam.user}, {"query": "x"})
    for body in (*parts, *(whole | change for change in ({"query": ""}, {"limit": 0}, {"limit": 51}))):
        coded(await manage(exam, "POST", "/mem0/search", body), f"of {expect.show(body)}", *BAD)


@requirement("ZF-MEM-02.in")
async def a_list_has_a_limit(exam: ZenfluxExamination) -> None:
    """GET /mem0/user/{user_id} lists no more than limit."""
    await _added(exam, "I collect stamps", "I sail boats", "I bake bread")
    expect.equal("how many there are with limit 2", 2, len(await _list(exam, exam.user, limit="2")))


@requirement("ZF-MEM-02.out")
async def the_newest_memory_comes_first(exam: ZenfluxExamination) -> None:
    """GET /mem0/user/{user_id} is an array of memories, the newest first; nobody has none."""
    for words in ("I collect stamps", "I sail boats"):
        await _added(exam, words)
    data = await obtained(exam, "GET", f"/mem0/user/{exam.user}")
    exam.schemas.fit("memory_list", data, "the data of GET /mem0/user/{user_id}")
    times = [item["created_at"] for item in data]
    expect.equal("the times, the newest first", sorted(times, reverse=True), times)
    expect.that("boats" in data[0]["memory"], "what was added last to come first", data[0])
    nobody = await obtained(exam, "GET", f"/mem0/user/{exam.stranger()}")
    expect.equal("the memories of nobody", [], nobody)


@requirement("ZF-MEM-02.err")
async def wrong_limits_are_refused(exam: ZenfluxExamination) -> None:
    """GET /mem0/user/{user_id} with a limit outside 1 to 200 is a 400."""
    await obtained(exam, "GET", f"/mem0/user/{exam.user}")
    for limit in ("0", "201", "many"):
        answer = await manage(exam, "GET", f"/mem0/user/{exam.user}", limit=limit)
        coded(answer, f"limit is {limit}", *BAD)


# -- adding ------------------------------------------------------------------------------------------------------------


@requirement("ZF-MEM-03.out")
async def an_addition_is_told(exam: ZenfluxExamination) -> None:
    """POST /mem0/add is {memories_added, results}; each result has id, memory and event, and is counted."""
    with expect.preparing("memories"):
        data = (await _add(exam, "I collect stamps", "I sail boats")).done()
    exam.schemas.fit("memories_added", data, "the data of POST /mem0/add")
    expect.equal("memories_added", len(data["results"]), data["memories_added"])


@requirement("ZF-MEM-03.err")
async def wrong_additions_are_refused(exam: ZenfluxExamination) -> None:
    """POST /mem0/add without user_id, without messages, or with messages that are none is a 400, and keeps nothing."""
    await obtained(exam, "GET", f"/mem0/user/{exam.user}")
    wrong: tuple[Any, ...] = (..., [], "I collect stamps", ["I collect stamps"], [{"role": "user"}], [_message("x"), 7])
    for messages in wrong:
        body = {"user_id": exam.user} | ({} if messages is ... else {"messages": messages})
        coded(await _posted(exam, body), "the messages are not messages", *BAD)
    coded(await _posted(exam, {"messages": [_message("x")]}), "there is no user_id", *BAD)
    expect.equal("what was kept", [], await _list(exam, exam.user))


@requirement("ZF-MEM-03.does")
async def the_users_words_are_remembered(exam: ZenfluxExamination) -> None:
    """Each message of the user is kept word for word; what the agent said is not kept."""
    said = f"I collect {_word()}"
    messages = [_message(said), _message("How nice!", "assistant"), _message("I sail boats")]
    with expect.preparing("memories"):
        (await _posted(exam, {"user_id": exam.user, "messages": messages})).done()
        kept = [str(item.get("memory")) for item in await _list(exam, exam.user)]
        expect.that(bool(kept), "what was added in the list", kept)
    expect.equal("what is kept", sorted([said, "I sail boats"]), sorted(kept))


@requirement("ZF-MEM-04.out", destructive=MANY)
async def a_batch_is_counted(exam: ZenfluxExamination) -> None:
    """POST /mem0/batch-update is {total_users, successful, failed, duration_seconds, results}, and adds up."""
    data = await obtained(exam, "POST", "/mem0/batch-update", {"since_hours": 1, "max_concurrent": 1})
    exam.schemas.fit("memory_batch", data, "the data of POST /mem0/batch-update")
    expect.equal("total_users", data["successful"] + data["failed"], data["total_users"])


@requirement("ZF-MEM-04.err")
async def wrong_batches_are_refused(exam: ZenfluxExamination) -> None:
    """POST /mem0/batch-update with hours outside 1 to 168, or more than 20 at once, is a 400."""
    await obtained(exam, "GET", f"/mem0/user/{exam.user}")
    out_of_bounds: tuple[Any, ...] = ({"since_hours": 169}, {"max_concurrent": 0}, {"max_concurrent": 21})
    for body in (TOO_SHORT, *out_of_bounds, {"since_hours": "day"}):
        coded(await manage(exam, "POST", "/mem0/batch-update", body), f"of {expect.show(body)}", *BAD)


# -- forgetting --------------------------------------------------------------------------------------------------------


@requirement("ZF-MEM-05.out")
async def a_deletion_is_told(exam: ZenfluxExamination) -> None:
    """DELETE /mem0/memory/{id} is {deleted: true}, and the other memories stay."""
    items = await _added(exam, "I collect stamps", "I sail boats")
    with expect.preparing("the id of a memory"):
        names = [str(expect.keyed("a memory", item, "id")["id"]) for item in items]
    data = await obtained(exam, "DELETE", f"/mem0/memory/{names[0]}")
    expect.equal("deleted", True, expect.keyed("the data", data).get("deleted"))
    expect.equal("what is left", names[1:], [str(item.get("id")) for item in await _list(exam, exam.user)])


@requirement("ZF-MEM-05.err")
async def unknown_memories_cannot_be_deleted(exam: ZenfluxExamination) -> None:
    """DELETE /mem0/memory/{id} is a 404 for a memory that nobody has, and for one that is deleted."""
    items = await _added(exam, "I collect stamps")
    path = f"/mem0/memory/{items[0].get('id')}"
    await obtained(exam, "DELETE", path)
    coded(await manage(exam, "DELETE", path), "it is deleted", UNKNOWN)
    coded(await manage(exam, "DELETE", f"/mem0/memory/{exam.stranger()}"), "nobody has it", UNKNOWN)


@requirement("ZF-MEM-06.out")
async def a_reset_is_told(exam: ZenfluxExamination) -> None:
    """DELETE /mem0/user/{user_id} is {reset: true}, for a user of whom nothing is kept too."""
    await _added(exam, "I collect stamps")
    for _ in range(2):
        data = await obtained(exam, "DELETE", f"/mem0/user/{exam.user}")
        expect.equal("reset", True, expect.keyed("the data", data).get("reset"))


@requirement("ZF-MEM-06.does")
async def others_are_not_forgotten(exam: ZenfluxExamination) -> None:
    """DELETE /mem0/user/{user_id} leaves the memories of other users."""
    other = f"{exam.user}-other"
    await _added(exam, "I collect stamps")
    await _added(exam, "I sail boats", user=other)
    await obtained(exam, "DELETE", f"/mem0/user/{exam.user}")
    expect.equal("how much is kept of another user", 1, len(await _list(exam, other)))
