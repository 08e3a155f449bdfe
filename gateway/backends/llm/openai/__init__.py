"""The `openai` kind: a model behind an OpenAI-compatible chat-completions URL."""

from collections.abc import Mapping
from typing import Any

from pydantic import HttpUrl

import gateway.model as m
from gateway.backends.kinds import BackendContext, BackendKind, MadeBackend
from gateway.backends.llm.backend import LLM_SUPPORT, LlmBackend
from gateway.backends.llm.service import ModelRequest
from gateway.backends.llm.settings import LlmSettings
from gateway.backends.setting_types import settings_context
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, StreamAssembler

from .decoder import ChatCompletionsDecoder
from .request import chat_request

OPENAI_URL = HttpUrl("https://api.openai.com/v1")


class OpenaiSettings(LlmSettings):
    """The settings of a model, and the field in which thinking is sent back, for services that expect it."""

    url: HttpUrl = OPENAI_URL
    reasoning_field: str | None = None


class ChatCompletionsService:
    """Requests and responses of a chat-completions service."""

    path = "/chat/completions"

    def headers(self, settings: LlmSettings) -> dict[str, str]:
        return {"Authorization": f"Bearer {settings.key.get_secret_value()}"} if settings.key else {}

    def request_body(self, asking: ModelRequest, settings: LlmSettings) -> dict[str, Any]:
        assert isinstance(settings, OpenaiSettings)
        length = "max_completion_tokens" if settings.url.host == OPENAI_URL.host else "max_tokens"
        body = chat_request(asking, settings.reasoning_field)
        return settings.with_extra({**body, length: settings.max_tokens})

    def decoder(
        self, assembler: StreamAssembler, toolbox: Toolbox, call_ids: set[str], upstream: HttpClient
    ) -> ChatCompletionsDecoder:
        return ChatCompletionsDecoder(assembler, toolbox, call_ids, upstream)


CARD = m.AgentCard(
    name="openai", title="Chat-completions model", capabilities=m.AgentCapabilities(images=("http", "data")),
)


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    wanted = OpenaiSettings.model_validate(settings, context=settings_context(context.folder))
    backend = LlmBackend(CARD, wanted, ChatCompletionsService(), context.folder, addresses=context.addresses)
    return MadeBackend(backend, backend.card)


KIND = BackendKind(make=_make, card=CARD, settings=OpenaiSettings, support=LLM_SUPPORT)

__all__ = [
    "KIND",
    "ChatCompletionsDecoder",
    "ChatCompletionsService",
    "OpenaiSettings",
    "chat_request",
]
