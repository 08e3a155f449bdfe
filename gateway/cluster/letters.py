"""What servers write to each other through Redis: a call for a session's writer, its reply, and news of a loss."""

from typing import Any

import msgspec
from msgspec import Struct

from gateway import errors
from gateway.errors import GatewayError
from gateway.model import AnyCommand, CloseReason, CustomEvent, FaultCode, NoticePosted
from gateway.ports import Receipt


class Call(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Something only the writer of a session can do."""

    owner: str
    session_id: str


class Submit(Call, frozen=True, kw_only=True, tag="submit"):
    """Commands, accepted or refused together."""

    commands: tuple[AnyCommand, ...]


class Update(Call, frozen=True, kw_only=True, tag="update"):
    """A new title, metadata or agent."""

    title: str | None = None
    metadata: dict[str, Any] | None = None
    agent: str | None = None


class Close(Call, frozen=True, kw_only=True, tag="close"):
    """The end of a session that can still be read."""

    reason: CloseReason


class ArchiveScope(Call, frozen=True, kw_only=True, tag="archive_scope"):
    """A sub-agent put away."""

    scope_id: str


class Rewind(Call, frozen=True, kw_only=True, tag="rewind"):
    """Back to a checkpoint."""

    to_seq: int
    reason: str | None = None


class Tell(Call, frozen=True, kw_only=True, tag="tell"):
    """Something beside the conversation."""

    event: NoticePosted | CustomEvent


class Delete(Call, frozen=True, kw_only=True, tag="delete"):
    """The end of a session, and of its log."""


AnyCall = Submit | Update | Close | ArchiveScope | Rewind | Tell | Delete


class Refused(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error on its way to whoever asked."""

    name: str
    code: FaultCode
    message: str
    param: str | None = None
    details: dict[str, Any] | None = None
    retry_after: float | None = None


class Asked(Struct, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A call, who makes it, and the word under which it is known however often it comes."""

    request: str
    sender: str
    call: AnyCall


class Replied(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="replied"):
    """What became of a call; `elsewhere` if the session has another writer."""

    request: str
    receipt: Receipt | None = None
    refused: Refused | None = None
    elsewhere: bool = False


class Taken(Struct, frozen=True, kw_only=True, tag_field="kind", tag="lost"):
    """Another server has claimed a session, with this token; written by the script that claims."""

    session_id: str
    token: int


Letter = Asked | Replied | Taken

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Letter).decode

_ERRORS: dict[str, type[GatewayError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, GatewayError)
}


def refused(error: GatewayError) -> Refused:
    """The error as it travels: by the name of the nearest kind that every server knows."""
    name = next(kind.__name__ for kind in type(error).__mro__ if _ERRORS.get(kind.__name__) is kind)
    return Refused(
        name=name, code=error.code, message=error.message, param=error.param, details=error.details,
        retry_after=error.retry_after,
    )


def raised(refusal: Refused) -> GatewayError:
    """The error as it arrives."""
    error = _ERRORS.get(refusal.name, GatewayError)(
        refusal.message, param=refusal.param, details=refusal.details, retry_after=refusal.retry_after)
    if error.code is not refusal.code:
        error.code = refusal.code  # type: ignore[misc]  # a kind of its own, of which only the code is known here
    return error
