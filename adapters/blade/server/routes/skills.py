"""Blade's skills: the user's library, and the skills that a session has beside those of its agent."""

from collections.abc import Sequence

from aiohttp import web
from msgspec.structs import replace

import gateway.model as m
from adapters.blade.server import views
from adapters.blade.wire import BladeSettings, SkillChoice, SkillQuery, SkillUpload
from gateway.errors import Invalid, NotFound
from gateway.http import OWNER, Answers, Context, Row, json_response, read_json, validate
from gateway.resources import SkillFolder, SkillService, StoredSkill, read_skill_files, with_front_matter

SKILL_FILE = m.SKILL_FILE


def skill_service(context: Context[BladeSettings]) -> SkillService:
    return SkillService(context.resources, context.offers.skills, context.agent_service)


def skill_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    skills, at, session = SkillRoutes(context), f"{context.mount}/skills", f"{context.mount}/sessions/{{id}}"
    return [
        web.get(at, skills.library),
        web.get(f"{at}/search", skills.search),
        web.get(f"{at}/installed", skills.installed),
        web.get(f"{at}/{{skill:(?!scenario-resources$)[^/]+}}", skills.get),
        web.get(f"{session}/skills", skills.of_session),
        web.post(f"{session}/skills:upload", skills.upload),
        web.post(f"{session}/skills:resync", skills.resync),
        web.post(f"{session}/skills/install", skills.install),
    ]


async def skills_of_new_session(
    context: Context[BladeSettings], owner: str, agent: str, primary: str | None,
) -> tuple[m.SkillRef, ...] | None:
    """The skills of a session with a primary skill: that one, and those of its agent.

    A session without one says nothing of skills; a primary skill that nobody here knows is only kept.
    """
    service = skill_service(context)
    try:
        found = await service.get(owner, primary) if primary else None
    except NotFound:
        found = None
    if found is None:
        return None
    others = (await service.filled(owner, agent, m.Settings())).skills or ()
    return (found.ref, *(ref for ref in others if ref.name != found.name))


class SkillRoutes:
    """The routes of skills, one method each. A skill is known by its name."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context
        self.service = skill_service(context)

    # -- the library ----------------------------------------------------------------------------------------------

    @Answers(["skill"])
    async def library(self, request: web.Request) -> web.Response:
        return self._list(await self.service.library(request[OWNER]))

    @Answers(Row("skills.found", items=["skill"]), query=SkillQuery)
    async def search(self, request: web.Request) -> web.Response:
        """The skills that have every word of the query in their name or description."""
        asked = validate(SkillQuery, dict(request.query))
        words = asked.q.lower().split()
        found = [one for one in await self.service.library(request[OWNER])
                 if all(word in f"{one.name} {one.body.description}".lower() for word in words)]
        shown = [views.skill_body(self.context.table, one) for one in found[:asked.limit]]
        return json_response(self.context.table.object("skills.found", items=shown))

    @Answers(["skill"])
    async def installed(self, request: web.Request) -> web.Response:
        """What the agent of new sessions has installed."""
        agent = self.context.settings.agent or next(iter(self.context.agents))
        return self._list(await self.service.installed(request[OWNER], agent))

    @Answers("skill.full")
    async def get(self, request: web.Request) -> web.Response:
        found = await self.service.get(request[OWNER], request.match_info["skill"])
        return json_response(views.full_skill_body(self.context.table, found))

    def _list(self, found: Sequence[StoredSkill]) -> web.Response:
        return json_response([views.skill_body(self.context.table, one) for one in found])

    # -- of a session ---------------------------------------------------------------------------------------------

    @Answers(["skill.session"])
    async def of_session(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        return json_response([
            views.session_skill_body(self.context.table, ref) for ref in view.settings.skills or ()])

    @Answers("skill.uploaded", reads=SkillUpload)
    async def upload(self, request: web.Request) -> web.Response:
        """Add a skill to the user's library, or a version to the skill of this name, for the session to use."""
        body, view = await read_json(request, SkillUpload), await self._view(request)
        made, is_new = await self.service.put(view.owner, body.name, _skill_of(body))
        await self._use(view, made)
        return json_response(self.context.table.object(
            "skill.uploaded", name=made.name, folder=f"skills/{made.name}", files=len(body.files),
            overwritten=not is_new))

    @Answers("skill", reads=SkillChoice)
    async def install(self, request: web.Request) -> web.Response:
        """Let the session use a skill of the library."""
        body, view = await read_json(request, SkillChoice), await self._view(request)
        found = await self.service.get(view.owner, body.skill_id)
        await self._use(view, found)
        return json_response(views.skill_body(self.context.table, found))

    @Answers(Row("skills.synced", items=["skill.session"]))
    async def resync(self, request: web.Request) -> web.Response:
        """Give the session the newest version of each skill that it has of the library."""
        view, newest = await self._view(request), list[m.SkillRef]()
        for ref in view.settings.skills or ():
            newest.append(await self.service.newest(view.owner, ref))
        changed = sum(now != before for now, before in zip(newest, view.settings.skills or (), strict=True))
        if changed:
            await self._configure(view, tuple(newest))
        return json_response(self.context.table.object(
            "skills.synced", message=f"{changed} of {len(newest)} skills have a newer version",
            items=[views.session_skill_body(self.context.table, ref) for ref in newest]))

    async def _use(self, view: m.SessionView, skill: StoredSkill) -> None:
        others = [ref for ref in view.settings.skills or () if ref.name != skill.name]
        await self._configure(view, (*others, skill.ref))

    async def _configure(self, view: m.SessionView, skills: tuple[m.SkillRef, ...]) -> None:
        settings = replace(view.settings, skills=skills)
        await self.context.sessions.submit(view.owner, view.session_id, [m.Configure(settings=settings)])

    async def _view(self, request: web.Request) -> m.SessionView:
        return await self.context.sessions.get(request[OWNER], request.match_info["id"])


def _skill_of(body: SkillUpload) -> SkillFolder:
    """The skill that a client has sent; Blade's clients may leave out the front matter."""
    paths = {one.path: one.content for one in body.files}
    if len(paths) < len(body.files):
        raise Invalid("files: two files have the same path", param="files")
    if SKILL_FILE in paths:
        paths[SKILL_FILE] = with_front_matter(paths[SKILL_FILE], body.name)
    return read_skill_files({path: content.encode("utf-8", "surrogatepass") for path, content in paths.items()})
