"""Makes the bodies of requests to an AAP server, in the words of the dialect's table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gateway.model as m
from adapters.aap.asks import wire_answer
from adapters.aap.bodies import (
    MessageBody,
    NewSessionBody,
    NewTurnBody,
    ServerToolBody,
    SessionAgentBody,
    ToolBody,
)
from adapters.aap.wire import ANY_PARAMETERS
from gateway.ports import NewRemoteSession, RemoteAsk

from .readers import AAP

IMAGE_SCHEMES = ("https://", "data:")
"""The schemes of image addresses that AAP can carry."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SentSettings:
    """The settings that AAP can carry; options hold secrets, so it is never printed."""

    tools: list[ServerToolBody]
    options: dict[str, str]
    client_tools: list[ToolBody]


def settings_to_send(card: m.AgentCard, settings: m.Settings) -> SentSettings:
    """The settings as AAP has them; if they name no tools, the agent has all tools of its card."""
    tools = {tool.spec.name: tool.permission for tool in card.tools} if settings.tools is None else settings.tools
    return SentSettings(
        tools=[
            ServerToolBody(name=name, trust=permission is m.Permission.ALLOW)
            for name, permission in tools.items() if permission is not m.Permission.DENY and card.tool(name) is not None
        ],
        options={name: value for name, value in (settings.options | settings.secrets).items() if card.option(name)},
        client_tools=[
            ToolBody(
                name=spec.name, title=spec.title, description=spec.description,
                parameters=spec.parameters or ANY_PARAMETERS,
            ) for spec in settings.client_tools
        ] if card.capabilities.client_tools else [],
    )


# -- sessions ---------------------------------------------------------------------------------------------------------

def new_session(card: m.AgentCard, opening: NewRemoteSession) -> Any:
    settings = settings_to_send(card, opening.settings)
    options = _changed_options(card, {}, settings.options)
    seed = [*_system(opening.settings), *opening.history]
    return AAP.spell(NewSessionBody(
        agent=SessionAgentBody(name=card.name, tools=settings.tools, options=options or None),
        messages=[_message(card, message) for message in seed] or None,
        tools=settings.client_tools or None,
    ))


def _system(settings: m.Settings) -> list[m.SeedMessage]:
    return [m.SeedMessage(role=m.Role.SYSTEM, content=settings.system)] if settings.system else []


def _message(card: m.AgentCard, message: m.SeedMessage) -> MessageBody:
    content = with_supported_images(card, message.content)
    if message.role is m.Role.TOOL:
        return MessageBody(role=message.role, call_id=message.call_id or "", content=content)
    return MessageBody(role=message.role, content=m.text_of(content) if message.role is m.Role.SYSTEM else content)


# -- turns ------------------------------------------------------------------------------------------------------------

def new_turn(messages: Sequence[Any], mode: str, changes: Mapping[str, Any]) -> Any:
    return AAP.spell(NewTurnBody(messages=messages, stream=mode, **changes))


def changed_settings(card: m.AgentCard, before: SentSettings | None, now: SentSettings) -> dict[str, Any]:
    """The changed settings that a turn carries; all of them if the earlier ones are unknown."""
    tools = now.tools if before is None or before.tools != now.tools else None
    options = _changed_options(card, before.options if before else {}, now.options) or None
    changes: dict[str, Any] = {}
    if tools is not None or options:
        changes["agent"] = SessionAgentBody(tools=tools, options=options)
    if before is None or before.client_tools != now.client_tools:
        changes["tools"] = now.client_tools
    return changes


def _changed_options(card: m.AgentCard, before: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """The changed options; one that is no longer set gets its default, unless it is secret."""
    defaults = {option.name: option.default for option in card.options}
    back = {option.name: option.default for option in card.options
            if option.name in before and option.name not in now and option.kind is not m.OptionKind.SECRET}
    return {name: value for name, value in (back | now).items() if value != before.get(name, defaults[name])}


def turn_messages(card: m.AgentCard, command: m.SendMessage) -> list[Any]:
    """One message of a person, or the results of calls of the history that the session began with."""
    table = AAP.table
    if command.results:
        return [
            table.message("message.tool", request_id=result.call_id or "",
                          content=with_supported_images(card, result.content))
            for result in command.results
        ]
    return [table.message("message.user", content=with_supported_images(card, command.content))]


def answer_messages(card: m.AgentCard, answers: Iterable[tuple[RemoteAsk, m.Answer]]) -> list[Any]:
    return [_answer_message(card, asked, answer) for asked, answer in answers]


def _answer_message(card: m.AgentCard, asked: RemoteAsk, answer: m.Answer) -> Any:
    table, given = AAP.table, wire_answer(asked.ask, answer)
    if isinstance(asked.ask, m.PermissionAsk):
        return table.message("message.tool_permission", request_id=asked.ref, granted=bool(given.granted),
                             reason=given.reason or None)
    return table.message("message.tool", request_id=asked.ref, content=with_supported_images(card, given.content))


def with_supported_images(card: m.AgentCard, content: m.Content) -> m.Content:
    """The content, with text in the place of images that the agent does not take."""
    if isinstance(content, str):
        return content
    return tuple(
        m.TextPart(text=m.image_markdown(part))
        if isinstance(part, m.ImagePart) and not _is_supported_image(card, part)
        else part
        for part in content
    )


def _is_supported_image(card: m.AgentCard, image: m.ImagePart) -> bool:
    return image.url.startswith(IMAGE_SCHEMES) and card.takes_image(image.url)
