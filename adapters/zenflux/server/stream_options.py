"""The options of one ZenFlux stream: its form, and what was known of the conversation when the run began."""

from typing import Any, Literal

import msgspec
from pydantic import BaseModel

import gateway.model as m
from adapters.zenflux.wire import LOCAL_USER, ZenfluxSettings
from gateway import ports
from gateway.json_values import JsonObject

from .views import user_id_of


class StreamOptions(ports.StreamOptions, frozen=True, kw_only=True):
    """What one subscriber asked for; the defaults give the frames of a chat socket for an unknown conversation."""

    framing: Literal["json", "sse"] = "json"
    multi_message: bool = True
    whole: bool = False
    throttle: float = 0.15
    conversation_stop: bool = False
    rollback_objects: bool = False
    untitled: str = "新对话"
    title: str | None = None
    message_id: str | None = None
    """What the client calls the message that began the run, if it does."""
    user_id: str = LOCAL_USER
    created_at: float = 0.0
    metadata: JsonObject = msgspec.field(default_factory=dict)

    def __hash__(self) -> int:
        """Metadata have no hash; equal options have equal metadata all the same."""
        return hash((self.framing, self.whole, self.title, self.message_id, self.user_id, self.created_at))


def socket_options(
    settings: BaseModel, view: m.SessionView, message_id: str | None = None, *, stream: bool = True,
) -> StreamOptions:
    """Frames for a chat socket, merged; or each block as a whole."""
    assert isinstance(settings, ZenfluxSettings), "a dialect gets settings of its own kind"
    return _options(
        settings, view, message_id=message_id, multi_message=settings.multi_message, whole=not stream,
        throttle=settings.throttle_ms / 1000,
    )


def sse_options(settings: ZenfluxSettings, view: m.SessionView, message_id: str | None = None) -> StreamOptions:
    """Server-sent events: one message for the whole run, because a reader leaves at its end; nothing is merged."""
    return _options(settings, view, message_id=message_id, framing="sse", multi_message=False, throttle=0.0)


def _options(settings: ZenfluxSettings, view: m.SessionView, **form: Any) -> StreamOptions:
    return StreamOptions(
        **form, conversation_stop=settings.conversation_stop, rollback_objects=settings.rollback_objects,
        untitled=settings.default_title, title=view.title, user_id=user_id_of(view.owner, view.metadata),
        created_at=view.created_at, metadata=m.public_metadata(view.metadata),
    )
