"""Who may change agents, tools, MCP servers, skills and settings: their owners, admins only, or nobody."""

from collections.abc import Callable
from typing import Literal

from gateway.errors import Forbidden
from gateway.json_values import JsonObject
from gateway.ports import Caller, Resource, Resources

Changes = Literal["own", "read", "off"]
MANAGED_KINDS = frozenset((
    "agent", "mcp_server", "agent_mcp_server", "skill", "installed_skill", "skill_files", "tool", "setting",
))
"""The kinds that the rule is about; files, memories, schedules and the like belong to conversations."""


class RuledResources:
    """The store of resources, as the handlers of dialects use it: changes of managed kinds follow the rule."""

    def __init__(
        self, resources: Resources, rule: Callable[[], Changes], who: Callable[[], Caller | None],
    ) -> None:
        self._resources = resources
        self._rule = rule
        self._who = who
        self.get, self.versions, self.list = resources.get, resources.versions, resources.list
        self.kinds_in_use, self.owners = resources.kinds_in_use, resources.owners
        self.with_terms, self.ranked, self.amend = resources.with_terms, resources.ranked, resources.amend

    async def create(
        self, kind: str, owner: str, body: JsonObject, *, secrets: dict[str, str] | None = None, parent: str = "",
        resource_id: str | None = None, most: int | None = None, most_below: int | None = None,
    ) -> Resource:
        self._check(kind)
        return await self._resources.create(
            kind, owner, body, secrets=secrets, parent=parent, resource_id=resource_id, most=most,
            most_below=most_below,
        )

    async def update(
        self, kind: str, owner: str, resource_id: str, body: JsonObject, *, secrets: dict[str, str] | None = None,
        expected: int | None = None,
    ) -> Resource:
        self._check(kind)
        return await self._resources.update(kind, owner, resource_id, body, secrets=secrets, expected=expected)

    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource:
        self._check(kind)
        return await self._resources.archive(kind, owner, resource_id)

    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        self._check(kind)
        await self._resources.delete(kind, owner, resource_id)

    def _check(self, kind: str) -> None:
        """Refuse a change that the rule forbids; the server itself may change everything."""
        rule, caller = self._rule(), self._who()
        if kind not in MANAGED_KINDS or rule == "own" or caller is None:
            return
        if rule == "off":
            raise Forbidden("this server's config.yaml switches such changes off (management.changes: off)")
        if not caller.is_admin:
            raise Forbidden("only admins may change this here (management.changes: read in config.yaml)")
