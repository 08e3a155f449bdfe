"""Imports what a server shows of a user beside sessions: agents, memories, files and schedules, each once."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from gateway.client import NOT_SERVED_STATUSES, upstream_status
from gateway.errors import ConnectionLost, GatewayError, ServerUnreachable
from gateway.ports import PastResource, PastResources, ResourceGroup

from .importer import Pace
from .past_records import Origin
from .resource_lines import GroupSummary, ResourceLine, ResourceOutcome
from .resource_store import FILE, ResourceStore, own_resource_id


async def report_no_resource(line: ResourceLine) -> None:
    """Nobody reads the lines."""


class ResourceImporter:
    """One run. What is here already stays as it is: another run goes on where this one was stopped."""

    def __init__(
        self, source: PastResources, store: ResourceStore, origin: Origin, owner: str, agents: Iterable[str], *,
        rate: float | None = None, is_dry: bool = False,
        report: Callable[[ResourceLine], Awaitable[None]] = report_no_resource,
    ) -> None:
        self.groups: list[GroupSummary] = []
        self._source, self._store, self._origin, self._owner = source, store, origin, owner
        self._agents, self._pace, self._is_dry, self._report = frozenset(agents), Pace(rate), is_dry, report

    async def run(self, groups: Iterable[ResourceGroup]) -> None:
        """Raises `ServerUnreachable` or `ConnectionLost` if the server is gone."""
        for group in groups:
            counts, unseen = Counter[ResourceOutcome](), self._source.unseen.get(group, "")
            try:
                async for past in self._source.read(group):
                    await self._pace.wait()
                    counts[await self._take(past)] += 1
            except (ServerUnreachable, ConnectionLost):
                raise
            except GatewayError as error:
                if upstream_status(error) in NOT_SERVED_STATUSES:
                    unseen = "this server does not offer them"
                else:
                    counts[ResourceOutcome.FAILED] += 1
                    await self._report(ResourceLine(
                        kind=group, id="", outcome=ResourceOutcome.FAILED, reason=error.message))
            self.groups.append(GroupSummary(group=group, counts=dict(counts), unseen=unseen))

    async def _take(self, past: PastResource) -> ResourceOutcome:
        own_id = own_resource_id(self._origin, past.kind, past.resource_id)
        outcome, lost, reason = ResourceOutcome.IMPORTED, list(past.unseen), past.hidden
        try:
            if past.agent in self._agents or await self._store.has(self._owner, past.kind, own_id):
                outcome = ResourceOutcome.UNCHANGED
            elif past.hidden:
                outcome = ResourceOutcome.HIDDEN
            elif not self._is_dry:
                lost += await self._stored(past, own_id)
        except (ServerUnreachable, ConnectionLost):
            raise
        except GatewayError as error:
            if await self._store.has(self._owner, past.kind, own_id):
                outcome = ResourceOutcome.UNCHANGED  # another import has stored it meanwhile
            else:
                outcome, reason = ResourceOutcome.FAILED, error.message
        await self._report(ResourceLine(
            kind=past.kind, id=past.resource_id, outcome=outcome, reason=reason,
            own_id=own_id if own_id != past.resource_id else "",
            unseen=tuple(lost) if outcome is ResourceOutcome.IMPORTED else (),
        ))
        return outcome

    async def _stored(self, past: PastResource, own_id: str) -> list[str]:
        content = self._source.content(past.resource_id) if past.kind == FILE else None
        parent = own_resource_id(self._origin, past.parent_kind, past.parent) if past.parent else ""
        return await self._store.store(self._owner, past, own_id, parent, content)
