"""Section meta: what GET /meta said, and whether the rest of the recording bears it out."""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.aap import meta
from conformance.aap.agent import HISTORY_TYPES
from conformance.aap.examination import SCHEMAS
from conformance.aap.offline.view import AapView, denied
from conformance.kit import expect
from conformance.kit.schemas import Schemas
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


@rule("AAP-META-01", needs="answer to GET /meta")
def meta_is_version_three(view: AapView) -> Found:
    """Every answer of GET /meta gives the version as the integer 3 and a list of agents."""
    for item in view.metas:
        yield item
        meta.is_version_three(item.reply, SCHEMAS)


def _each(view: AapView, check: Callable[[list[dict[str, Any]], Schemas], None], member: str | None = None) -> Found:
    for item in view.metas:
        agents = mappings(mapping(item.json).get("agents"))
        if member is None or any(member in agent for agent in agents):
            yield item
            check(agents, SCHEMAS)


@rule("AAP-META-02", needs="answer to GET /meta")
def agents_are_described(view: AapView) -> Found:
    """Every agent has a name of its own and a semantic version."""
    yield from _each(view, meta.are_agents)


@rule("AAP-META-03", needs="agent with options")
def options_are_described(view: AapView) -> Found:
    """Every option is a text, a secret or a select with a default that can be chosen."""
    yield from _each(view, meta.have_options, "options")


@rule("AAP-META-04", needs="agent with capabilities")
def capabilities_are_empty_objects(view: AapView) -> Found:
    """Every known leaf of the capabilities is an empty object."""
    yield from _each(view, meta.have_capabilities, "capabilities")


@rule("AAP-META-04", needs="request for a declared history of an agent that /meta describes")
def what_is_declared_is_supported(view: AapView) -> Found:
    """A history of a declared type is given."""
    for item, session in view.histories:
        agent, kind = view.agent_of(session), item.param("type")
        is_there = agent is not None and not view.deleted_before(session, item.ended) and not denied(item)
        if is_there and agent is not None and kind in HISTORY_TYPES and kind in agent.history_types:
            yield item
            expect.status(item.reply, 200)


@rule("AAP-META-05", needs="agent with tools")
def tools_are_described(view: AapView) -> Found:
    """Every server tool has a name, a description and parameters that are a JSON Schema."""
    yield from _each(view, meta.have_tools, "tools")
