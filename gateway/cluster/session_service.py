"""The session service of one server among several: serves every session, whichever server writes it.

What only the writer of a session can do is done here if this server writes it or no server does; otherwise the writer
is asked. Order of construction (`cluster_session_service`), each part from those above it:

    PubSub                   one connection, or one to each node, that receives what other servers publish
    SessionChannels          the channel of each session
    StreamRelay              from other servers to the subscribers of this one
    HeldSessions             the sessions that this server writes
    Leases                   ask HeldSessions to verify them when they may have run out
    SessionCache             loads held sessions (HeldSessions is its Ownership)
    SessionCopies            the source of all sessions: held ones from the cache, the others as copies
    Claims                   finds or becomes the writer of a session
    LocalSessionService      carries out commands on the sessions that SessionCopies finds
    ClusterSessionService    routes commands to the writer; its parts are RpcChannel, Inbox and Heartbeat

At last `log.attach(ClusterCommits)`: the log reports what it has stored, and what was lost.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress

import structlog

import gateway.model as m
from gateway.engine import (
    RANDOM_LENGTH,
    Cursor,
    Hub,
    KnownRequests,
    LocalSessionService,
    Runtime,
    Session,
    SessionCache,
    SessionCommits,
    SessionTable,
    find_session,
    is_keyed,
    keyed_request,
    unknown_unless_stored,
    wait_until_stored,
)
from gateway.errors import GatewayError, NotFound, OutcomeUnknown, Overloaded
from gateway.ids import make_mint
from gateway.json_values import JsonObject
from gateway.ports import NO_OPTIONS, Receipt, StreamOptions, StreamSlot
from gateway.storage.log.redis import LeaseLost, SharedLog
from gateway.storage.redis import PubSub, RedisClient, RedisUnreachable

from .leases import Claims, HeldSessions, OwnerUnknown
from .membership import Heartbeat, Leases
from .messages import (
    AnyCall,
    ArchiveScopeCall,
    CloseCall,
    DeleteCall,
    DeleteUnchangedCall,
    PostEventCall,
    RewindCall,
    RpcReply,
    RpcRequest,
    SubmitCall,
    UpdateCall,
    error_from_message,
    error_to_message,
)
from .overview import ReplicaReport, encode_report
from .rpc import MAX_KNOWN_CALLS, Inbox, RpcChannel
from .session_copies import ClusterCommits, SessionCopies
from .stream_relay import SessionChannels, StreamRelay

log = structlog.get_logger("dragoman.cluster")

OWNER_CHANGES = "the session moves between servers again and again; try again"
OWNER_SILENT = "the server that holds the session does not answer: it is not known whether this was done; look first"


class ClusterSessionService:
    """Routes commands to the server that writes their session; reads are answered by this server."""

    def __init__(
        self, runtime: Runtime, hub: Hub, log: SharedLog, pubsub: PubSub, channels: SessionChannels,
        held: HeldSessions, leases: Leases, copies: SessionCopies, claims: Claims, local: LocalSessionService,
        stop: Callable[[], None],
    ) -> None:
        self._stop = stop
        self._runtime = runtime
        self._hub = hub
        self._log = log
        self._redis = log.redis
        self._pubsub = pubsub
        self._held = held
        self._leases = leases
        self._copies = copies
        self._claims = claims
        self._local = local
        self._cut_off = set[RedisClient]()
        """The parts of Redis that do not answer, and whose streams were cut therefore."""
        self._known = KnownRequests(log)
        self._keyed: dict[str, None] = {}
        """Requests with an idempotency key whose commands were given to their session here."""
        self.rpc = RpcChannel(self._redis, self._serve, log.seal)
        self.inbox = Inbox(self._redis, log.seal, self.rpc, channels, held, leases, copies)
        self.heartbeat = Heartbeat(leases, self._after_beat, self._after_missed_beat)
        self.create, self.replace_backend, self.check_turn = local.create, local.replace_backend, local.check_turn
        self.release = held.hand_over_all
        self.get, self.find_by_id, self.active, self.list = local.get, local.find_by_id, local.active, local.list
        self.find, self.heads, self.head, self.records = local.find, local.heads, local.head, local.records
        self.created_between = local.created_between
        self.reserve_stream, self.read = local.reserve_stream, local.read
        self.resume_place = local.resume_place

    # -- from the start of the server to its end ------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this server does the work that only one of several servers may do."""
        return self._leases.first.is_leader

    async def join(self) -> None:
        """Become a member of the cluster, without a heartbeat: each call renews the lease if it has to."""
        await self._pubsub.start(self.inbox, *self.inbox.addresses)
        self._copies.start()
        await self._leases.renew()

    async def recover(self) -> int:
        """Become a member of the cluster, and take over the open turns of dead servers; return how many."""
        await self.join()
        taken = await self._claims.take_over(self._redis.parts)
        self.heartbeat.start()
        return taken

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Let other servers write the idle sessions; then let running turns finish."""
        self._runtime.is_draining = True
        await self._held.hand_over_all()
        await self._local.drain(seconds, hurry)

    async def rest(self) -> None:
        """Store what is left, and leave the cluster."""
        await self.rpc.close()
        await self._log.flush()
        await self.heartbeat.stop()
        await self._leases.end()
        self._held.close()
        await self._pubsub.close()
        self._copies.close()

    async def _after_beat(self) -> None:
        self._cut_off = {part for part in self._cut_off if self._leases.in_part(part).silence}
        if self._leases.first.is_to_drain and not self._runtime.is_draining:
            log.warning("drain_requested", replica=self._redis.replica)
            self._stop()
        self._pubsub.poke()
        for part, lease in zip(self._log.parts, self._leases.parts, strict=True):
            part.session_count = lease.session_count
        await self._log.recount()
        if not self._runtime.is_draining:
            steady = [part for part in self._redis.parts if self._leases.in_part(part).is_steady]
            if taken := await self._claims.take_over(steady):
                log.warning("sessions_taken_over", sessions=taken)
            await self._claims.claim_doubtful()
        self._copies.adjust_channels()
        if self._redis.address.wait:  # else Redis announces what it stores in the same step
            await self._copies.read_unannounced()

    def _after_missed_beat(self) -> None:
        """If Redis has not answered for as long as a lease lasts, cut the streams: clients may find a better server."""
        self._pubsub.poke()
        for part in self._redis.parts:
            if part not in self._cut_off and self._leases.in_part(part).silence > self._redis.lease:
                self._cut_off.add(part)
                self._hub.cut(part.covers)

    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = NO_OPTIONS, *, after: int = 0,
        place: StreamSlot | None = None,
    ) -> Cursor:
        cursor = await self._local.subscribe(owner, session_id, dialect, options, after=after, place=place)
        if not self._held.holds(session_id):
            try:
                await self._copies.follow(session_id)
            except BaseException:
                cursor.close()
                raise
        return cursor

    async def import_session(
        self, owner: str, records: Sequence[m.Record], *, session_id: str | None = None,
    ) -> m.SessionView:
        if session_id is not None:
            await self._leases.of(session_id).ensure_good()
        return await self._local.import_session(owner, records, session_id=session_id)

    # -- what only the writer of a session can do -----------------------------------------------------------------

    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        receipt = await self._routed(SubmitCall(owner=owner, session_id=session_id, commands=tuple(commands)))
        assert receipt is not None, "commands that were accepted have a receipt"
        return receipt

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: JsonObject | None = None,
        agent: str | None = None,
    ) -> m.SessionView:
        return await self._changed(
            UpdateCall(owner=owner, session_id=session_id, title=title, metadata=metadata, agent=agent))

    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        return await self._changed(CloseCall(owner=owner, session_id=session_id, reason=reason))

    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> m.SessionView:
        return await self._changed(ArchiveScopeCall(owner=owner, session_id=session_id, scope_id=scope_id))

    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = None) -> m.SessionView:
        return await self._changed(RewindCall(owner=owner, session_id=session_id, to_seq=to_seq, reason=reason))

    async def post_event(self, owner: str, session_id: str, event: m.NoticePosted | m.CustomEvent) -> m.SessionView:
        return await self._changed(PostEventCall(owner=owner, session_id=session_id, event=event))

    async def delete(self, owner: str, session_id: str) -> None:
        await self._routed(DeleteCall(owner=owner, session_id=session_id))

    async def delete_unchanged(self, owner: str, session_id: str, head: int) -> None:
        await self._routed(DeleteUnchangedCall(owner=owner, session_id=session_id, head=head))

    async def client_left(self, owner: str, session_id: str, turn_id: str) -> None:
        if not self._runtime.cancel_on_disconnect:
            return
        with suppress(GatewayError):
            view = await self.get(owner, session_id)
            if view.turn_id == turn_id and view.status is not m.SessionStatus.IDLE:
                await self.submit(owner, session_id, [m.Interrupt(turn_id=turn_id)])

    async def _changed(self, call: AnyCall) -> m.SessionView:
        """The session after the call; raises `OutcomeUnknown` if it cannot be read after the call was carried out."""
        await self._routed(call)
        with unknown_unless_stored():
            return await self.get(call.owner, call.session_id)

    # -- routing --------------------------------------------------------------------------------------------------

    async def _routed(self, call: AnyCall) -> Receipt | None:
        """Have the call carried out once; raises `Overloaded` if it was not, `OutcomeUnknown` if that is not known."""
        keyed = keyed_request(call) if isinstance(call, SubmitCall) else None
        request, asked = keyed or secrets.token_hex(RANDOM_LENGTH // 2), False
        loop, lease = asyncio.get_running_loop(), self._redis.lease
        deadline = loop.time() + self._patience
        while True:
            answer: RpcReply | None = None
            try:
                holder = await self._claims.owner_of(call.session_id)
                if holder is None:
                    may_be_done = asked or is_keyed(request)
                    return await self._once(call, request) if may_be_done else await self._here(call, request)
                asked = True
                answer = await self.rpc.ask(holder, request, call, lease / 2)
            except LeaseLost:
                self._held.drop_copy(call.session_id)
            except (RedisUnreachable, OwnerUnknown):
                if not asked:
                    raise
            if answer is not None and answer.refused is not None:
                raise error_from_message(answer.refused)
            if answer is not None and not answer.elsewhere:
                return answer.receipt
            if loop.time() > deadline or self._runtime.is_draining:
                raise OutcomeUnknown(OWNER_SILENT) if asked else Overloaded(OWNER_CHANGES)
            await asyncio.sleep(lease / 100)

    @property
    def _patience(self) -> float:
        """For how many seconds a call is tried again."""
        return 2 * self._redis.lease + 2

    async def _once(self, call: AnyCall, request: str) -> Receipt | None:
        """Carry the call out here, unless this server or one that was asked and did not answer has carried it out."""
        if isinstance(call, SubmitCall):
            done = await self._receipt(call.owner, call.session_id, request)
            return done or await self._here(call, request)
        try:
            with unknown_unless_stored():
                return await self._here(call, request)
        except NotFound:
            if isinstance(call, DeleteCall):
                return None
            raise

    async def _receipt(self, owner: str, session_id: str, request: str) -> Receipt | None:
        """The receipt of these commands, if the log has them: their ids begin with the id of the request."""
        session = await find_session(self._copies, owner, session_id)
        if self._held.holds(session_id):
            await self._stored(session)
        return await self._known.receipt(session_id, request)

    async def _here(self, call: AnyCall, request: str) -> Receipt | None:
        """Carry the call out as the writer of the session; raises `LeaseLost` if this server is not."""
        owner, session_id = call.owner, call.session_id
        match call:
            case SubmitCall(commands=commands):
                return await self._submit(owner, session_id, commands, request)
            case UpdateCall(title=title, metadata=metadata, agent=agent):
                await self._local.update(owner, session_id, title=title, metadata=metadata, agent=agent)
            case CloseCall(reason=reason):
                await self._local.close(owner, session_id, reason)
            case ArchiveScopeCall(scope_id=scope_id):
                await self._local.archive_scope(owner, session_id, scope_id)
            case RewindCall(to_seq=to_seq, reason=why):
                await self._local.rewind(owner, session_id, to_seq, why)
            case PostEventCall(event=event):
                await self._local.post_event(owner, session_id, event)
            case DeleteCall():
                await self._local.delete(owner, session_id)
            case DeleteUnchangedCall(head=head):
                await self._local.delete_unchanged(owner, session_id, head)
        return None

    async def _submit(
        self, owner: str, session_id: str, commands: Sequence[m.AnyCommand], request: str,
    ) -> Receipt:
        session = await find_session(self._copies, owner, session_id)
        if not self._held.holds(session_id):
            raise LeaseLost("another server has taken the session over; ask again")
        if request in self._keyed:  # the client has repeated its request at another server
            done = await self._receipt(owner, session_id, request)
            if done is not None:
                return done
            self._keyed.pop(request, None)  # the commands were not stored
            return await self._submit(owner, session_id, commands, request)
        if is_keyed(request):
            self._remember(request)
        try:
            receipt = session.submit(commands, make_mint(request))
        except GatewayError:
            self._keyed.pop(request, None)
            raise
        await self._stored(session)
        return receipt

    def _remember(self, request: str) -> None:
        self._keyed[request] = None
        if len(self._keyed) > MAX_KNOWN_CALLS:
            del self._keyed[next(iter(self._keyed))]

    async def _stored(self, session: Session) -> None:
        """Return when all records of the session are stored."""
        await wait_until_stored(self._log, session.view.session_id, session.view.head)

    async def _serve(self, message: RpcRequest, again: bool) -> RpcReply | None:
        """Carry out what another server asks for; None if it is not known yet whether that was done."""
        request, session_id = message.request, message.call.session_id
        try:
            if self._runtime.is_draining:
                await self._held.hand_over(session_id)
            if await self._claims.owner_of(session_id) is not None:
                return RpcReply(request=request, elsewhere=True)
            # a request may have waited here while the writer before this server carried it out
            is_new = self._claims.was_claimed_within(session_id, 2 * self._patience)
            carry_out = self._once if again or is_new or is_keyed(request) else self._here
            return RpcReply(request=request, receipt=await carry_out(message.call, request))
        except (LeaseLost, OwnerUnknown):
            self._held.drop_copy(session_id)
            return RpcReply(request=request, elsewhere=True)
        except OutcomeUnknown:
            return None
        except GatewayError as error:
            if again and isinstance(error, Overloaded):  # the request came before, and may have been accepted then
                return None
            return RpcReply(request=request, refused=error_to_message(error))


def cluster_session_service(
    runtime: Runtime, table: SessionTable, hub: Hub, log: SharedLog, stop: Callable[[], None] = lambda: None,
) -> ClusterSessionService:
    """The session service of one of several servers, attached to the log that they share.

    `stop` is called when an operator has asked this server to drain.
    """
    redis, started_at = log.redis, runtime.clock()

    def report() -> bytes:
        return encode_report(ReplicaReport(
            name=redis.name, started_at=started_at, sessions=len(log.held), turns=table.turn_count,
            streams=hub.subscribers, redis_ms=leases.first.redis_ms, failovers=redis.failovers,
            is_draining=runtime.is_draining))

    pubsub = redis.pubsub()
    channels, relay = SessionChannels(pubsub, redis), StreamRelay(hub)
    held = HeldSessions(runtime, table, hub, log, channels, relay)
    leases = Leases(redis, held.verify, report)
    cache = SessionCache(runtime, table, hub, held)
    copies = SessionCopies(runtime, hub, log, cache, held, leases, channels, relay)
    claims = Claims(runtime, cache, log, held, leases)
    local = LocalSessionService(runtime, cache, copies, hub)
    commits = ClusterCommits(SessionCommits(table, hub, runtime.tracer), held, copies)
    log.attach(commits, commits)
    return ClusterSessionService(runtime, hub, log, pubsub, channels, held, leases, copies, claims, local, stop)
