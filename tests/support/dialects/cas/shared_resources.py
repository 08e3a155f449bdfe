"""The resources that dialects share, in the hands of CAS's clients."""

from typing import Any

import aiohttp

from gateway.ports import SharedKind
from tests.support.shared_resources import Caller, Hands, greeting_of_session, unique_name
from tests.support.skill_zips import skill_text

AT = "/api/v1/cloud"
SERVER = "notion"


# -- agents, and what they have ---------------------------------------------------------------------------------------

async def make_agent(caller: Caller, name: str = "Tutor", **fields: Any) -> str:
    made = await caller.call("POST", f"{AT}/agents", {"name": name, "model": "demo-1", **fields}, status=201)
    return str(made["id"])


async def see_agent(caller: Caller, agent_id: str) -> str | None:
    found = await caller.find(f"{AT}/agents/{agent_id}")
    return found and str(found["name"])


async def update_agent(caller: Caller, agent_id: str, **fields: Any) -> None:
    version = (await caller.call("GET", f"{AT}/agents/{agent_id}"))["version"]
    await caller.call("POST", f"{AT}/agents/{agent_id}", {"version": version, **fields})


async def change_agent(caller: Caller, agent_id: str, name: str) -> None:
    await update_agent(caller, agent_id, name=name)


async def delete_agent(caller: Caller, agent_id: str) -> None:
    await caller.call("DELETE", f"{AT}/agents/{agent_id}")


def tools(value: str) -> list[Any]:
    return [{"type": "agent_toolset_20260401", "enabled_tools": ["calc", *(["clock"] if value == "on" else [])]}]


async def make_tool(caller: Caller, value: str) -> str:
    return await make_agent(caller, tools=tools(value))


async def see_tool(caller: Caller, agent_id: str) -> str | None:
    found = await caller.find(f"{AT}/agents/{agent_id}")
    return found and ("on" if "clock" in found["tools"][0]["enabled_tools"] else "off")


async def change_tool(caller: Caller, agent_id: str, value: str) -> None:
    await update_agent(caller, agent_id, tools=tools(value))


def servers(url: str) -> list[Any]:
    return [{"type": "url", "name": SERVER, "url": url}]


async def make_server(caller: Caller, url: str) -> str:
    return f"{await make_agent(caller, mcp_servers=servers(url))}/{SERVER}"


async def see_server(caller: Caller, name: str) -> str | None:
    agent_id, _, server = name.partition("/")
    found = await caller.call("GET", f"{AT}/agents/{agent_id}")
    return next((str(one["url"]) for one in found["mcp_servers"] if one["name"] == server), None)


async def change_server(caller: Caller, name: str, url: str) -> None:
    agent_id, _, server = name.partition("/")
    await update_agent(caller, agent_id, mcp_servers=[{"type": "url", "name": server, "url": url}])


async def delete_server(caller: Caller, name: str) -> None:
    await update_agent(caller, name.partition("/")[0], mcp_servers=[])


# -- skills -----------------------------------------------------------------------------------------------------------

def skill_form(name: str, value: str) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("files", skill_text(name, value).encode(), filename=f"{name}/SKILL.md")
    return form


async def make_skill(caller: Caller, value: str) -> str:
    name = unique_name("skill")
    return str((await caller.call("POST", f"{AT}/skills", status=201, data=skill_form(name, value)))["id"])


async def see_skill(caller: Caller, name: str) -> str | None:
    found = await caller.find(f"{AT}/skills/{name}/versions/latest")
    return found and str(found["description"])


async def change_skill(caller: Caller, name: str, value: str) -> None:
    await caller.call("POST", f"{AT}/skills/{name}/versions", status=201, data=skill_form(name, value))


async def delete_skill(caller: Caller, name: str) -> None:
    await caller.call("DELETE", f"{AT}/skills/{name}")


# -- files ------------------------------------------------------------------------------------------------------------

async def make_file(caller: Caller, value: str) -> str:
    form = aiohttp.FormData()
    form.add_field("file", value.encode(), filename="a.txt")
    return str((await caller.call("POST", f"{AT}/files", status=201, data=form))["id"])


async def see_file(caller: Caller, file_id: str) -> str | None:
    found = await caller.find(f"{AT}/files/{file_id}/content")
    if found is None:
        return None
    async with caller.http.get(found["url"]) as answer:
        return await answer.text()


async def delete_file(caller: Caller, file_id: str) -> None:
    await caller.call("DELETE", f"{AT}/files/{file_id}")


# -- sessions ---------------------------------------------------------------------------------------------------------

async def begin(caller: Caller, agent: Any = "agent_demo") -> str:
    made = await caller.call("POST", f"{AT}/sessions", {
        "agent": agent, "environment": {"config": {"type": "cloud"}}}, status=201)
    return str(made["id"])


async def see_settings(caller: Caller, name: str) -> str | None:
    return await greeting_of_session(caller, await begin(caller))


HANDS = {
    SharedKind.AGENT: Hands(see=see_agent, make=make_agent, change=change_agent, delete=delete_agent),
    SharedKind.TOOL: Hands(see=see_tool, make=make_tool, change=change_tool, delete=delete_agent),
    SharedKind.MCP_SERVER: Hands(see=see_server, make=make_server, change=change_server, delete=delete_server),
    SharedKind.SKILL: Hands(see=see_skill, make=make_skill, change=change_skill, delete=delete_skill),
    SharedKind.FILE: Hands(see=see_file, make=make_file, delete=delete_file),
    SharedKind.SETTINGS: Hands(see=see_settings),
}
