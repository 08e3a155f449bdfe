"""What an AAP case is given: the server's agents, sessions to talk in, and everything cleared away afterwards."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from conformance.aap.agent import Agent
from conformance.aap.conversation import Conversation
from conformance.aap.profile import AapProfile
from conformance.aap.turn import TurnReader
from conformance.kit import expect
from conformance.kit.cleanup import cleared, delete_all
from conformance.kit.expect import NotTestable
from conformance.kit.http import HttpClient, Reply
from conformance.kit.schemas import Schemas

SCHEMAS = Schemas(Path(__file__).parent / "schemas")
DESCRIBES, CREATES = "AAP-META-01", "AAP-SESS-01"


class AapExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: AapProfile) -> None:
        self.http = http
        self.profile = profile
        self.schemas = SCHEMAS
        self.reader = TurnReader(SCHEMAS, http.departures)
        self._agents: list[Agent] | None = None
        self._made: list[str] = []

    async def agents(self) -> list[Agent]:
        """The agents of /meta that can be made sense of."""
        if self._agents is None:
            with expect.owned(DESCRIBES):
                body = expect.status(await self.http.ask("GET", "/meta"), 200).json()
                listed = body.get("agents") if isinstance(body, dict) else None
                expect.that(isinstance(listed, list) and bool(listed), "GET /meta to list agents", body)
            self._agents = [Agent(found) for found in listed or [] if isinstance(found, dict) and "name" in found]
        return self._agents

    async def agent(self) -> Agent:
        """The agent under examination: the profile's, or the first."""
        agents = await self.agents()
        wanted = self.profile.agent
        for agent in agents:
            if wanted is None or agent.name == wanted:
                return agent
        raise NotTestable(f"/meta lists no agent named {wanted!r}" if wanted else "/meta lists no agent with a name")

    async def every_agent(self) -> list[Agent]:
        """All agents, to be told apart by their names."""
        names = [agent.name for agent in await self.agents()]
        expect.that(len(set(names)) == len(names), "agents with names of their own", names, "AAP-META-02")
        return await self.agents()

    async def create(self, json: Any, **more: Any) -> Reply:
        """POST /sessions, whatever comes of it."""
        if self.http.shared is not None:
            await self.http.shared.once("two sessions", two_sessions)
        return await self.attempt(json, **more)

    async def attempt(self, json: Any, **more: Any) -> Reply:
        """POST /sessions, even if nobody has seen yet that it works."""
        reply = await self.http.ask("POST", "/sessions", json, **more)
        if 200 <= reply.status < 300:
            with expect.owned(CREATES):
                body = reply.json()
                if isinstance(body, dict) and isinstance(body.get("sessionId"), str):
                    self._made.append(body["sessionId"])
                self.schemas.fit("created", body, f"the answer to {reply.asked}")
            if reply.status != 201:
                self.http.departures.note(CREATES, f"{reply.asked} to be answered with 201", reply.told)
        return reply

    async def admit(
        self,
        *,
        agent: Agent | None = None,
        tools: dict[str, bool] | None = None,
        client_tools: list[Any] | None = None,
        **more: Any,
    ) -> Conversation:
        """A session to talk in, where creating it is what is examined.

        `tools` maps the server tools to enable to whether they are trusted.
        """
        agent = agent or await self.agent()
        if client_tools and not agent.takes_client_tools:
            raise NotTestable(f"the agent {agent.name!r} does not declare application.tools")
        config: dict[str, Any] = {"name": agent.name, **more.pop("agent_config", {})}
        if tools is not None:
            config["tools"] = enabled(tools)
        if unknown := sorted({tool["name"] for tool in config.get("tools", [])} - set(agent.tools)):
            raise NotTestable(f"the agent {agent.name!r} does not declare the tool {unknown[0]!r}")
        body = {"agent": config, **more} | ({"tools": client_tools} if client_tools is not None else {})
        return self.conversation(agent, await self.create(body), body)

    def conversation(self, agent: Agent, created: Reply, body: Mapping[str, Any] | None = None) -> Conversation:
        """The session that was created; a refusal is blamed on what the body has beside an agent's name."""
        owner = CREATES if created.status >= 500 else takes(body or {})
        expect.that(200 <= created.status < 300, f"{created.asked} to be answered with 201", created.told, owner)
        return Conversation(self, agent, created.json()["sessionId"])

    async def open(self, **wanted: Any) -> Conversation:
        """A session to talk in; if it cannot be had, the case cannot be put."""
        with expect.preparing("a session"):
            return await self.admit(**wanted)

    async def open_for_all_kinds(self) -> Conversation:
        """A session with a trusted server tool, one that needs permission, and a client tool."""
        trusted, untrusted = self.profile.server_tool("first_tool"), self.profile.server_tool("second_tool")
        tools = {trusted.name: True, untrusted.name: False}
        return await self.open(tools=tools, client_tools=[self.profile.client_spec])

    def value(self, option: Mapping[str, Any]) -> str:
        """What to set an option to: the profile's value, another one than the default, or a made-up word."""
        if option["name"] in self.profile.options.values:
            return self.profile.options.values[option["name"]]
        if option["type"] != "select":
            return f"examined-{uuid4().hex}"
        return next((value for value in option["options"] if value != option["default"]), str(option["default"]))

    def stranger(self) -> str:
        """A session id nobody has."""
        return f"no-such-{uuid4().hex}"

    async def clear_away(self) -> None:
        """Delete the sessions made."""
        paths = [f"/sessions/{quote(session, safe='')}" for session in self._made]
        await delete_all(self.http, paths, self.http.timeout)


async def two_sessions(exam: AapExamination) -> list[str]:
    """Two sessions with nothing but an agent: nothing can be examined where they cannot be had, or are one."""
    agent = await exam.agent()
    body: dict[str, Any] = {"agent": {"name": agent.name}}
    replies = [await exam.attempt(body) for _ in range(2)]
    if 400 <= replies[0].status < 500 and agent.options():
        options = {option["name"]: option["default"] for option in agent.options()}
        taken = await exam.attempt({"agent": {"name": agent.name, "options": options}})
        expect.that(taken.status >= 300, "options to take their defaults", replies[0].told, "AAP-SESS-04")
    names = [exam.conversation(agent, reply, body).session for reply in replies]
    expect.that(names[0] != names[1], "two sessions to have different ids", names, CREATES)
    return names


def takes(body: Mapping[str, Any]) -> str | None:
    """The requirement by which a session is created with what this body has beside an agent's name, if it is one."""
    config = body.get("agent") or {}
    given = {
        "AAP-SESS-03": config.get("tools"),
        "AAP-SESS-04": config.get("options"),
        "AAP-SESS-05": body.get("messages"),
        "AAP-META-04": body.get("tools"),
    }
    owners = [owner for owner, value in given.items() if value]
    return CREATES if not owners else owners[0] if len(owners) == 1 else None


def enabled(tools: dict[str, bool]) -> list[dict[str, Any]]:
    """ServerToolRefs; trust is only said where it is given."""
    return [{"name": name, "trust": True} if trust else {"name": name} for name, trust in tools.items()]


@asynccontextmanager
async def opening(http: HttpClient, profile: AapProfile) -> AsyncIterator[AapExamination]:
    """Set up one case, and clear away after it whatever comes of it."""
    examination = AapExamination(http, profile)
    try:
        yield examination
    finally:
        await cleared(http, examination.clear_away)
