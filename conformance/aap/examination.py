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
from conformance.kit import expect
from conformance.kit.clearing import cleared, delete_all
from conformance.kit.expect import NotTestable
from conformance.kit.http import HttpClient, Reply
from conformance.kit.schemas import Schemas

SCHEMAS = Schemas(Path(__file__).parent / "schemas")


class AapExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: AapProfile) -> None:
        self.http = http
        self.profile = profile
        self.schemas = SCHEMAS
        self._agents: list[Agent] | None = None
        self._made: list[str] = []

    async def agents(self) -> list[Agent]:
        """The agents of /meta that can be made sense of."""
        if self._agents is None:
            with expect.preparing("the list of agents"):
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

    async def create(self, json: Any, **more: Any) -> Reply:
        """POST /sessions, whatever comes of it."""
        reply = await self.http.ask("POST", "/sessions", json, **more)
        if 200 <= reply.status < 300:
            body = reply.json()
            if isinstance(body, dict) and isinstance(body.get("sessionId"), str):
                self._made.append(body["sessionId"])
            self.schemas.fit("created", body, "the answer to POST /sessions")
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
        if unknown := sorted(set(tools or {}) - set(agent.tools)):
            raise NotTestable(f"the agent {agent.name!r} does not declare the tool {unknown[0]!r}")
        config: dict[str, Any] = {"name": agent.name, **more.pop("agent_config", {})}
        if tools is not None:
            config["tools"] = enabled(tools)
        body = {"agent": config, **more} | ({"tools": client_tools} if client_tools is not None else {})
        return self.conversation(agent, expect.status(await self.create(body), 201))

    def conversation(self, agent: Agent, created: Reply) -> Conversation:
        """The session that was created."""
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
