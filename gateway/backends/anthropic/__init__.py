"""A model behind the Messages API of Anthropic, or behind an address that speaks it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import HttpUrl, PositiveInt

from gateway.backends.command import seen_from
from gateway.backends.kind import Kind
from gateway.backends.loop import ModelBackend
from gateway.backends.loop_service import Asking
from gateway.backends.loop_settings import ModelSettings
from gateway.backends.loop_tools import Toolbox
from gateway.model import AgentCard, Capabilities
from gateway.ports import Backend
from gateway.speech import Scribe
from gateway.upstream import Upstream

from .reading import MessageReading
from .request import message_request

VERSION = "2023-06-01"


class AnthropicSettings(ModelSettings):
    """Those of any model; the Messages API wants to know how long an answer may be."""

    url: HttpUrl = HttpUrl("https://api.anthropic.com")
    max_tokens: PositiveInt | None = 8192


class Messages:
    """How the Messages API is asked and read."""

    path = "/v1/messages"

    def headers(self, settings: ModelSettings) -> dict[str, str]:
        key = {"x-api-key": settings.key.get_secret_value()} if settings.key else {}
        return {"anthropic-version": VERSION} | key

    def body(self, asking: Asking, settings: ModelSettings) -> dict[str, Any]:
        return settings.with_extra(message_request(asking) | {"max_tokens": settings.max_tokens})

    def reading(self, scribe: Scribe, toolbox: Toolbox, call_ids: set[str], upstream: Upstream) -> MessageReading:
        return MessageReading(scribe, toolbox, call_ids, upstream)


CARD = AgentCard(
    name="anthropic", title="Messages API model", capabilities=Capabilities(images=("http", "data")),
)


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    return ModelBackend(CARD, AnthropicSettings.model_validate(settings, context=seen_from(base)), Messages(), base)


KIND = Kind(make=_make, card=CARD, settings=AnthropicSettings)

__all__ = ["KIND", "AnthropicSettings", "MessageReading", "Messages", "message_request"]
