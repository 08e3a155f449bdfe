"""Servers whose list of sessions cannot be relied on."""

from typing import Any

from conformance.faults.desk import PAGE
from conformance.faults.fault import fault
from conformance.faults.ledger import Session
from conformance.faults.reference import ReferenceServer

WHOLE = "listing.the_list_is_whole"
MOVING = "listing.pages_hold_while_sessions_come_and_go"


@fault("AAP-SESS-09", cases=MOVING)
class PagesByOffset(ReferenceServer):
    """The cursor counts sessions, so that a deleted one makes another be skipped."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        start = int(after or 0)
        sessions = list(self.sessions.values())
        return sessions[start : start + PAGE], str(start + PAGE) if len(sessions) > start + PAGE else None


@fault("AAP-SESS-09", cases=MOVING)
class NewestFirstByOffset(ReferenceServer):
    """The cursor counts from the newest session, so that a new one makes another appear twice."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        start = int(after or 0)
        sessions = list(self.sessions.values())[::-1]
        return sessions[start : start + PAGE], str(start + PAGE) if len(sessions) > start + PAGE else None


@fault("AAP-SESS-09", cases=MOVING)
class CursorDiesWithItsSession(ReferenceServer):
    """The cursor is a session; when that is deleted, the list ends."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        names = list(self.sessions)
        if after is not None and after not in names:
            return [], None
        start = names.index(after) + 1 if after else 0
        here = names[start : start + PAGE]
        return [self.sessions[name] for name in here], here[-1] if len(names) > start + PAGE else None


@fault("AAP-SESS-09", cases=MOVING)
class PagesOverlap(ReferenceServer):
    """A page begins with the last session of the page before."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        return super().page(str(int(after) - 1) if after else None)


@fault("AAP-SESS-09", cases=f"{WHOLE} {MOVING}")
class NextIsNullAtTheEnd(ReferenceServer):
    """The last page has a `next` of null."""

    def listing(self, body: dict[str, Any], following: str | None) -> dict[str, Any]:
        return body | {"next": following}


@fault("AAP-SESS-09", cases=WHOLE)
class NextWithoutEnd(ReferenceServer):
    """Every page has a `next`, the last one too."""

    def listing(self, body: dict[str, Any], following: str | None) -> dict[str, Any]:
        return body | {"next": following or "999999999"}


@fault("AAP-SESS-09", cases=WHOLE)
class ShortList(ReferenceServer):
    """Most sessions are left out."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        sessions, following = super().page(after)
        return [session for session in sessions if session.place % 5 == 0], following
