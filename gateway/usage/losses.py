"""What a client would lose in another dialect: what it was seen to use, joined with what the tables lose."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

import gateway.model as m
from gateway.ports import Dialect
from mappings.language import FEATURES, LEVEL_MEANINGS, LOST_LEVELS, Table

from .report import ClientUsage

LOST, DEGRADED = "lost", "degraded"


class FeatureLoss(Struct, frozen=True, kw_only=True):
    """A feature that a client uses, and that the other dialect carries less well than the dialect of the client."""

    feature: str
    verdict: str
    """lost or degraded."""
    uses: int
    note: str


class ClientLosses(Struct, frozen=True, kw_only=True):
    """One client, and what it would lose."""

    usage: ClientUsage
    losses: tuple[FeatureLoss, ...] = ()

    @property
    def carried(self) -> tuple[str, ...]:
        """The used features that arrive as well as before."""
        return tuple(name for name in self.usage.features if name not in {loss.feature for loss in self.losses})


def client_losses(
    clients: Iterable[ClientUsage], source: Dialect, old: Table, target: Dialect, new: Table,
) -> list[ClientLosses]:
    """The clients of the old dialect, each with what the new one degrades or loses for it."""
    return [
        ClientLosses(usage=one, losses=(*_features(one, old, new), *_resources(one, source, target)))
        for one in clients if one.dialect == source.name
    ]


def _features(one: ClientUsage, old: Table, new: Table) -> Iterator[FeatureLoss]:
    for name, uses in one.features.items():
        if name not in FEATURES:
            continue
        had, has = m.SupportLevel(old.support[name]), m.SupportLevel(new.support[name])
        if has is m.SupportLevel.FULL or had in LOST_LEVELS:
            continue
        yield FeatureLoss(
            feature=name, verdict=LOST if has in LOST_LEVELS else DEGRADED, uses=uses,
            note=new.notes.get(name) or LEVEL_MEANINGS.get(has) or f"{new.dialect} has no word for it",
        )


def _resources(one: ClientUsage, source: Dialect, target: Dialect) -> Iterator[FeatureLoss]:
    """The kinds of resources whose endpoints the client calls, and that the other dialect does not show."""
    for kind, shown in source.resources.items():
        there = target.resources.get(kind)
        if there is not None and (there.paths or there.words):
            continue
        uses = sum(count for endpoint, count in one.endpoints.items() if _is_below(endpoint, shown.paths))
        if uses:
            yield FeatureLoss(
                feature=str(kind), verdict=LOST, uses=uses, note=f"{target.name} has no endpoints for it")


def _is_below(endpoint: str, paths: Sequence[str]) -> bool:
    """Whether the route of an endpoint is one of these paths below the mount, or below one of them."""
    route = endpoint.partition(" ")[2]
    return any(f"{path.partition(' ')[2] or path}/" in f"{route}/" for path in paths)


