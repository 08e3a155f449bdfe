"""Section sessions, the list: pages that neither repeat nor skip, whatever happens between them."""

from collections import Counter
from typing import Any

from conformance.aap.examination import AapExamination
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable

MOST_PAGES = 400
AT_FIRST = 6


async def page(exam: AapExamination, after: str | None = None) -> dict[str, Any]:
    """One page of the list."""
    query = {} if after is None else {"after": after}
    with expect.owned("AAP-SESS-09"):
        reply = expect.status(await exam.http.ask("GET", "/sessions", query=query), 200)
        body: dict[str, Any] = reply.json()
        exam.schemas.fit("sessions", body, f"the answer to {reply.asked}")
    return body


async def following(exam: AapExamination, first: dict[str, Any]) -> list[Any]:
    """The sessions of all pages after this one."""
    found: list[Any] = []
    current, seen = first, set()
    for _ in range(MOST_PAGES):
        if "next" not in current:
            return found
        cursor = current["next"]
        expect.that(cursor not in seen, "every page to have a `next` of its own", cursor, "AAP-SESS-09")
        seen.add(cursor)
        current = await page(exam, cursor)
        found += current["sessions"]
    raise NotTestable(f"the list of sessions has more than {MOST_PAGES} pages")


async def all_sessions(exam: AapExamination) -> list[Any]:
    """Every session of the list."""
    first = await page(exam)
    return [*first["sessions"], *await following(exam, first)]


@requirement("AAP-SESS-09")
async def the_list_is_whole(exam: AapExamination) -> None:
    """Every session that was created is listed, once, as it is shown by itself."""
    mine = [(await exam.open()).session for _ in range(AT_FIRST)]
    _expect_once(mine, await all_sessions(exam))


@requirement("AAP-SESS-09")
async def pages_hold_while_sessions_come_and_go(exam: AapExamination) -> None:
    """Sessions created, and a listed one deleted, between two pages make no other appear twice or not at all."""
    mine, first = await _until_there_are_pages(exam)
    _expect_once(mine, [*first["sessions"], *await following(exam, first)])
    before, current = await _page_with(exam, mine)
    newcomers = [(await exam.open()).session for _ in range(3)]
    leaving = [session["sessionId"] for session in current["sessions"] if session["sessionId"] in mine][-1:]
    for name in leaving:
        await exam.http.ask("DELETE", f"/sessions/{name}")
    _expect_once(mine, [*before, *current["sessions"], *await following(exam, current)])
    later = {session["sessionId"] for session in await all_sessions(exam)}
    expect.subset("the list, read again,", newcomers, later)


async def _page_with(exam: AapExamination, mine: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The first page that has a session of mine on it and another page after it, and the sessions of those before."""
    before: list[Any] = []
    current = await page(exam)
    while "next" in current and not any(session["sessionId"] in mine for session in current["sessions"]):
        before += current["sessions"]
        current = await page(exam, current["next"])
    return before, current


async def _until_there_are_pages(exam: AapExamination) -> tuple[list[str], dict[str, Any]]:
    """Sessions until the list has a third page, or at least a second, and its first page."""
    most = exam.profile.listing.sessions
    if most is None:
        raise NotTestable("the profile has no entry `listing.sessions`")
    mine: list[str] = []
    first: dict[str, Any] = {}
    while len(mine) < most:
        mine += [(await exam.open()).session for _ in range(min(max(AT_FIRST, len(mine)), most - len(mine)))]
        first = await page(exam)
        if "next" in first and "next" in await page(exam, first["next"]):
            break
    if "next" in first:
        return mine, first
    raise NotTestable(f"{most} sessions fit on one page; to see a second one, raise listing.sessions in the profile")


def _expect_once(mine: list[str], listed: list[Any]) -> None:
    """Every session of mine is listed, and none of anybody's twice."""
    counted = Counter(session["sessionId"] for session in listed)
    expect.equal("sessions that are on no page", [], [name for name in mine if counted[name] == 0])
    expect.equal("sessions listed more than once", [], [name for name, count in counted.items() if count > 1])
