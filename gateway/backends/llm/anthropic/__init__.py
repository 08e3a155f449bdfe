"""The `anthropic` kind: a model behind the Messages API, at Anthropic or elsewhere."""

from collections.abc import Mapping
from typing import Any

from pydantic import HttpUrl, PositiveInt

import gateway.model as m
from gateway.backends.kinds import BackendContext, BackendKind, MadeBackend
from gateway.backends.llm.backend import LLM_SUPPORT, LlmBackend
from gateway.backends.llm.service import ModelRequest
from gateway.backends.llm.settings import LlmSettings
from gateway.backends.setting_types import settings_context
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, StreamAssembler

from .decoder import MessagesDecoder
from .request import message_request

VERSION = "2023-06-01"


class AnthropicSettings(LlmSettings):
    """The settings of a model; the Messages API requires `max_tokens`."""

    url: HttpUrl = HttpUrl("https://api.anthropic.com")
    max_tokens: PositiveInt | None = 8192


class MessagesService:
    """Requests and responses of the Messages API."""

    path = "/v1/messages"

    def headers(self, settings: LlmSettings) -> dict[str, str]:
        key = {"x-api-key": settings.key.get_secret_value()} if settings.key else {}
        return {"anthropic-version": VERSION} | key

    def request_body(self, asking: ModelRequest, settings: LlmSettings) -> dict[str, Any]:
        return settings.with_extra(message_request(asking) | {"max_tokens": settings.max_tokens})

    def decoder(
        self, assembler: StreamAssembler, toolbox: Toolbox, call_ids: set[str], upstream: HttpClient
    ) -> MessagesDecoder:
        return MessagesDecoder(assembler, toolbox, call_ids, upstream)


CARD = m.AgentCard(
    name="anthropic", title="Messages API model", capabilities=m.AgentCapabilities(images=("http", "data")),
)


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    wanted = AnthropicSettings.model_validate(settings, context=settings_context(context.folder))
    backend = LlmBackend(CARD, wanted, MessagesService(), context.folder, addresses=context.addresses)
    return MadeBackend(backend, backend.card)


KIND = BackendKind(make=_make, card=CARD, settings=AnthropicSettings, support=LLM_SUPPORT)

__all__ = [
    "KIND",
    "AnthropicSettings",
    "MessagesDecoder",
    "MessagesService",
    "message_request",
]
