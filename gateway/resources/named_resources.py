"""Resources that their owner finds by a name: two users may use the same name, and neither learns of the other."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

import gateway.model as m
from gateway.errors import Conflict, Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.json_values import JsonValue
from gateway.ports import Resource, Resources

PAGE = 500


class AlreadyExists(Conflict):
    """The owner has a resource of this name."""

    usual_reason = m.FaultReason.ALREADY_EXISTS


class NamedResources:
    """The resources of one kind, by owner and name.

    `noun` is what messages call such a resource; `pattern` is what a name may be; `most` is how many an owner may have.
    """

    def __init__(self, resources: Resources, kind: str, noun: str, pattern: re.Pattern[str], most: int) -> None:
        self._resources = resources
        self._kind = kind
        self._noun = noun
        self._pattern = pattern
        self._most = most

    def check_name(self, name: str, field: str = "name") -> None:
        """Refuse an invalid name."""
        if not self._pattern.fullmatch(name):
            raise Invalid(f"{field}: {quote_value(name)} is no name of the kind '{self._noun}'; "
                          f"a name matches {self._pattern.pattern}", param=field)

    async def create(
        self, owner: str, name: str, body: Mapping[str, JsonValue], *, secrets: dict[str, str] | None = None,
        parent: str = "",
    ) -> Resource:
        """Create a resource; `Conflict` if the owner has one of this name already, or too many."""
        self.check_name(name)
        try:
            return await self._resources.create(
                self._kind, owner, {**body, "name": name}, secrets=secrets, parent=parent,
                resource_id=self.id_of(owner, name, parent), most=self._most,
            )
        except Conflict:
            if await self.find(owner, name, parent) is None:
                raise Conflict(f"you have {self._most} of the kind '{self._noun}' already; delete one first") from None
            raise AlreadyExists(f"{self._noun} '{name}' exists already", param="name") from None

    async def get(self, owner: str, name: str, parent: str = "") -> Resource:
        """The resource; `NotFound` if the owner has none of this name."""
        found = await self.find(owner, name, parent)
        if found is None:
            raise NotFound(f"there is no {self._noun} '{name[:128]}'")
        return found

    async def find(self, owner: str, name: str, parent: str = "") -> Resource | None:
        if not self._pattern.fullmatch(name):
            return None
        try:
            return await self._resources.get(self._kind, owner, self.id_of(owner, name, parent))
        except NotFound:
            return None

    async def all(self, owner: str, parent: str | None = None) -> Sequence[Resource]:
        """Every resource of the owner, oldest first."""
        found: list[Resource] = []
        after: int | None = None
        while page := await self._resources.list(
            self._kind, owner, parent=parent, after=after, limit=PAGE, oldest_first=True,
        ):
            found += page
            after = page[-1].ordinal
            if len(page) < PAGE:
                break
        return found

    async def update(
        self, found: Resource, body: Mapping[str, JsonValue], *, secrets: dict[str, str] | None = None,
    ) -> Resource:
        """Store a new version; `Conflict` if the resource was changed since it was read."""
        return await self._resources.update(
            self._kind, found.owner, found.resource_id, {**body, "name": found.body["name"]}, secrets=secrets,
            expected=found.version,
        )

    async def delete(self, owner: str, name: str, parent: str = "") -> None:
        found = await self.get(owner, name, parent)
        await self._resources.delete(self._kind, owner, found.resource_id)

    def id_of(self, owner: str, name: str, parent: str = "") -> str:
        """The id under which the store has a name: a hash, because the ids of a store are common to all owners."""
        digest = sha256("\0".join((owner, parent, name)).encode("utf-8", "surrogateescape")).hexdigest()
        return f"{self._kind}_{digest[:32]}"
