"""Section conventions, lists: envelopes, limits and cursors, on sessions and on events."""

import asyncio
from typing import Any

from conformance.cas.conversation import sound
from conformance.cas.examination import Body, CasExamination
from conformance.cas.scenes import replies
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.http import Query

USUAL = 20


async def _sessions(exam: CasExamination, count: int) -> list[str]:
    """The ids of so many new sessions, oldest first."""
    await exam.own_agent()
    await exam.environment()
    return [(await exam.open()).id for _ in range(count)]


async def _page(exam: CasExamination, query: Query) -> Body:
    """A page of the examined agent's sessions, its envelope checked."""
    pairs = dict(query) | {"agent_id": await exam.own_agent()}
    return sound(await exam.have("sessions", "GET", "/sessions", query=pairs))


async def _walk(exam: CasExamination, cursor: str, field: str) -> list[list[str]]:
    """The pages of two, following the cursor to the end."""
    pages: list[list[str]] = []
    query = {"limit": "2"}
    while len(pages) < 10:
        page = await _page(exam, query)
        pages.append([item["id"] for item in page["data"]])
        if not page["has_more"]:
            return pages
        query = {"limit": "2", cursor: page[field]}
    return pages


@requirement("CAS-GEN-04")
async def pages_follow_each_other(exam: CasExamination) -> None:
    """after_id=last_id and page=next_page both lead through all sessions, none repeated or skipped."""
    newest_first = (await _sessions(exam, 5))[::-1]
    wanted = [newest_first[:2], newest_first[2:4], newest_first[4:]]
    expect.equal("the pages by after_id", wanted, await _walk(exam, "after_id", "last_id"))
    expect.equal("the pages by page", wanted, await _walk(exam, "page", "next_page"))


@requirement("CAS-GEN-04")
async def pages_lead_back(exam: CasExamination) -> None:
    """before_id gives what comes before that id, and no more."""
    newest_first = (await _sessions(exam, 4))[::-1]
    for place in (1, 2):
        query = {"limit": "2", "before_id": newest_first[place], "agent_id": await exam.own_agent()}
        page = await exam.have("sessions", "GET", "/sessions", query=query)
        wanted = newest_first[:place]
        expect.equal(f"the page before number {place + 1}", wanted, [item["id"] for item in page["data"]])


@requirement("CAS-GEN-04")
async def a_page_has_twenty_unless_asked(exam: CasExamination) -> None:
    """Without limit a page has 20 entries, with limit=1000 all 21, with limit=1 one."""
    await exam.own_agent()
    await exam.environment()
    await asyncio.gather(*(exam.open() for _ in range(USUAL + 1)))
    for query, count in (({}, USUAL), ({"limit": "1000"}, USUAL + 1), ({"limit": "1"}, 1)):
        page = await _page(exam, query)
        expect.equal(f"entries for {query}", (count, count <= USUAL), (len(page["data"]), page["has_more"]))


@requirement("CAS-GEN-04")
async def limits_are_kept(exam: CasExamination) -> None:
    """A limit below 1, or one that is no number, is a 400; one above 100 is taken as 100."""
    for limit in ("0", "-1", "many"):
        exam.refused(await exam.ask("GET", "/sessions", query={"limit": limit}), 400)


@requirement("CAS-GEN-04")
async def cursors_exclude_each_other(exam: CasExamination) -> None:
    """Two of after_id, before_id and page at once are a 400."""
    first, _, last = await _sessions(exam, 3)
    page = (await _page(exam, {"limit": "1"}))["next_page"]
    cursors: dict[str, Any] = {"after_id": first, "before_id": last, "page": page}
    for left_out in cursors:
        query = {name: value for name, value in cursors.items() if name != left_out}
        exam.refused(await exam.ask("GET", "/sessions", query=query | {"agent_id": await exam.own_agent()}), 400)


@requirement("CAS-GEN-04")
async def an_empty_list_is_a_list(exam: CasExamination) -> None:
    """A list without entries has no ids and nothing more."""
    page = await _page(exam, {})
    expect.equal("a list of nothing", ([], False), (page["data"], page["has_more"]))


@requirement("CAS-GEN-04", "CAS-EV-11")
async def events_come_in_pages(exam: CasExamination) -> None:
    """The events of a session, three by three, by after_id and by page, forwards and backwards."""
    scene = await replies(exam)
    scene.run("text")
    talk, names = scene.talk(exam), [event["id"] for event in scene.listed]
    for order, wanted in (("asc", names), ("desc", names[::-1])):
        for cursor, field in (("after_id", "last_id"), ("page", "next_page")):
            seen: list[str] = []
            query = {"limit": "3", "order": order}
            while len(seen) <= len(names):
                page = sound(await exam.have("events", "GET", f"{talk.path}/events", query=query))
                seen += [event["id"] for event in page["data"]]
                if not page["has_more"]:
                    break
                query = {"limit": "3", "order": order, cursor: page[field]}
            expect.equal(f"the events by {cursor}, {order}", wanted, seen)
