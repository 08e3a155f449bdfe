"""Skills: a library, of which the operator and each user have a part, and the copies that agents have installed."""

import asyncio
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Forbidden, GatewayError, NotFound, OutcomeUnknown
from gateway.json_values import JsonObject
from gateway.ports import Resource, Resources

from .named_resources import AlreadyExists, NamedResources
from .skill_files import (
    SKILL_FILE,
    SkillFolder,
    check_path,
    check_text,
    folder_sizes,
    read_folder_text,
    read_head,
    read_skill_zip,
    skill_names,
    write_skill_zip,
)
from .skill_records import (
    OFFERED,
    SkillContent,
    StoredSkill,
    file_sizes,
    skill_content,
    stored_skill,
    written_skill,
)

KIND, INSTALLED_KIND, FILES_KIND = "skill", "installed_skill", "skill_files"
SKILL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAX_SKILLS = 100
"""How many skills a user may have in the library."""
MAX_INSTALLED = 1000

class SkillNotFound(NotFound):
    """There is no such skill."""

    usual_reason = m.FaultReason.SKILL_NOT_FOUND


class SkillExists(AlreadyExists):
    """There is a skill of this name."""

    usual_reason = m.FaultReason.SKILL_EXISTS


class KnownAgent(Protocol):
    """An agent that skills can be installed on."""

    @property
    def resource_id(self) -> str: ...


class KnownAgents(Protocol):
    """Finds the agents of a user."""

    async def get(self, owner: str, agent_id: str) -> KnownAgent: ...


class SkillService:
    """The skills of all users; those of other users are not found. Scripts are stored and shown, and never run."""

    kinds: tuple[str, ...] = (INSTALLED_KIND,)

    def __init__(self, resources: Resources, folder: Path | None, agents: KnownAgents) -> None:
        self._resources = resources
        self._folder = folder
        self._agents = agents
        self._own = NamedResources(resources, KIND, "skill", SKILL_NAME, MAX_SKILLS)
        self._installed = NamedResources(resources, INSTALLED_KIND, "installed skill", SKILL_NAME, MAX_INSTALLED)

    # -- finding --------------------------------------------------------------------------------------------------

    async def library(self, owner: str) -> Sequence[StoredSkill]:
        """The skills of the operator, then those of the user, oldest first."""
        offered = await asyncio.to_thread(self._offered)
        own = [stored_skill(one) for one in await self._own.all(owner)]
        return [*offered.values(), *(one for one in own if one.name not in offered)]

    async def installed(self, owner: str, agent_id: str) -> Sequence[StoredSkill]:
        """What an agent has, oldest first; skills that are switched off too."""
        agent = await self._agent(owner, agent_id)
        return [stored_skill(one, agent_id) for one in await self._installed.all(owner, agent.resource_id)]

    async def get(
        self, owner: str, name: str, agent_id: str | None = None, *, version: int | None = None,
    ) -> StoredSkill:
        """A skill of an agent, or of the library, if no agent is named: this version of it, or as it is now."""
        found = await self._newest(owner, name, agent_id)
        if version in (None, found.version):
            return found
        if found.folder is not None:
            raise SkillNotFound(f"skill '{name}' has no version {version}; it has 1")
        kind = KIND if agent_id is None else INSTALLED_KIND
        try:
            return stored_skill(await self._resources.get(kind, owner, found.resource_id, version), agent_id)
        except NotFound:
            raise SkillNotFound(f"skill '{name}' has no version {version}; it has {found.version}") from None

    async def versions(self, owner: str, name: str) -> Sequence[StoredSkill]:
        """Every version of a skill of the library, oldest first."""
        found = await self.get(owner, name)
        if found.folder is not None:
            return [found]
        return [stored_skill(one) for one in await self._resources.versions(KIND, owner, found.resource_id)]

    async def _newest(self, owner: str, name: str, agent_id: str | None) -> StoredSkill:
        if agent_id is not None:
            agent = await self._agent(owner, agent_id)
            found = await self._installed.find(owner, name, agent.resource_id)
            if found is None:
                raise SkillNotFound(f"agent '{agent_id}' has no skill '{name[:128]}'")
            return stored_skill(found, agent_id)
        offered = await asyncio.to_thread(self._offered_skill, name)
        if offered is not None:
            return offered
        own = await self._own.find(owner, name)
        if own is None:
            raise SkillNotFound(f"there is no skill '{name[:128]}'")
        return stored_skill(own)

    async def read(self, owner: str, skill: StoredSkill, path: str) -> bytes:
        """A file of a skill: SKILL.md, or one of the others."""
        if check_path(path) == SKILL_FILE:
            return skill.body.text.encode("utf-8", "surrogatepass")
        if path not in skill.body.sizes:
            raise NotFound(f"skill '{skill.name}' has no file '{path[:200]}'", reason=m.FaultReason.FILE_NOT_FOUND)
        return (await self._files(owner, skill, [path]))[path]

    async def packed(self, owner: str, skill: StoredSkill) -> bytes:
        """All files of a skill in a ZIP."""
        files, text = await self._files(owner, skill, skill.body.sizes), skill.body.text
        return await asyncio.to_thread(
            write_skill_zip, SkillFolder(head=read_head(text), text=text, files=files))

    # -- using ----------------------------------------------------------------------------------------------------

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        """The settings of a new session, with the skills that its agent has switched on."""
        if settings.skills is not None:
            return settings
        try:
            found = await self.installed(owner, settings.agent_id or agent)
        except NotFound:  # an agent of another kind, or one that is just being deleted
            return settings
        refs = tuple(one.ref for one in found if one.body.enabled)
        return replace(settings, skills=refs) if refs else settings

    async def read_file(self, owner: str, skill: m.SkillRef, path: str) -> m.SkillFile:
        """A file of a skill as it was when the session began."""
        found = await self._of_session(owner, skill)
        content = await self.read(owner, found, path)
        try:
            text: str | None = content.decode()
        except UnicodeDecodeError:
            text = None
        return m.SkillFile(
            name=skill.name, path=path, size=len(content), text=text, files=tuple(found.body.sizes))

    async def newest(self, owner: str, skill: m.SkillRef) -> m.SkillRef:
        """The newest version of a skill that a session has; the version that it has, if the skill is gone."""
        try:
            return (await self._of_session(owner, skill, newest=True)).ref
        except NotFound:
            return skill

    async def _of_session(self, owner: str, skill: m.SkillRef, *, newest: bool = False) -> StoredSkill:
        """The skill that a session has: the copy of its agent, or one of the library."""
        if skill.skill_id == OFFERED:
            return await self.get(owner, skill.name)
        kind = KIND if skill.skill_id.startswith(f"{KIND}_") else INSTALLED_KIND
        try:
            return stored_skill(await self._resources.get(
                kind, owner, skill.skill_id, None if newest else skill.version))
        except NotFound:
            raise SkillNotFound(f"skill '{skill.name}' was removed") from None

    # -- changing -------------------------------------------------------------------------------------------------

    async def upload(self, owner: str, name: str, content: bytes) -> StoredSkill:
        """Add the skill of a ZIP to the user's part of the library."""
        self._own.check_name(name, "skill_name")
        return await self.add(owner, await asyncio.to_thread(read_skill_zip, content), name)

    async def add(
        self, owner: str, read: SkillFolder, name: str | None = None, *, title: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> StoredSkill:
        """Add a skill to the user's part of the library, under its own name if no other is given."""
        name = name or read.head.name
        self._own.check_name(name, "skill_name")
        if await asyncio.to_thread(self._offered_skill, name) or await self._own.find(owner, name):
            raise SkillExists(f"there is a skill '{name}' already", param="skill_name")
        body = replace(skill_content(read.head, read.text), title=title, metadata=dict(metadata or {}))
        return stored_skill(await self._create(self._own, owner, name, body, read.files))

    async def put(self, owner: str, name: str, read: SkillFolder) -> tuple[StoredSkill, bool]:
        """Add a skill to the library, or a version to the skill of this name; says whether the skill is new."""
        try:
            await self.get(owner, name)
        except SkillNotFound:
            return await self.add(owner, read, name), True
        return await self.add_version(owner, name, read), False

    async def add_version(self, owner: str, name: str, read: SkillFolder) -> StoredSkill:
        """Replace all files of a skill of the library; those of before stay as a version."""
        found = await self._changeable(owner, name, None)
        old, new = found.body, skill_content(read.head, read.text)
        body = replace(new, title=old.title, metadata=old.metadata)
        if not read.files:
            return await self._update(owner, found, body)
        async with self._stored_files(owner, found.resource_id, read.files) as files_id:
            return await self._update(owner, found, replace(body, sizes=file_sizes(read.files), files_id=files_id))

    async def install(self, owner: str, name: str, agent_id: str, *, version: int | None = None) -> StoredSkill:
        """Give an agent a copy of a skill, switched on; the copy and the library are independent from then on."""
        skill, agent = await self.get(owner, name, version=version), await self._agent(owner, agent_id)
        if await self._installed.find(owner, name, agent.resource_id):
            raise SkillExists(f"agent '{agent_id}' has the skill '{name}' already", param="skill_name")
        files = await self._files(owner, skill, skill.body.sizes)
        body = replace(skill.body, enabled=True, origin=skill.version)
        return stored_skill(await self._create(self._installed, owner, name, body, files, agent.resource_id), agent_id)

    async def remove(self, owner: str, name: str, agent_id: str | None = None) -> None:
        """Remove a skill from an agent; from the user's part of the library, if no agent is named."""
        found = await self._changeable(owner, name, agent_id)
        await self._resources.delete(KIND if agent_id is None else INSTALLED_KIND, owner, found.resource_id)

    async def switch(self, owner: str, name: str, agent_id: str, *, enabled: bool) -> StoredSkill:
        """Switch a skill of an agent on or off for sessions that begin later."""
        found = await self._changeable(owner, name, agent_id)
        return await self._update(owner, found, replace(found.body, enabled=enabled))

    async def rewrite(self, owner: str, name: str, text: str, agent_id: str | None = None) -> StoredSkill:
        """Replace SKILL.md; the old text stays as a version."""
        head = check_text(text)
        found = await self._changeable(owner, name, agent_id)
        return await self._update(owner, found, replace(
            found.body, text=text, description=head.description, priority=head.priority,
            preferred_for=head.preferred_for))

    async def _changeable(self, owner: str, name: str, agent_id: str | None) -> StoredSkill:
        found = await self.get(owner, name, agent_id)
        if found.folder is not None:
            raise Forbidden(f"skill '{name}' is in the folder of the server's operator (management.skills in "
                            "config.yaml) and cannot be changed here")
        return found

    async def _update(self, owner: str, found: StoredSkill, body: SkillContent) -> StoredSkill:
        if body == found.body:
            return found
        kind = KIND if found.agent_id is None else INSTALLED_KIND
        return stored_skill(await self._resources.update(
            kind, owner, found.resource_id, written_skill(found.name, body), expected=found.version), found.agent_id)

    async def _create(
        self, names: NamedResources, owner: str, name: str, body: SkillContent, files: Mapping[str, bytes],
        parent: str = "",
    ) -> Resource:
        """Store the files, and then the skill that names them; if the skill is refused, no file stays."""
        body = replace(body, sizes=file_sizes(files), files_id="")
        if not files:
            return await self._created(names, owner, name, body, parent)
        async with self._stored_files(owner, names.id_of(owner, name, parent), files) as files_id:
            return await self._created(names, owner, name, replace(body, files_id=files_id), parent)

    @asynccontextmanager
    async def _stored_files(self, owner: str, parent: str, files: Mapping[str, bytes]) -> AsyncIterator[str]:
        """Store files for the block that stores the skill which names them."""
        packed: JsonObject = {path: b64encode(read).decode() for path, read in files.items()}
        kept = await self._resources.create(FILES_KIND, owner, {"files": packed}, parent=parent)
        try:
            yield kept.resource_id
        except OutcomeUnknown:
            raise
        except BaseException:
            await self._resources.delete(FILES_KIND, owner, kept.resource_id)
            raise

    async def _created(
        self, names: NamedResources, owner: str, name: str, body: SkillContent, parent: str,
    ) -> Resource:
        try:
            return await names.create(owner, name, written_skill(name, body), parent=parent)
        except AlreadyExists as error:
            raise SkillExists(error.message, param="skill_name") from None

    # -- files ----------------------------------------------------------------------------------------------------

    async def _files(self, owner: str, skill: StoredSkill, paths: Iterable[str]) -> dict[str, bytes]:
        paths = list(paths)
        if skill.folder is not None:
            return await asyncio.to_thread(_read_all, skill.folder, paths)
        if not paths:
            return {}
        kept = await self._resources.get(FILES_KIND, owner, skill.body.files_id)
        return {path: b64decode(kept.body["files"][path]) for path in paths}

    async def _agent(self, owner: str, agent_id: str) -> KnownAgent:
        try:
            return await self._agents.get(owner, agent_id)
        except NotFound:
            raise NotFound(f"there is no agent '{agent_id[:128]}'", reason=m.FaultReason.AGENT_NOT_FOUND) from None

    # -- the folder of the operator -------------------------------------------------------------------------------

    def _offered(self) -> dict[str, StoredSkill]:
        """The skills of the operator by name; a folder that is no skill is passed over."""
        if self._folder is None:
            return {}
        found = {name: self._offered_skill(name) for name in skill_names(self._folder)}
        return {name: skill for name, skill in found.items() if skill is not None}

    def _offered_skill(self, name: str) -> StoredSkill | None:
        if self._folder is None or not SKILL_NAME.fullmatch(name) or (self._folder / name).is_symlink():
            return None
        folder = self._folder / name
        try:
            head, text = read_folder_text(folder)
            sizes, changed_at = folder_sizes(folder), (folder / SKILL_FILE).stat().st_mtime
        except (GatewayError, OSError):
            return None
        return StoredSkill(
            name=name, body=replace(skill_content(head, text), sizes=sizes), created_at=changed_at,
            updated_at=changed_at, folder=folder)


def _read_all(folder: Path, paths: Sequence[str]) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in paths}
