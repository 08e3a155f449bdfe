"""The messages between servers, which travel through Redis with sealed secrets: requests, replies and lost sessions."""

from collections.abc import Callable
from dataclasses import replace as replaced

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import gateway.model as m
from gateway import errors
from gateway.errors import GatewayError
from gateway.json_values import JsonObject
from gateway.ports import Receipt
from gateway.storage import UNSEALED, Seal


class RpcCall(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """A call that only the writer of the session can carry out."""

    owner: str
    session_id: str


class SubmitCall(RpcCall, frozen=True, kw_only=True, tag="submit"):
    """Submit commands, which are accepted or refused together."""

    commands: tuple[m.AnyCommand, ...]


class UpdateCall(RpcCall, frozen=True, kw_only=True, tag="update"):
    """Change the title, the metadata or the agent."""

    title: str | None = None
    metadata: JsonObject | None = None
    agent: str | None = None


class CloseCall(RpcCall, frozen=True, kw_only=True, tag="close"):
    """Close the session, which can still be read."""

    reason: m.CloseReason


class ArchiveScopeCall(RpcCall, frozen=True, kw_only=True, tag="archive_scope"):
    """Archive a sub-agent."""

    scope_id: str


class RewindCall(RpcCall, frozen=True, kw_only=True, tag="rewind"):
    """Rewind the session to a checkpoint."""

    to_seq: int
    reason: str | None = None


class PostEventCall(RpcCall, frozen=True, kw_only=True, tag="tell"):
    """Append an event beside the conversation."""

    event: m.NoticePosted | m.CustomEvent


class DeleteCall(RpcCall, frozen=True, kw_only=True, tag="delete"):
    """Delete the session and its log."""


class DeleteUnchangedCall(RpcCall, frozen=True, kw_only=True, tag="delete_unchanged"):
    """Delete the session and its log if that is still its last record."""

    head: int


AnyCall = (
    SubmitCall | UpdateCall | CloseCall | ArchiveScopeCall | RewindCall | PostEventCall | DeleteCall
    | DeleteUnchangedCall
)


class RpcFailure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as part of a reply."""

    name: str
    code: m.FaultCode
    message: str
    param: str | None = None
    details: JsonObject | None = None
    retry_after: float | None = None


class RpcRequest(Struct, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A call, its sender, and the id of the request, which stays the same if the request is sent again."""

    request: str
    sender: str
    call: AnyCall
    traceparent: str = ""
    """The trace of the client's request."""


class RpcReply(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="replied"):
    """What became of a call; `elsewhere` means that another server writes the session."""

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
    """The error as a message, with the name of the nearest class that every server knows."""
    name = next(kind.__name__ for kind in type(error).__mro__ if _ERRORS.get(kind.__name__) is kind)
    return RpcFailure(
        name=name, code=error.code, message=error.message, param=error.param, details=error.details,
        retry_after=error.retry_after,
    )


def error_from_message(refusal: RpcFailure) -> GatewayError:
    """The error of a message."""
    error = _ERRORS.get(refusal.name, GatewayError)(
        refusal.message, param=refusal.param, details=refusal.details, retry_after=refusal.retry_after)
    if error.code is not refusal.code:
        error.code = refusal.code  # type: ignore[misc]  # a class of its own, of which only the code is known here
    return error


MessageSecretChange = Callable[[JsonObject], JsonObject]


def seal_message(message: ClusterMessage, seal: Seal) -> ClusterMessage:
    return message if seal is UNSEALED else _with_secrets(message, seal.seal)


def unseal_message(message: ClusterMessage, seal: Seal) -> ClusterMessage:
    return message if seal is UNSEALED else _with_secrets(message, seal.unseal)


def _with_secrets(message: ClusterMessage, change: MessageSecretChange) -> ClusterMessage:
    """The message with its secrets changed: in commands, in metadata and in the records of a receipt."""
    match message:
        case RpcRequest(call=SubmitCall(commands=commands) as call):
            sealed = tuple(m.command_with_secrets(command, change) for command in commands)
            return replace(message, call=replace(call, commands=sealed))
        case RpcRequest(call=UpdateCall(metadata=metadata) as call) if metadata is not None:
            return replace(message, call=replace(call, metadata=m.metadata_with_secrets(metadata, change)))
        case RpcReply(receipt=receipt) if receipt is not None:
            records = tuple(m.with_secrets(record, change) for record in receipt.records)
            return replace(message, receipt=replaced(receipt, records=records))
    return message
