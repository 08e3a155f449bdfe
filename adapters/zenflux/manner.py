"""How one reader wants a run told, and what was known of its conversation when it began."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from gateway.model import PRIVATE, SessionView, shown

from .wire import ZenfluxSettings

NAME = "zenflux"
LOCAL = "local"
"""The user of a conversation of which nobody said whose it is."""


class Manner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The default is what a chat socket gets, of a conversation nobody knows anything about."""

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
    user_id: str = LOCAL
    created_at: float = 0.0
    metadata: dict[str, Any] = {}


_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Manner).decode


def as_word(manner: Manner) -> str:
    return _encode(manner).decode()


def from_word(word: str) -> Manner:
    return _decode(word) if word else Manner()


def on_socket(
    settings: ZenfluxSettings, view: SessionView, message_id: str | None = None, *, stream: bool = True,
) -> str:
    """Frames for a chat socket, merged; or each block as a whole."""
    return as_word(_manner(
        settings, view, message_id=message_id, multi_message=settings.multi_message, whole=not stream,
        throttle=settings.throttle_ms / 1000,
    ))


def as_events(settings: ZenfluxSettings, view: SessionView, message_id: str | None = None) -> str:
    """Server-sent events: one message for the whole run, because a reader leaves at its end; nothing is merged."""
    return as_word(_manner(
        settings, view, message_id=message_id, framing="sse", multi_message=False, throttle=0.0))


def _manner(settings: ZenfluxSettings, view: SessionView, **form: Any) -> Manner:
    return Manner(
        **form, conversation_stop=settings.conversation_stop, rollback_objects=settings.rollback_objects,
        untitled=settings.default_title, title=view.title, user_id=user_of(view.owner, view.metadata),
        created_at=view.created_at, metadata=shown(view.metadata),
    )


def user_of(owner: str, metadata: dict[str, Any]) -> str:
    """Whose a conversation is: whom its client named, else the key's user, else the local one."""
    return str(private_of(metadata).get("user_id") or owner or LOCAL)


def private_of(metadata: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = metadata.get(PRIVATE, {}).get(NAME, {})
    return found


def with_user(metadata: dict[str, Any], user_id: str) -> dict[str, Any]:
    """Metadata that says, to nobody but us, whose the conversation is."""
    private = {**metadata.get(PRIVATE, {}), NAME: {**private_of(metadata), "user_id": user_id}}
    return {**metadata, PRIVATE: private}
