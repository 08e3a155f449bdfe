"""What servers write to each other through Redis: a call for a session's writer, its reply, and news of a loss.

Letters on their way through Redis: what is secret in them is sealed there, as it is in the log.
"""

from collections.abc import Callable
from dataclasses import replace as replaced
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import gateway.model as m
from gateway import errors
from gateway.errors import GatewayError
from gateway.ports import Receipt
from gateway.storage import UNSEALED, Seal


class RpcCall(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Something only the writer of a session can do."""

    owner: str
    session_id: str


class SubmitCall(RpcCall, frozen=True, kw_only=True, tag="submit"):
    """Commands, accepted or refused together."""

    commands: tuple[m.AnyCommand, ...]


class UpdateCall(RpcCall, frozen=True, kw_only=True, tag="update"):
    """A new title, metadata or agent."""

    title: str | None = None
    metadata: dict[str, Any] | None = None
    agent: str | None = None


class CloseCall(RpcCall, frozen=True, kw_only=True, tag="close"):
    """The end of a session that can still be read."""

    reason: m.CloseReason


class ArchiveScopeCall(RpcCall, frozen=True, kw_only=True, tag="archive_scope"):
    """A sub-agent put away."""

    scope_id: str


class RewindCall(RpcCall, frozen=True, kw_only=True, tag="rewind"):
    """Back to a checkpoint."""

    to_seq: int
    reason: str | None = None


class PostEventCall(RpcCall, frozen=True, kw_only=True, tag="tell"):
    """Something beside the conversation."""

    event: m.NoticePosted | m.CustomEvent


class DeleteCall(RpcCall, frozen=True, kw_only=True, tag="delete"):
    """The end of a session, and of its log."""


AnyCall = SubmitCall | UpdateCall | CloseCall | ArchiveScopeCall | RewindCall | PostEventCall | DeleteCall


class RpcFailure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error on its way to whoever asked."""

    name: str
    code: m.FaultCode
    message: str
    param: str | None = None
    details: dict[str, Any] | None = None
    retry_after: float | None = None


class RpcRequest(Struct, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A call, who makes it, and the word under which it is known however often it comes."""

    request: str
    sender: str
    call: AnyCall


class RpcReply(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="replied"):
    """What became of a call; `elsewhere` if the session has another writer."""

    request: str
    receipt: Receipt | None = None
    refused: RpcFailure | None = None
    elsewhere: bool = False


class OwnerChanged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="lost"):
    """Another server has claimed a session, with this token; written by the script that claims."""

    session_id: str
    token: int


ClusterMessage = RpcRequest | RpcReply | OwnerChanged
encode_message = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(ClusterMessage).decode
_ERRORS: dict[str, type[GatewayError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, GatewayError)
}


def error_to_message(error: GatewayError) -> RpcFailure:
    """The error as it travels: by the name of the nearest kind that every server knows."""
    name = next(kind.__name__ for kind in type(error).__mro__ if _ERRORS.get(kind.__name__) is kind)
    return RpcFailure(
        name=name, code=error.code, message=error.message, param=error.param, details=error.details,
        retry_after=error.retry_after,
    )


def error_from_message(refusal: RpcFailure) -> GatewayError:
    """The error as it arrives."""
    error = _ERRORS.get(refusal.name, GatewayError)(
        refusal.message, param=refusal.param, details=refusal.details, retry_after=refusal.retry_after)
    if error.code is not refusal.code:
        error.code = refusal.code  # type: ignore[misc]  # a kind of its own, of which only the code is known here
    return error


MessageSecretChange = Callable[[dict[str, Any]], dict[str, Any]]


def seal_message(letter: ClusterMessage, seal: Seal) -> ClusterMessage:
    return letter if seal is UNSEALED else _with_secrets(letter, seal.seal)


def unseal_message(letter: ClusterMessage, seal: Seal) -> ClusterMessage:
    return letter if seal is UNSEALED else _with_secrets(letter, seal.unseal)


def _with_secrets(letter: ClusterMessage, change: MessageSecretChange) -> ClusterMessage:
    """The same letter, whatever is secret in it changed: commands, a session's metadata, the records of a receipt."""
    match letter:
        case RpcRequest(call=SubmitCall(commands=commands) as call):
            told = tuple(m.command_with_secrets(command, change) for command in commands)
            return replace(letter, call=replace(call, commands=told))
        case RpcRequest(call=UpdateCall(metadata=metadata) as call) if metadata is not None:
            return replace(letter, call=replace(call, metadata=m.metadata_with_secrets(metadata, change)))
        case RpcReply(receipt=receipt) if receipt is not None:
            records = tuple(m.with_secrets(record, change) for record in receipt.records)
            return replace(letter, receipt=replaced(receipt, records=records))
    return letter
