"""The resources that dialects share, in the hands of Blade's clients."""

from typing import Any

from gateway.ports import SharedKind
from tests.support.shared_resources import Caller, Hands, greeting_of_session, unique_name
from tests.support.skill_zips import skill_text

AT = "/api"


async def begin(caller: Caller) -> str:
    return str((await caller.call("POST", f"{AT}/sessions", {"intent": "x"}))["session_id"])


# -- skills -----------------------------------------------------------------------------------------------------------

async def see_skill(caller: Caller, name: str) -> str | None:
    found = await caller.find(f"{AT}/skills/{name}")
    return found and str(found["description"])


async def make_skill(caller: Caller, value: str) -> str:
    name = unique_name("skill")
    await change_skill(caller, name, value)
    return name


async def change_skill(caller: Caller, name: str, value: str) -> None:
    files = [{"path": "SKILL.md", "content": skill_text(name, value)}]
    await caller.call("POST", f"{AT}/sessions/{await begin(caller)}/skills:upload", {"name": name, "files": files})


# -- schedules --------------------------------------------------------------------------------------------------------

async def see_task(caller: Caller, task_id: str) -> str | None:
    found = await caller.find(f"{AT}/scheduled-tasks/{task_id}")
    return found and ("on" if found["enabled"] else "off")


async def make_task(caller: Caller, value: str) -> str:
    new: dict[str, Any] = {"title": "Daily", "prompt": "hello", "cron": "0 9 * * *", "enabled": value == "on"}
    return str((await caller.call("POST", f"{AT}/scheduled-tasks", new, status=201))["id"])


async def change_task(caller: Caller, task_id: str, value: str) -> None:
    await caller.call("PATCH", f"{AT}/scheduled-tasks/{task_id}", {"enabled": value == "on"})


async def delete_task(caller: Caller, task_id: str) -> None:
    await caller.call("DELETE", f"{AT}/scheduled-tasks/{task_id}", status=204)


async def see_settings(caller: Caller, name: str) -> str | None:
    return await greeting_of_session(caller, await begin(caller))


HANDS = {
    SharedKind.SKILL: Hands(see=see_skill, make=make_skill, change=change_skill),
    SharedKind.SCHEDULE: Hands(see=see_task, make=make_task, change=change_task, delete=delete_task),
    SharedKind.SETTINGS: Hands(see=see_settings),
}
