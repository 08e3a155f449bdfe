"""The resources that dialects share, in the hands of AAP's clients."""

from typing import Any

from gateway.ports import SharedKind
from tests.support.shared_resources import Caller, Hands, greeting_of_session

AT = "/aap"


async def agent_card(caller: Caller, name: str) -> Any:
    agents = (await caller.call("GET", f"{AT}/meta"))["agents"]
    return next((agent for agent in agents if agent["name"] == name), None)


async def see_agent(caller: Caller, name: str) -> str | None:
    card = await agent_card(caller, name)
    return card and str(card["title"])


async def see_tool(caller: Caller, name: str) -> str | None:
    card = await agent_card(caller, name)
    return card and ("on" if "clock" in [tool["name"] for tool in card["tools"]] else "off")


async def see_settings(caller: Caller, name: str) -> str | None:
    made = await caller.call("POST", f"{AT}/sessions", {"agent": {"name": "demo"}}, status=201)
    return await greeting_of_session(caller, made["sessionId"])


HANDS = {
    SharedKind.AGENT: Hands(see=see_agent),
    SharedKind.TOOL: Hands(see=see_tool),
    SharedKind.SETTINGS: Hands(see=see_settings),
}
