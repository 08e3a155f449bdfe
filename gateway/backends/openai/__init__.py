"""A model behind any OpenAI-compatible chat-completions address, a public one or one on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import HttpUrl

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

from .reading import ChatReading
from .request import chat_request

PUBLIC = HttpUrl("https://api.openai.com/v1")


class OpenaiSettings(ModelSettings):
    """Those of any model; and the field in which earlier thoughts are sent back, for services that want them."""

    url: HttpUrl = PUBLIC
    reasoning_field: str | None = None


class ChatCompletions:
    """How a chat-completions service is asked and read."""

    path = "/chat/completions"

    def headers(self, settings: ModelSettings) -> dict[str, str]:
        return {"Authorization": f"Bearer {settings.key.get_secret_value()}"} if settings.key else {}

    def body(self, asking: Asking, settings: ModelSettings) -> dict[str, Any]:
        assert isinstance(settings, OpenaiSettings)
        length = "max_completion_tokens" if settings.url.host == PUBLIC.host else "max_tokens"
        body = chat_request(asking, settings.reasoning_field)
        return settings.with_extra({**body, length: settings.max_tokens})

    def reading(self, scribe: Scribe, toolbox: Toolbox, call_ids: set[str], upstream: Upstream) -> ChatReading:
        return ChatReading(scribe, toolbox, call_ids, upstream)


CARD = AgentCard(
    name="openai", title="Chat-completions model", capabilities=Capabilities(images=("http", "data")),
)


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    return ModelBackend(CARD, OpenaiSettings.model_validate(settings, context=seen_from(base)), ChatCompletions(), base)


KIND = Kind(make=_make, card=CARD, settings=OpenaiSettings)

__all__ = ["KIND", "ChatCompletions", "ChatReading", "OpenaiSettings", "chat_request"]
