"""AAP's agents: those of the settings, and those that the caller has made in any dialect, under their ids."""

from collections.abc import Sequence

from aiohttp import web
from msgspec.structs import replace

import gateway.model as m
from adapters.aap.wire import AapSettings
from gateway.errors import Invalid, NotFound, Unauthenticated
from gateway.http import Context, bearer_token
from gateway.ports import ChosenAgent


async def cards_for(context: Context[AapSettings], request: web.Request) -> Sequence[m.AgentCard]:
    """The agents that this client may use; a client without a valid key sees those of the settings."""
    try:
        caller = await context.guard.authenticate(bearer_token(request), request.remote or "")
    except Unauthenticated:
        return [*context.agents.values()]
    service = context.agent_service
    shown = list[m.AgentCard]()
    for agent in await service.page(caller.user):
        try:
            if agent.definition.is_active:
                shown.append(service.shown_card(agent))
        except Invalid:  # the model of the agent is not served any more
            continue
    return shown


async def choose_agent(context: Context[AapSettings], owner: str, name: str) -> tuple[ChosenAgent, m.AgentCard]:
    """The agent that a new session names, and its card, which has only the tools that are enabled."""
    service = context.agent_service
    try:
        chosen = await service.choose(owner, name)
    except NotFound:
        raise Invalid(f"agent.name: there is no agent '{name}'", param="agent.name") from None
    return chosen, service.shown_card(chosen.agent)


def with_choices(card: m.AgentCard, made: m.Settings, said: m.Settings) -> m.Settings:
    """The settings of a new session: what the agent was made with, and what the client says on top of it."""
    for name in said.tools or ():
        if card.tool(name) is None:
            known = ", ".join(f"'{tool.spec.name}'" for tool in card.tools) or "none"
            raise Invalid(f"agent '{card.name}' has no tool '{name}'; it has {known}")
    return replace(
        made, tools=said.tools, options=made.options | said.options,
        client_tools=(*made.client_tools, *said.client_tools),
    )
