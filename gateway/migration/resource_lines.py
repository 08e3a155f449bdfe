"""What an import tells of the things beside sessions: one line for each, and a summary of each group."""

from enum import StrEnum

from msgspec import Struct

from gateway.ports import ResourceGroup


class ResourceOutcome(StrEnum):
    """What became of a thing that the server has listed."""

    IMPORTED = "imported"
    UNCHANGED = "unchanged"
    HIDDEN = "hidden"
    FAILED = "failed"


RESOURCE_TEXTS = {
    ResourceOutcome.IMPORTED: "imported",
    ResourceOutcome.UNCHANGED: "here already",
    ResourceOutcome.HIDDEN: "not imported, because the server does not show what they are made of",
    ResourceOutcome.FAILED: "not imported, because they could not be read or stored",
}


class ResourceLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the report: a thing of the server, and what became of it."""

    kind: str
    id: str
    outcome: ResourceOutcome
    own_id: str = ""
    """The id here, if it is another one."""
    unseen: tuple[str, ...] = ()
    reason: str = ""


class GroupSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many things of a group had each outcome, and what of the group a client cannot see."""

    group: ResourceGroup
    counts: dict[ResourceOutcome, int] = {}
    unseen: str = ""
