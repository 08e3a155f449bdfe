"""CAS's HTTP handlers for skills: clients upload their files as forms, and fetch a version as a ZIP."""

from collections.abc import Sequence

from aiohttp import web

from adapters.cas.server import resource_views as views
from adapters.cas.server.paging import listed_answers, page_of_rows, page_reply
from adapters.cas.server.resource_routes import not_found_as
from adapters.cas.server.skills import (
    skill_body,
    skill_service,
    skill_version_body,
    source_of,
    version_id,
    version_number,
)
from adapters.cas.wire import CasSettings, SkillFields
from gateway.errors import Invalid, NotFound
from gateway.http import FORM, OWNER, Answers, Context, bytes_attachment, json_response, receive_file_contents
from gateway.resources import (
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    SkillFolder,
    StoredSkill,
    read_skill_files,
    read_skill_zip,
)

from .files import read_form_fields

KIND, NOUN = "skill", "Skill"
ZIP = ".zip"


class SkillRoutes:
    """The routes of skills, one method each."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        self._service = skill_service(context)

    @Answers("skill", status=201, reads_type=FORM)
    async def create(self, request: web.Request) -> web.Response:
        fields, read = await _receive_skill(request)
        body = read_form_fields(fields, SkillFields)
        made = await self._service.add(request[OWNER], read, title=body.title, metadata=body.metadata)
        return json_response(skill_body(self._context.table, made), 201)

    @listed_answers("skill", {"source": str, "name": str, "display_title": str})
    async def listed(self, request: web.Request) -> web.Response:
        """List the skills, newest first; the skills of the operator are the oldest."""
        rows = [one for one in await self._service.library(request[OWNER]) if _is_listed(request, one)]
        page = await page_of_rows(request.query, rows, id_of=lambda one: one.name)
        return await page_reply(
            self._context.table, page, [skill_body(self._context.table, one) for one in page.items])

    @Answers("skill")
    async def get(self, request: web.Request) -> web.Response:
        return json_response(skill_body(self._context.table, await self._skill(request)))

    @Answers("deleted.skill")
    async def delete(self, request: web.Request) -> web.Response:
        """Delete a skill with all versions; copies that agents have installed stay."""
        found = await self._skill(request)
        await self._service.remove(request[OWNER], found.name)
        return json_response(views.deleted_body(self._context.table, KIND, found.name))

    # -- versions -------------------------------------------------------------------------------------------------

    @Answers("skill_version", status=201, reads_type=FORM)
    async def create_version(self, request: web.Request) -> web.Response:
        found = await self._skill(request)
        _, read = await _receive_skill(request)
        made = await self._service.add_version(request[OWNER], found.name, read)
        return json_response(skill_version_body(self._context.table, made), 201)

    @listed_answers("skill_version")
    async def versions(self, request: web.Request) -> web.Response:
        """List the versions of a skill, newest first."""
        rows = await self._service.versions(request[OWNER], (await self._skill(request)).name)
        page = await page_of_rows(request.query, rows, id_of=version_id)
        return await page_reply(
            self._context.table, page, [skill_version_body(self._context.table, one) for one in page.items])

    @Answers("skill_version")
    async def version(self, request: web.Request) -> web.Response:
        return json_response(skill_version_body(self._context.table, await self._version(request)))

    @Answers(media_type="application/zip")
    async def content(self, request: web.Request) -> web.Response:
        found = await self._version(request)
        return bytes_attachment(
            await self._service.packed(request[OWNER], found), f"{found.name}{ZIP}", "application/zip")

    async def _skill(self, request: web.Request) -> StoredSkill:
        name = request.match_info["id"]
        with not_found_as(NOUN, name):
            return await self._service.get(request[OWNER], name)

    async def _version(self, request: web.Request) -> StoredSkill:
        name, value = request.match_info["id"], request.match_info["version"]
        with not_found_as(NOUN, f"{name}, version {value}"):
            return await self._service.get(request[OWNER], name, version=version_number(value, NotFound))


def _is_listed(request: web.Request, skill: StoredSkill) -> bool:
    source, name, title = (request.query.get(word) for word in ("source", "name", "display_title"))
    return (
        source in (None, "", source_of(skill)) and name in (None, "", skill.name)
        and title in (None, "", skill.body.title or skill.name))


async def _receive_skill(request: web.Request) -> tuple[dict[str, str], SkillFolder]:
    """The fields of a form, and the skill of its files: all of them, or one ZIP of them."""
    fields, files = await receive_file_contents(
        request, "files", most=MAX_SKILL_FILES + 16, most_bytes=MAX_SKILL_BYTES)
    if not files:
        raise Invalid("files: the form has no file", param="files")
    if len(files) == 1 and files[0][0].lower().endswith(ZIP):
        return fields, read_skill_zip(files[0][1])
    if len({path for path, _ in files}) < len(files):
        raise Invalid("files: two files have the same path", param="files")
    return fields, read_skill_files(dict(files))


def routes_of_skills(context: Context[CasSettings]) -> Sequence[web.RouteDef]:
    routes = SkillRoutes(context)
    one = "/skills/{id}"
    return [
        web.post("/skills", routes.create),
        web.get("/skills", routes.listed),
        web.get(one, routes.get),
        web.delete(one, routes.delete),
        web.post(f"{one}/versions", routes.create_version),
        web.get(f"{one}/versions", routes.versions),
        web.get(f"{one}/versions/{{version}}", routes.version),
        web.get(f"{one}/versions/{{version}}/content", routes.content),
    ]
