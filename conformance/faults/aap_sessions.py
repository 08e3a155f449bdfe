"""Servers that create, configure, show or delete sessions wrongly."""

import re
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.damage import without_nulls
from conformance.faults.desk import TOOLS
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, Session
from conformance.faults.reference import ReferenceServer
from conformance.faults.wire import NewTurn

SHOWN = "sessions.a_session_is_shown"
DELETED = "sessions.a_session_is_deleted"
CARRIED = "sessions.parameters_come_back_as_they_came"
SECRET = "sessions.secrets_stay_secret"


@fault("AAP-SESS-01", cases="sessions.a_session_is_created")
class CreatedWith200(ReferenceServer):
    """Creation is answered with 200."""

    async def post_session(self, request: web.Request) -> web.StreamResponse:
        response = await super().post_session(request)
        response.set_status(200)
        return response


@fault("AAP-SESS-01", cases="sessions.a_session_is_created")
class OneIdForAll(ReferenceServer):
    """Every session has the same id."""

    def mint(self) -> str:
        return "the-session"


@fault("AAP-SESS-01", cases="sessions.creating_does_not_run_the_agent")
class RunsOnCreation(ReferenceServer):
    """The agent answers a seeded user message at once."""

    def created(self, session: Session) -> None:
        if session.history:
            session.history.append({"role": "assistant", "content": "At your service!"})


@fault("AAP-SESS-02", cases="sessions.the_agent_must_be_known")
class AnyAgentWillDo(ReferenceServer):
    """An unknown agent's name is taken for the first agent."""

    def agent(self, name: str) -> dict[str, Any]:
        return next((agent for agent in self.agents() if agent["name"] == name), self.agents()[0])


class _Info(ReferenceServer):
    """Changes what is shown of a session's agent."""

    def changed(self, session: Session) -> dict[str, Any]:
        return {}

    def info(self, session: Session) -> dict[str, Any]:
        told = super().info(session)
        return told | {"agent": told["agent"] | self.changed(session)}


@fault("AAP-SESS-07", cases=SHOWN)
class ToolsNotShown(_Info):
    """The enabled tools are not shown."""

    def changed(self, session: Session) -> dict[str, Any]:
        return {"tools": []}


@fault("AAP-SESS-07", cases=SHOWN)
class TrustNotShown(_Info):
    """Enabled tools are shown as if none were trusted."""

    def changed(self, session: Session) -> dict[str, Any]:
        return {"tools": [{"name": name} for name in session.tools]}


@fault("AAP-SESS-07", cases=SHOWN)
class ClientToolsNotShown(ReferenceServer):
    """The client's tools are not shown."""

    def info(self, session: Session) -> dict[str, Any]:
        told = super().info(session)
        del told["tools"]
        return told


@fault("AAP-SESS-07", cases="sessions.a_bare_session_is_shown_bare")
class EveryToolShown(_Info):
    """All tools of the agent are shown as enabled."""

    def changed(self, session: Session) -> dict[str, Any]:
        return {"tools": [{"name": tool["name"]} for tool in TOOLS]}


@fault("AAP-SESS-07", "AAP-SESS-10", "AAP-HIST-02", "AAP-TURN-01", cases="""
    sessions.a_bare_session_is_shown_bare sessions.deleting_an_unknown_session_is_a_404
    history.a_history_must_be_asked_for_rightly turns.a_turn_needs_a_session_and_a_known_mode""")
class UnknownSessionIs400(ReferenceServer):
    """An unknown session is a 400."""

    def find(self, request: web.Request) -> Session:
        if request.match_info["id"] not in self.sessions:
            raise Refusal(400, "there is no such session")
        return super().find(request)


@fault("AAP-SESS-08", cases=SECRET)
class SecretShown(ReferenceServer):
    """A session shows its secrets."""

    def secrets(self, session: Session) -> set[str]:
        return set()


@fault("AAP-SESS-08", cases=SECRET)
class SecretListed(_Info):
    """A session hides its secrets, the list does not."""

    def listed(self, session: Session) -> dict[str, Any]:
        told = super().listed(session)
        return told | {"agent": told["agent"] | {"options": session.options}}


@fault("AAP-SESS-08", cases=SECRET)
class SecretOfTurnShown(ReferenceServer):
    """A secret that came with a turn is shown."""

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        super().reconfigure(session, turn)
        session.script.moves.clear()
        session.client_tools = [{"name": "x", "description": str(turn.agent.options), "parameters": {}}]


@fault("AAP-SESS-10", cases=DELETED)
class DeletedWith200(ReferenceServer):
    """Deletion is answered with 200."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        await super().delete_session(request)
        return web.json_response({})


@fault("AAP-SESS-10", cases=DELETED)
class HistorySurvives(ReferenceServer):
    """The history of a deleted session can still be read."""

    async def get_history(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["id"] in self.sessions or "no-such" in request.path:
            return await super().get_history(request)
        return web.json_response({"history": {request.query["type"]: []}})


@fault("AAP-SESS-10", cases=DELETED)
class NothingIsDeleted(ReferenceServer):
    """Deletion says yes and does nothing."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        self.find(request)
        return web.Response(status=204)


@fault("AAP-SESS-10", cases="sessions.deleting_an_unknown_session_is_a_404")
class AnythingIsDeleted(ReferenceServer):
    """Deleting an unknown session is a success."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        self.sessions.pop(request.match_info["id"], None)
        return web.Response(status=204)


@fault("AAP-SESS-07", cases=CARRIED)
class NullsLeftOut(ReferenceServer):
    """Members that are null are left out of what is shown."""

    def info(self, session: Session) -> dict[str, Any]:
        told: dict[str, Any] = without_nulls(super().info(session))
        return told


@fault("AAP-SESS-07", cases=CARRIED)
class LargeNumbersAsText(ReferenceServer):
    """Numbers that do not fit into a double come back as strings."""

    def info(self, session: Session) -> dict[str, Any]:
        told = orjson.dumps(super().info(session)).decode()
        changed: dict[str, Any] = orjson.loads(re.sub(r"(?<=[:,\[])-?[0-9.e+]{17,}", r'"\g<0>"', told))
        return changed
