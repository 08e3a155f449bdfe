"""Skills over HTTP: the library, what agents have installed, and the files of each skill."""

from typing import Any

from aiohttp import web

import gateway.model as m
from adapters.zenflux.bodies import ShownSkillBody, SkillFileBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.server.agents import skill_service
from adapters.zenflux.wire import SkillChoice, SkillSwitch, SkillText, ZenfluxSettings
from gateway.errors import Invalid
from gateway.http import FORM, OWNER, Answers, Context, read_json, receive_file_contents
from gateway.json_values import JsonValue
from gateway.resources import MAX_SKILL_BYTES, StoredSkill

FILE_TYPES = ("scripts", "resources")
SUFFIX = ".zip"
LIBRARY = "global"
"""What stands for the library in place of an agent."""
LANGUAGES = {
    "py": "python", "sh": "bash", "bash": "bash", "js": "javascript", "mjs": "javascript", "ts": "typescript",
    "json": "json", "yaml": "yaml", "yml": "yaml", "md": "markdown", "html": "html", "css": "css", "sql": "sql",
    "xml": "xml", "toml": "toml", "rb": "ruby", "go": "go", "rs": "rust", "csv": "csv",
}
PLAIN_TEXT = "text"
BINARY = "this file is not text and cannot be shown"


def skill_agent(agent_id: str | None) -> str | None:
    """The agent whose skill is meant; None for the library."""
    return None if agent_id in (None, "", LIBRARY) else agent_id


def skill_view(skill: StoredSkill) -> dict[str, Any]:
    """What the table needs to show a skill."""
    body = skill.body
    return {
        "name": skill.name, "description": body.description, "agent_id": skill.agent_id or LIBRARY,
        "enabled": body.enabled, "priority": body.priority, "preferred_for": list(body.preferred_for),
        "scripts": skill.paths("scripts"), "resources": skill.paths("resources"), "text": body.text,
        "created_at": skill.created_at,
    }


def summary_body(context: Context[ZenfluxSettings], skill: StoredSkill) -> JsonValue:
    return context.table.object("skill.summary", ShownSkillBody(**skill_view(skill)))


def detail_body(context: Context[ZenfluxSettings], skill: StoredSkill) -> JsonValue:
    return context.table.object("skill.detail", ShownSkillBody(**skill_view(skill)))


def file_body(context: Context[ZenfluxSettings], skill: StoredSkill, kind: str, file: str, content: bytes) -> JsonValue:
    """A file; what is not UTF-8 is named and not shown."""
    try:
        text: str | None = content.decode()
    except UnicodeDecodeError:
        text = None
    return spell(context.table, SkillFileBody(
        name=skill.name, kind=kind, file=file, text=text, binary=text is None, size=len(content),
        language=LANGUAGES.get(file.rpartition(".")[2].lower(), PLAIN_TEXT), message=BINARY if text is None else None))


class SkillRoutes:
    """The routes of skills, one method each. The agent `global` stands for the library."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.service = skill_service(context)

    @Answers(views.wrapped({"total": int, "skills": ["skill.summary"]}))
    async def library(self, request: web.Request) -> web.Response:
        found = await self.service.library(request[OWNER])
        return views.reply(self.context, {
            "total": len(found), "skills": [summary_body(self.context, one) for one in found]})

    @Answers(views.wrapped({"total": int, "skills": ["skill.summary"]}))
    async def installed(self, request: web.Request) -> web.Response:
        found = await self.service.installed(request[OWNER], request.match_info["agent_id"])
        return views.reply(self.context, {
            "total": len(found), "skills": [summary_body(self.context, one) for one in found]})

    @Answers(views.wrapped({"skill_name": str, "agent_id": str}), reads=SkillChoice)
    async def install(self, request: web.Request) -> web.Response:
        body = await read_json(request, SkillChoice)
        await self.service.install(request[OWNER], body.skill_name, body.agent_id)
        return views.reply(self.context, {"skill_name": body.skill_name, "agent_id": body.agent_id})

    @Answers(views.wrapped({"skill_name": str, "agent_id": str}), reads=SkillChoice)
    async def uninstall(self, request: web.Request) -> web.Response:
        """Remove a skill from its agent; one's own upload, from the library."""
        body = await read_json(request, SkillChoice)
        await self.service.remove(request[OWNER], body.skill_name, skill_agent(body.agent_id))
        return views.reply(self.context, {"skill_name": body.skill_name, "agent_id": body.agent_id})

    @Answers(views.wrapped({"skill_name": str, "agent_id": str, "enabled": bool}), reads=SkillSwitch)
    async def toggle(self, request: web.Request) -> web.Response:
        body = await read_json(request, SkillSwitch)
        await self.service.switch(request[OWNER], body.skill_name, body.agent_id, enabled=body.enabled)
        return views.reply(self.context, {
            "skill_name": body.skill_name, "agent_id": body.agent_id, "enabled": body.enabled})

    @Answers(views.wrapped({"skill_name": str, "agent_id": str | None}), reads=SkillText)
    async def update_content(self, request: web.Request) -> web.Response:
        body = await read_json(request, SkillText)
        await self.service.rewrite(request[OWNER], body.skill_name, body.content, skill_agent(body.agent_id))
        return views.reply(self.context, {"skill_name": body.skill_name, "agent_id": body.agent_id})

    @Answers(views.wrapped("skill.detail"), query={"agent_id": str})
    async def detail(self, request: web.Request) -> web.Response:
        found = await self.service.get(
            request[OWNER], request.match_info["name"], skill_agent(request.query.get("agent_id")))
        return views.reply(self.context, detail_body(self.context, found))

    @Answers(views.wrapped("skill.file"), query={"agent_id": str})
    async def file(self, request: web.Request) -> web.Response:
        kind, file = request.match_info["type"], request.match_info["file"]
        if kind not in FILE_TYPES:
            raise Invalid(f"there are files of the types {' and '.join(FILE_TYPES)}, and none of '{kind[:80]}'",
                          reason=m.FaultReason.INVALID_FILE_TYPE)
        found = await self.service.get(
            request[OWNER], request.match_info["name"], skill_agent(request.query.get("agent_id")))
        content = await self.service.read(request[OWNER], found, f"{kind}/{file}")
        return views.reply(self.context, file_body(self.context, found, kind, file, content))

    @Answers(
        views.wrapped({"skill_name": str, "description": str, "agent_id": str}),
        reads_type=FORM, query={"skill_name": str},
    )
    async def upload(self, request: web.Request) -> web.Response:
        fields, files = await receive_file_contents(request, "file", most=8, most_bytes=MAX_SKILL_BYTES)
        name = request.query.get("skill_name") or fields.get("skill_name", "")
        if len(files) != 1:
            raise Invalid("file: send one ZIP", param="file", reason=m.FaultReason.INVALID_ZIP)
        [(file_name, content)] = files
        if not file_name.lower().endswith(SUFFIX):
            raise Invalid(f"file: must be a ZIP, with a name that ends in {SUFFIX}", param="file",
                          reason=m.FaultReason.INVALID_ZIP)
        made = await self.service.upload(request[OWNER], name, content)
        return views.reply(self.context, {
            "skill_name": made.name, "description": made.body.description, "agent_id": LIBRARY})


def routes_of_skills(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = SkillRoutes(context), f"{context.mount}/skills"
    return [
        web.get(f"{at}/global", routes.library),
        web.get(f"{at}/instance/{{agent_id}}", routes.installed),
        web.post(f"{at}/install", routes.install),
        web.post(f"{at}/uninstall", routes.uninstall),
        web.post(f"{at}/toggle", routes.toggle),
        web.post(f"{at}/update_content", routes.update_content),
        web.get(f"{at}/detail/{{name}}", routes.detail),
        web.get(f"{at}/file/{{name}}/{{type}}/{{file:.+}}", routes.file),
        web.post(f"{at}/upload", routes.upload),
    ]
