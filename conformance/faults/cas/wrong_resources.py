"""CAS servers whose agents, environments, files, models, vaults and memories are wrong."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault

MADE, LISTED = "agents.an_agent_is_made_and_read", "agents.agents_are_listed"
VERSION, CURRENT = "agents.an_update_makes_a_version", "agents.an_update_needs_the_current_version"
ARCHIVED, DELETED = "agents.an_agent_is_archived", "agents.an_agent_is_deleted"
ENABLED, POLICIES = "agents.only_enabled_tools_are_called", "agents.policies_are_obeyed"
ENVIRONMENT, FILE = "resources.an_environment_lives", "resources.a_file_lives"
VAULT, SECRETS = "resources.a_vault_lives", "resources.secrets_never_come_back"
STORE, MEMORIES = "resources.a_memory_store_lives", "resources.memories_come_and_go"


@fault("CAS-RES-01", cases=MADE)
class SystemDropped(CasServer):
    """An agent's system prompt is not kept."""

    def told(self, body: Body) -> Body:
        return super().told(body) | {"system": ""}


@fault("CAS-RES-01", cases=LISTED)
class AgentsUnlisted(CasServer):
    """The list of agents is empty."""

    async def get_agents(self, request: web.Request) -> web.StreamResponse:
        return reply(self.page(request, []))


@fault("CAS-RES-02", cases=CURRENT)
class AnyVersionUpdated(CasServer):
    """An update need not name the current version."""

    def check_version(self, agent: Body, body: Body) -> None:
        return None


@fault("CAS-RES-02", cases=VERSION)
class VersionsLost(CasServer):
    """Only the latest version can be read."""

    def version(self, name: str, number: int = 0) -> Body:
        return super().version(name)


@fault("CAS-RES-03", cases=ARCHIVED)
class AgentsNotArchived(CasServer):
    """An archived agent does not say so."""

    async def archive_agent(self, request: web.Request) -> web.StreamResponse:
        return reply(self.version(request.match_info["id"]))


@fault("CAS-RES-03", cases=DELETED)
class AgentsNotDeleted(CasServer):
    """A deleted agent is still there."""

    async def delete_agent(self, request: web.Request) -> web.StreamResponse:
        return reply({"id": request.match_info["id"], "type": "agent_deleted"})


@fault("CAS-RES-04", cases=ENABLED)
class EveryToolEnabled(CasServer):
    """Tools that are not enabled are called."""

    def policies(self, agent: Body) -> dict[str, str]:
        return dict.fromkeys(("clock", "calc", "search"), "always_allow") | super().policies(agent)


@fault("CAS-RES-04", cases=POLICIES)
class PoliciesIgnored(CasServer):
    """Every enabled tool is allowed."""

    def policies(self, agent: Body) -> dict[str, str]:
        return dict.fromkeys(super().policies(agent), "always_allow")


class _Shelf(CasServer):
    """Changes what is put down on one shelf."""

    kind: str

    def changed(self, body: Body) -> Body:
        return body

    def put_down(self, kind: str, prefix: str, named: str, body: Body) -> Body:
        return super().put_down(kind, prefix, named, self.changed(body) if kind.endswith(self.kind) else body)


@fault("CAS-RES-05", cases=ENVIRONMENT)
class MetadataDropped(_Shelf):
    """An environment's metadata is not kept."""

    kind = "environments"

    def changed(self, body: Body) -> Body:
        return body | {"metadata": {}}


@fault("CAS-RES-05", cases=ENVIRONMENT)
class UpdatesForgotten(CasServer):
    """An update of an environment is not kept."""

    async def update_thing(self, request: web.Request) -> web.StreamResponse:
        thing = self.thing(request.match_info["kind"], request.match_info["id"])
        return reply(thing | await self.read(request))


@fault("CAS-RES-05", cases="resources.an_environment_is_deleted")
class DeletedByAnotherName(CasServer):
    """A deletion is answered with type deleted."""

    async def delete_thing(self, request: web.Request) -> web.StreamResponse:
        await super().delete_thing(request)
        return reply({"id": request.match_info["id"], "type": "deleted"})


@fault("CAS-RES-05", cases="resources.an_environment_is_deleted")
class EnvironmentsStay(CasServer):
    """A deleted environment is still there."""

    async def delete_thing(self, request: web.Request) -> web.StreamResponse:
        return reply({"id": request.match_info["id"], "type": "environment_deleted"})


@fault("CAS-RES-06", cases=FILE)
class ContentInPlace(CasServer):
    """The content of a file comes without a url."""

    async def get_content(self, request: web.Request) -> web.StreamResponse:
        return reply({"content": "Written by the examiners."})


@fault("CAS-RES-06", cases="resources.an_upload_needs_a_file")
class EmptyUploadsTaken(CasServer):
    """An upload without a file makes an empty one."""

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        return reply(self.put_down("files", "file", "file", {"filename": "", "size": 0}), 201)


@fault("CAS-RES-07", cases="resources.models_are_listed")
class ModelsUnnamed(CasServer):
    """Models have no display_name."""

    def models(self) -> list[Body]:
        return [{"id": "reference", "type": "model", "is_enabled": True}]


@fault("CAS-RES-08", cases=VAULT)
class VaultsStay(CasServer):
    """A deleted vault is still there."""

    async def delete_thing(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["kind"] == "vaults":
            return reply({"id": request.match_info["id"], "type": "vault_deleted"})
        return await super().delete_thing(request)


@fault("CAS-RES-08", cases=SECRETS)
class SecretsReturned(CasServer):
    """A credential comes back with its secret."""

    def without_secrets(self, value: Any) -> Any:
        return value


@fault("CAS-RES-09", cases=STORE)
class StoresUnlisted(CasServer):
    """Memory stores are not listed."""

    async def get_things(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["kind"] == "memory_stores":
            return reply(self.page(request, []))
        return await super().get_things(request)


@fault("CAS-RES-09", cases=MEMORIES)
class MemoriesEmpty(_Shelf):
    """The content of a memory is not kept."""

    kind = "memories"

    def changed(self, body: Body) -> Body:
        return body | {"content": ""}
