"""What this server receives from the others: requests, replies, lost sessions, and records of watched sessions."""

from gateway.storage import Seal
from gateway.storage.redis import RedisClient

from . import messages
from .leases import HeldSessions
from .membership import Lease
from .messages import OwnerChanged, RpcReply, RpcRequest, unseal_message
from .rpc import RpcChannel
from .session_copies import SessionCopies
from .stream_relay import SessionChannels


class Inbox:
    """Passes each message on to the part of the cluster that it is for."""

    def __init__(
        self, redis: RedisClient, seal: Seal, rpc: RpcChannel, channels: SessionChannels, held: HeldSessions,
        lease: Lease, copies: SessionCopies,
    ) -> None:
        self.address = redis.key("to", redis.replica)
        """The channel on which other servers write to this one."""
        self._seal = seal
        self._rpc = rpc
        self._channels = channels
        self._held = held
        self._lease = lease
        self._copies = copies

    def received(self, channel: str, message: bytes) -> None:
        if channel == self.address:
            self._read(message)
        else:
            self._copies.received(self._channels.session_of(channel), message)

    def _read(self, message: bytes) -> None:
        match unseal_message(messages.decode_message(message), self._seal):
            case RpcRequest() as request:
                if not self._lease.has_slept:  # the request may be old, and its sender has asked another server
                    self._rpc.asked(request)
            case RpcReply() as reply:
                self._rpc.replied(reply)
            case OwnerChanged(session_id=session_id, token=token):
                self._held.lose_if_overtaken(session_id, token)

    def missed(self) -> None:
        """The connection was broken: messages and records may be lost."""
        self._lease.doubt()
        self._copies.read_all_again()
