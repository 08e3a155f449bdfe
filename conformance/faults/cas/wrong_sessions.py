"""CAS servers whose sessions are not what the Session object says."""

from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body, Talk
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal

NEW, BACK, EVERY = (
    "sessions.a_new_session_has_every_field",
    "sessions.what_is_given_comes_back",
    "sessions.every_answer_is_the_session",
)
RUNS, NEWEST, HIDDEN = (
    "sessions.a_session_says_whether_it_runs",
    "sessions.the_newest_comes_first",
    "sessions.archived_sessions_are_hidden",
)
FILTERED, CHANGES = "sessions.sessions_are_filtered", "sessions.an_update_changes_what_it_names"


class _Showing(CasServer):
    """Shows sessions otherwise than they are."""

    def changed(self, talk: Talk) -> Body:
        return {}

    def shown(self, talk: Talk) -> Body:
        return super().shown(talk) | self.changed(talk)


@fault("CAS-SESS-01", cases=NEW)
class TurnStatusMissing(CasServer):
    """There is no turn_status."""

    def shown(self, talk: Talk) -> Body:
        return {name: value for name, value in super().shown(talk).items() if name != "turn_status"}


@fault("CAS-SESS-01", cases=NEW)
class NullForEmpty(_Showing):
    """What is empty is null."""

    def changed(self, talk: Talk) -> Body:
        return {"environment_variables": talk.view["environment_variables"] or None}


@fault("CAS-SESS-01", cases=NEW)
class OldWhenNew(_Showing):
    """A new session has lasted a while."""

    def changed(self, talk: Talk) -> Body:
        return {"stats": {"active_seconds": 7, "duration_seconds": 60}}


@fault("CAS-SESS-01", cases=BACK)
class TitleDropped(_Showing):
    """The title is not kept."""

    def changed(self, talk: Talk) -> Body:
        return {"title": ""}


@fault("CAS-SESS-01", cases=BACK)
class UnknownFieldsRefused(CasServer):
    """Unknown fields are refused."""

    def new(self, body: Body) -> Talk:
        if "examiners_extra" in body:
            raise Refusal(400, "examiners_extra is not known.")
        return super().new(body)


@fault("CAS-SESS-02", cases=EVERY)
class SparseList(CasServer):
    """The list shows little."""

    def listed(self, talk: Talk) -> Body:
        return {name: talk.view[name] for name in ("id", "agent_id", "status", "created_at", "archived_at")}


@fault("CAS-SESS-02", "CAS-SESS-11", cases=f"{EVERY} {CHANGES}")
class UpdateSaysOk(CasServer):
    """An update is answered with ok."""

    async def update_session(self, request: web.Request) -> web.StreamResponse:
        await super().update_session(request)
        return reply({"ok": True})


@fault("CAS-SESS-03", cases=RUNS)
class AlwaysIdle(_Showing):
    """A session says idle while a turn runs."""

    def changed(self, talk: Talk) -> Body:
        return {"status": "idle", "turn_status": "idle"}


@fault("CAS-SESS-03", cases=RUNS)
class OtherStatuses(_Showing):
    """A running session is busy."""

    def changed(self, talk: Talk) -> Body:
        return {"status": "busy"} if talk.view["status"] == "running" else {}


@fault("CAS-SESS-09", cases="sessions.metadata_has_limits")
class EndlessMetadata(CasServer):
    """Metadata has no limits."""

    def metadata(self, given: Body) -> Body:
        return given


@fault("CAS-SESS-09", cases="sessions.metadata_has_limits")
class ScarceMetadata(CasServer):
    """Metadata has at most 10 keys."""

    def metadata(self, given: Body) -> Body:
        if len(given) > 10:
            raise Refusal(400, "metadata has more than 10 keys.")
        return super().metadata(given)


@fault("CAS-SESS-10", cases=NEWEST)
class OldestFirst(CasServer):
    """Sessions are listed oldest first."""

    def ordered(self, request: web.Request, found: list[Body]) -> list[Body]:
        return found


@fault("CAS-SESS-10", cases=HIDDEN)
class ArchivedListed(CasServer):
    """Archived sessions are listed."""

    def is_wanted(self, request: web.Request, view: Body) -> bool:
        return super().is_wanted(request, view | {"archived_at": None})


@fault("CAS-SESS-10", cases=HIDDEN)
class ArchivedNeverListed(CasServer):
    """Archived sessions are never listed."""

    def is_wanted(self, request: web.Request, view: Body) -> bool:
        return super().is_wanted(request, view) and view["archived_at"] is None


@fault("CAS-SESS-10", cases=FILTERED)
class TimesIgnored(CasServer):
    """created_at filters nothing."""

    def is_of_time(self, request: web.Request, view: Body) -> bool:
        return True


@fault("CAS-SESS-10", cases=FILTERED)
class StatusesIgnored(CasServer):
    """statuses[] filters nothing."""

    def is_wanted(self, request: web.Request, view: Body) -> bool:
        agent = request.query.get("agent_id")
        return view["archived_at"] is None and view["agent_id"] == agent and self.is_of_time(request, view)


@fault("CAS-SESS-11", cases=CHANGES)
class MetadataMerged(CasServer):
    """An update merges metadata although it should replace it."""

    def new_metadata(self, talk: Talk, given: Body) -> Body:
        return dict(talk.view["metadata"]) | given


@fault("CAS-SESS-11", cases=CHANGES)
class TitleLostInUpdates(CasServer):
    """An update that does not name the title clears it."""

    async def update_session(self, request: web.Request) -> web.StreamResponse:
        if "title" not in await self.read(request):
            self.find(request).show(title="")
        return await super().update_session(request)


@fault("CAS-SESS-01", cases="sessions.metadata_come_back_as_they_came")
class MetadataAsText(CasServer):
    """Metadata that are no strings are turned into strings."""

    def metadata(self, given: Body) -> Body:
        return {name: str(value) for name, value in super().metadata(given).items()}
