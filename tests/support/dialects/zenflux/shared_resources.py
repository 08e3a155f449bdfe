"""The resources that dialects share, in the hands of ZenFlux's clients."""

from typing import Any

import aiohttp

from gateway.ports import SharedKind
from tests.support.shared_resources import Caller, Hands, greeting_of_session, unique_name
from tests.support.skill_zips import skill_text, zipped

AT = "/api/v1"
LIBRARY = "global"


# -- agents, and what they have ---------------------------------------------------------------------------------------

async def make_agent(caller: Caller, name: str = "Tutor", **fields: Any) -> str:
    new = {"agent_id": unique_name("agent"), "name": name, "prompt": "You teach.", **fields}
    return str((await caller.call("POST", f"{AT}/agents", new))["agent_id"])


async def see_agent(caller: Caller, agent_id: str) -> str | None:
    found = await caller.find(f"{AT}/agents/{agent_id}")
    return found and str(found["name"])


async def change_agent(caller: Caller, agent_id: str, name: str) -> None:
    await caller.call("PUT", f"{AT}/agents/{agent_id}", {"name": name})


async def delete_agent(caller: Caller, agent_id: str) -> None:
    await caller.call("DELETE", f"{AT}/agents/{agent_id}")


async def make_tool(caller: Caller, value: str) -> str:
    return await make_agent(caller, enabled_capabilities={"calc": True, "clock": value == "on"})


async def see_tool(caller: Caller, agent_id: str) -> str | None:
    found = await caller.find(f"{AT}/agents/{agent_id}")
    return found and ("on" if found["enabled_capabilities"]["clock"] else "off")


async def change_tool(caller: Caller, agent_id: str, value: str) -> None:
    await caller.call("PUT", f"{AT}/agents/{agent_id}", {"enabled_capabilities": {"clock": value == "on"}})


async def enable_server(caller: Caller, agent_id: str, url: str) -> str:
    server = unique_name("server")
    await caller.call("POST", f"{AT}/tools/mcp/register", {"server_name": server, "server_url": url})
    await caller.call("POST", f"{AT}/agents/{agent_id}/mcp/{server}")
    return f"{agent_id}/{server}"


async def make_server(caller: Caller, url: str) -> str:
    return await enable_server(caller, await make_agent(caller), url)


async def see_server(caller: Caller, name: str) -> str | None:
    agent_id, _, server = name.partition("/")
    found = await caller.find(f"{AT}/agents/{agent_id}/mcp/{server}")
    return found and str(found["server_url"])


async def delete_server(caller: Caller, name: str) -> None:
    agent_id, _, server = name.partition("/")
    await caller.call("DELETE", f"{AT}/agents/{agent_id}/mcp/{server}")


# -- skills -----------------------------------------------------------------------------------------------------------

async def make_skill(caller: Caller, value: str) -> str:
    name, form = unique_name("skill"), aiohttp.FormData()
    form.add_field("file", zipped({"SKILL.md": skill_text(name, value).encode()}), filename="skill.zip")
    await caller.call("POST", f"{AT}/skills/upload?skill_name={name}", data=form)
    return name


async def see_skill(caller: Caller, name: str) -> str | None:
    found = await caller.find(f"{AT}/skills/detail/{name}")
    return found and str(found["description"])


async def change_skill(caller: Caller, name: str, value: str) -> None:
    await caller.call("POST", f"{AT}/skills/update_content", {
        "skill_name": name, "agent_id": LIBRARY, "content": skill_text(name, value)})


async def delete_skill(caller: Caller, name: str) -> None:
    await caller.call("POST", f"{AT}/skills/uninstall", {"skill_name": name, "agent_id": LIBRARY})


# -- schedules, settings, files ---------------------------------------------------------------------------------------

async def see_task(caller: Caller, task_id: str) -> str | None:
    found = await caller.find(f"{AT}/scheduled-tasks/{task_id}")
    listed = (await caller.call("GET", f"{AT}/tasks"))["tasks"]
    assert (task_id in [one["name"] for one in listed]) is (found is not None)
    return found and {"active": "on", "paused": "off"}[found["status"]]


async def change_task(caller: Caller, task_id: str, value: str) -> None:
    await caller.call("POST", f"{AT}/scheduled-tasks/{task_id}/{'resume' if value == 'on' else 'pause'}")


async def delete_task(caller: Caller, task_id: str) -> None:
    await caller.call("DELETE", f"{AT}/scheduled-tasks/{task_id}")


async def change_settings(caller: Caller, name: str, value: str) -> None:
    await caller.call("PUT", f"{AT}/settings", {"demo": {"greeting": value}})


async def make_settings(caller: Caller, value: str) -> str:
    await change_settings(caller, "", value)
    return "greeting"


async def see_settings(caller: Caller, name: str) -> str | None:
    shown = (await caller.call("GET", f"{AT}/settings"))["data"]["demo"]["greeting"]
    made = await caller.call("POST", f"{AT}/conversations?agent_id=demo")
    assert (await greeting_of_session(caller, made["data"]["id"])) == (shown or None)
    return shown or None


async def delete_settings(caller: Caller, name: str) -> None:
    await change_settings(caller, name, "")


async def make_file(caller: Caller, value: str) -> str:
    form = aiohttp.FormData()
    form.add_field("file", value.encode(), filename="a.txt")
    return str((await caller.call("POST", f"{AT}/files/upload", data=form))["data"]["file_id"])


async def see_file(caller: Caller, file_id: str) -> str | None:
    found = await caller.find(f"{AT}/files/{file_id}")
    return found and str(found)


HANDS = {
    SharedKind.AGENT: Hands(see=see_agent, make=make_agent, change=change_agent, delete=delete_agent),
    SharedKind.TOOL: Hands(see=see_tool, make=make_tool, change=change_tool, delete=delete_agent),
    SharedKind.MCP_SERVER: Hands(see=see_server, make=make_server, delete=delete_server),
    SharedKind.SKILL: Hands(see=see_skill, make=make_skill, change=change_skill, delete=delete_skill),
    SharedKind.SCHEDULE: Hands(see=see_task, change=change_task, delete=delete_task),
    SharedKind.SETTINGS: Hands(see=see_settings, make=make_settings, change=change_settings, delete=delete_settings),
    SharedKind.FILE: Hands(see=see_file, make=make_file),
}
