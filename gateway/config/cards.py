"""What clients are told of an agent: the card of its backend, with the settings laid over it."""

from msgspec.structs import replace

from gateway.model import AgentCard, AgentOption, AgentTool, Capabilities, ToolSpec

from .settings import AgentSettings, CapabilitySettings, OptionSettings, ToolSettings


def merge_card(default: AgentCard, name: str, agent: AgentSettings) -> AgentCard:
    """The card that goes by `name`: what the settings leave open is as the backend has it."""
    said = {word: value for word in ("title", "description", "version", "model") if (value := getattr(agent, word))}
    return replace(
        default,
        name=name,
        tools=default.tools if agent.tools is None else tuple(map(_tool, agent.tools)),
        options=default.options if agent.options is None else tuple(map(_option, agent.options)),
        capabilities=_capabilities(default.capabilities, agent.capabilities),
        **said,
    )


def _tool(tool: ToolSettings) -> AgentTool:
    spec = ToolSpec(name=tool.name, title=tool.title, description=tool.description, parameters=tool.parameters)
    return AgentTool(spec=spec, permission=tool.permission)


def _option(option: OptionSettings) -> AgentOption:
    return AgentOption(
        name=option.name, kind=option.type, default=option.default,
        title=option.title, description=option.description, choices=option.options,
    )


def _capabilities(default: Capabilities, said: CapabilitySettings) -> Capabilities:
    return replace(default, **said.model_dump(exclude_none=True))
