"""Skills of the ZenFlux reference server: a library, and the copies that agents have installed."""

import io
import re
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

import yaml
from aiohttp import web

from conformance.faults.zenflux.chats import AGENTS
from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Refusal, Skill, State

GLOBAL = "global"
LARGEST = 8 * 1024 * 1024
LARGEST_TEXT = 256 * 1024
LONGEST = 1024
MOST_ENTRIES = 200
TEXT = "SKILL.md"
TYPES = ("scripts", "resources")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
OWN_NAME = re.compile(r"[a-z0-9-]{1,64}")
FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
LANGUAGES = {".py": "python", ".md": "markdown", ".json": "json", ".sh": "bash"}
Folder = dict[str, bytes]


class Skills:
    """Answers requests below /skills."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front

    # -- who and what --------------------------------------------------------------------------------------------------

    def skill_name(self, given: Any) -> str:
        if not isinstance(given, str) or not NAME.fullmatch(given):
            raise Refusal(400, "VALIDATION_ERROR", "skill_name must be the name of a skill.")
        return given

    def skill_owner(self, given: Any) -> str:
        """The agent that is named, whose existence is checked."""
        if not isinstance(given, str) or not given:
            raise Refusal(400, "VALIDATION_ERROR", "agent_id must be a text.")
        if given not in (GLOBAL, *AGENTS, *self.state.agents):
            raise Refusal(404, "AGENT_NOT_FOUND", "There is no such agent.")
        return given

    def skill_of(self, owner: str, name: str) -> Skill:
        found = self.state.skills.get((owner, name))
        if found is None:
            raise Refusal(404, "SKILL_NOT_FOUND", "There is no such skill.")
        return found

    def skills_of(self, owner: str) -> list[Skill]:
        return [skill for (whose, _), skill in self.state.skills.items() if whose == owner]

    async def named_skill(self, request: web.Request) -> tuple[Body, Skill]:
        """The body of a request, and the installed skill that it names."""
        body = await self.front.read(request)
        self.check_skill_body(request.path.rpartition("/")[2], body)
        name = self.skill_name(body.get("skill_name"))
        return body, self.skill_of(self.skill_owner(body.get("agent_id")), name)

    def check_skill_body(self, action: str, body: Body) -> None:
        if action == "toggle" and not isinstance(body.get("enabled"), bool):
            raise Refusal(400, "VALIDATION_ERROR", "enabled must be true or false.")
        if action == "update_content" and not isinstance(body.get("content"), str):
            raise Refusal(400, "VALIDATION_ERROR", "content must be a text.")

    # -- the nine requests ---------------------------------------------------------------------------------------------

    async def get_library(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.skill_list(self.skills_of(GLOBAL)))

    async def get_installed(self, request: web.Request) -> web.StreamResponse:
        owner = self.skill_owner(request.match_info["agent_id"])
        return self.front.reply(self.skill_list(self.skills_of(owner)))

    def skill_list(self, skills: Iterable[Skill]) -> Body:
        shown = [self.skill_summary(skill) for skill in skills]
        return {"total": len(shown), "skills": shown}

    async def install_skill(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request)
        name = self.skill_name(body.get("skill_name"))
        owner = self.skill_owner(body.get("agent_id"))
        self.keep_skill(self.copied_skill(self.skill_of(GLOBAL, name), owner))
        return self.front.reply({"skill_name": name, "agent_id": owner})

    def copied_skill(self, skill: Skill, owner: str) -> Skill:
        return Skill(skill.name, owner, skill.content, dict(skill.files))

    def keep_skill(self, skill: Skill) -> None:
        if (skill.owner, skill.name) in self.state.skills:
            raise Refusal(409, "SKILL_EXISTS", "There is such a skill already.")
        self.state.skills[skill.owner, skill.name] = skill

    async def uninstall_skill(self, request: web.Request) -> web.StreamResponse:
        _, skill = await self.named_skill(request)
        self.forget_skill(skill)
        return self.front.reply({"skill_name": skill.name, "agent_id": skill.owner})

    def forget_skill(self, skill: Skill) -> None:
        del self.state.skills[skill.owner, skill.name]

    async def toggle_skill(self, request: web.Request) -> web.StreamResponse:
        body, skill = await self.named_skill(request)
        self.switch_skill(skill, body["enabled"])
        return self.front.reply({"skill_name": skill.name, "agent_id": skill.owner, "enabled": body["enabled"]})

    def switch_skill(self, skill: Skill, enabled: bool) -> None:
        skill.is_enabled = enabled

    async def update_skill(self, request: web.Request) -> web.StreamResponse:
        body, skill = await self.named_skill(request)
        self.rewrite_skill(skill, self.skill_text(body["content"]))
        return self.front.reply({"skill_name": skill.name, "agent_id": skill.owner})

    def rewrite_skill(self, skill: Skill, content: str) -> None:
        skill.content = content

    async def get_skill(self, request: web.Request) -> web.StreamResponse:
        owner = self.skill_owner(request.query.get("agent_id", GLOBAL))
        return self.front.reply(self.skill_detail(self.skill_of(owner, request.match_info["name"])))

    async def get_skill_file(self, request: web.Request) -> web.StreamResponse:
        owner = self.skill_owner(request.query.get("agent_id", GLOBAL))
        skill = self.skill_of(owner, request.match_info["name"])
        return self.front.reply(self.skill_file(skill, request.match_info["type"], request.match_info["file"]))

    async def upload_skill(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        name = self.skill_name(request.query.get("skill_name") or form.get("skill_name"))
        file = form.get("file")
        if not isinstance(file, web.FileField) or not file.filename.endswith(".zip"):
            raise Refusal(400, "INVALID_ZIP", "file must be a .zip file.")
        folder = self.skill_folder(self.unpacked(file.file.read()))
        content = self.skill_text(folder.pop(TEXT).decode())
        self.keep_skill(Skill(name, GLOBAL, content, folder))
        return self.front.reply({"skill_name": name, "description": self.front_matter(content)["description"]})

    # -- what is uploaded ----------------------------------------------------------------------------------------------

    def unpacked(self, packed: bytes) -> Folder:
        """The files of an archive by their paths."""
        try:
            with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                self.check_entries(archive.infolist())
                return {item.filename: archive.read(item) for item in archive.infolist() if not item.is_dir()}
        except zipfile.BadZipFile:
            raise Refusal(400, "INVALID_ZIP", "The file is no ZIP archive.") from None

    def check_entries(self, entries: list[zipfile.ZipInfo]) -> None:
        if len(entries) > MOST_ENTRIES or sum(item.file_size for item in entries) > LARGEST:
            raise Refusal(413, "TOO_LARGE", "The skill is too large.")
        paths = [PurePosixPath(item.filename) for item in entries]
        if any(path.is_absolute() or ".." in path.parts for path in paths):
            raise Refusal(400, "INVALID_PATH", "A file leads out of the skill.")

    def skill_folder(self, files: Folder) -> Folder:
        """The files of the folder that has SKILL.md: the root, or the only one there is."""
        if TEXT not in files:
            (first, *others) = {path.partition("/")[0] for path in files} or {""}
            files = {path.removeprefix(f"{first}/"): content for path, content in files.items()} if not others else {}
        if TEXT not in files:
            raise Refusal(400, "INVALID_STRUCTURE", "There is no SKILL.md.")
        return files

    def skill_text(self, content: str) -> str:
        """A text that is fit to be SKILL.md."""
        if len(content) > LARGEST_TEXT:
            raise Refusal(413, "TOO_LARGE", "The text is too large.")
        about = self.front_matter(content)
        name, description = about.get("name"), about.get("description")
        is_named = isinstance(name, str) and OWN_NAME.fullmatch(name)
        if not is_named or not isinstance(description, str) or not 0 < len(description) <= LONGEST:
            raise Refusal(400, "VALIDATION_FAILED", "The front matter needs a name and a description.")
        return content

    def front_matter(self, content: str) -> Body:
        match = FRONT_MATTER.match(content)
        found = yaml.safe_load(match[1]) if match else None
        return found if isinstance(found, dict) else {}

    # -- what is shown -------------------------------------------------------------------------------------------------

    def skill_summary(self, skill: Skill) -> Body:
        about: Body = {"name": skill.name, "description": self.front_matter(skill.content)["description"]}
        about |= {"agent_id": skill.owner, "is_enabled": skill.is_enabled, "status": "ready", "status_message": ""}
        return about | {"is_registered": False, "skill_id": None, "created_at": skill.created_at}

    def skill_detail(self, skill: Skill) -> Body:
        about = self.front_matter(skill.content)
        more: Body = {"priority": about.get("priority", "medium"), "preferred_for": about.get("preferred_for", [])}
        more |= {kind: self.files_of(skill, kind) for kind in TYPES}
        more |= {"content": skill.content, "required_env": [], "registered_at": None}
        return self.skill_summary(skill) | more

    def files_of(self, skill: Skill, kind: str) -> list[str]:
        return sorted(path.removeprefix(f"{kind}/") for path in skill.files if path.startswith(f"{kind}/"))

    def skill_file(self, skill: Skill, kind: str, name: str) -> Body:
        content = self.file_content(skill, kind, name)
        about: Body = {"skill_name": skill.name, "file_type": kind, "file_name": name, "size": len(content)}
        try:
            return about | {"content": content.decode(), "is_binary": False, "language": self.language(name)}
        except UnicodeDecodeError:
            words = "The file is no text."
            return about | {"content": None, "is_binary": True, "language": self.language(name), "message": words}

    def file_content(self, skill: Skill, kind: str, name: str) -> bytes:
        if kind not in TYPES:
            raise Refusal(400, "INVALID_FILE_TYPE", "type is scripts or resources.")
        found = skill.files.get(f"{kind}/{name}")
        if found is None:
            raise Refusal(404, "FILE_NOT_FOUND", "The skill has no such file.")
        return found

    def language(self, name: str) -> str:
        return LANGUAGES.get(PurePosixPath(name).suffix, "text")

    def skill_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/skills/global", self.get_library),
            web.get("/skills/instance/{agent_id}", self.get_installed),
            web.post("/skills/install", self.install_skill),
            web.post("/skills/uninstall", self.uninstall_skill),
            web.post("/skills/toggle", self.toggle_skill),
            web.post("/skills/update_content", self.update_skill),
            web.get("/skills/detail/{name}", self.get_skill),
            web.get("/skills/file/{name}/{type}/{file:.+}", self.get_skill_file),
            web.post("/skills/upload", self.upload_skill),
        ]
