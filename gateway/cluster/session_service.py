"""The session service of one server among several: any session can be asked for here, whoever holds it."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import structlog

import gateway.model as m
from gateway.engine import Session
from gateway.errors import GatewayError, NotFound, OutcomeUnknown, Overloaded
from gateway.ids import make_mint
from gateway.ports import Receipt
from gateway.storage.log.redis import LeaseLost
from gateway.storage.redis import RedisUnreachable

from .leases import OwnerUnknown
from .messages import (
    AnyCall,
    ArchiveScopeCall,
    CloseCall,
    DeleteCall,
    PostEventCall,
    RewindCall,
    RpcReply,
    RpcRequest,
    SubmitCall,
    UpdateCall,
    error_from_message,
    error_to_message,
)
from .remote_tailing import SessionCopies

log = structlog.get_logger("dragoman.cluster")

OWNER_CHANGES = "the session changes hands again and again; try again"
OWNER_SILENT = "the server that holds the session does not answer: it is not known whether this was done; look first"


class ClusterSessionService(SessionCopies):
    """What only a session's writer can do is done by it: here, if we hold it or nobody does; else by a call."""

    # -- what only the writer can do ------------------------------------------------------------------------------

    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        receipt = await self._routed(SubmitCall(owner=owner, session_id=session_id, commands=tuple(commands)))
        assert receipt is not None, "commands that were accepted have a receipt"
        return receipt

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: dict[str, Any] | None = None,
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

    async def client_left(self, owner: str, session_id: str, turn_id: str) -> None:
        if not self._runtime.cancel_on_disconnect:
            return
        with suppress(GatewayError):
            view = await self.get(owner, session_id)
            if view.turn_id == turn_id and view.status is not m.SessionStatus.IDLE:
                await self.submit(owner, session_id, [m.Interrupt(turn_id=turn_id)])

    async def _changed(self, call: AnyCall) -> m.SessionView:
        """The session after the call; who cannot be shown it is told that the call may have been carried out."""
        await self._routed(call)
        with self._taken():
            return await self.get(call.owner, call.session_id)

    # -- by whom --------------------------------------------------------------------------------------------------

    async def _routed(self, call: AnyCall) -> Receipt | None:
        """Do it once. Raises `Overloaded` if it was not begun, `OutcomeUnknown` if nobody can tell whether it was."""
        request, asked = secrets.token_hex(8), False
        loop, lease = asyncio.get_running_loop(), self._redis.lease
        deadline = loop.time() + self._patience
        while True:
            answer: RpcReply | None = None
            try:
                holder = await self._owner_of(call.session_id)
                if holder is None:
                    return await self._once(call, request) if asked else await self._here(call, request)
                asked = True
                answer = await self._post.ask(holder, request, call, lease / 2)
            except LeaseLost:
                self._drop_copy(call.session_id)
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
        """For how many seconds a call is tried."""
        return 2 * self._redis.lease + 2

    def _is_newly_ours(self, session_id: str) -> bool:
        """Whether a letter may have waited here while the writer before us carried it out."""
        taken_at = self._taken_at.get(session_id)
        return taken_at is not None and asyncio.get_running_loop().time() - taken_at < 2 * self._patience

    async def _once(self, call: AnyCall, request: str) -> Receipt | None:
        """Here, after another server was asked that did not answer: it may have done it all the same."""
        if isinstance(call, SubmitCall):
            return await self._receipt(call, request) or await self._here(call, request)
        try:
            with self._taken():
                return await self._here(call, request)
        except NotFound:
            if isinstance(call, DeleteCall):
                return None
            raise

    async def _receipt(self, call: SubmitCall, request: str) -> Receipt | None:
        """What the log tells of these commands, if it has them: their ids are made of the request."""
        session = await self._find(call.owner, call.session_id)
        if self._log.holds(call.session_id):
            await self._stored(session)
        spine = await self._log.read_without_deltas(call.session_id)
        found = [
            record for record in spine
            if isinstance(record.event, m.InputAccepted) and record.event.command_id.startswith(f"cmd_{request}")
        ]
        if not found:
            return None
        starts = [one for one in found if isinstance(one.event, m.InputAccepted)
                  and isinstance(one.event.command, m.SendMessage | m.Compact)]
        after = starts[-1].seq if starts else found[-1].seq
        resumed = any(isinstance(record.event, m.TurnResumed) and record.seq > found[0].seq for record in spine)
        return Receipt(turn_id=found[-1].turn_id, records=tuple(found), after=after, begun=bool(starts) or resumed)

    async def _here(self, call: AnyCall, request: str) -> Receipt | None:
        """As the writer of the session; raises `LeaseLost` if we are not."""
        owner, session_id = call.owner, call.session_id
        match call:
            case SubmitCall(commands=commands):
                return await self._submit(owner, session_id, commands, request)
            case UpdateCall(title=title, metadata=metadata, agent=agent):
                await super().update(owner, session_id, title=title, metadata=metadata, agent=agent)
            case CloseCall(reason=reason):
                await super().close(owner, session_id, reason)
            case ArchiveScopeCall(scope_id=scope_id):
                await super().archive_scope(owner, session_id, scope_id)
            case RewindCall(to_seq=to_seq, reason=why):
                await super().rewind(owner, session_id, to_seq, why)
            case PostEventCall(event=event):
                await super().post_event(owner, session_id, event)
            case DeleteCall():
                await super().delete(owner, session_id)
        return None

    async def _submit(
        self, owner: str, session_id: str, commands: Sequence[m.AnyCommand], request: str,
    ) -> Receipt:
        session = await self._find(owner, session_id)
        if not self._log.holds(session_id):
            raise LeaseLost("another server has taken the session over; ask again")
        receipt = session.submit(commands, make_mint(request))
        await self._stored(session)
        return receipt

    async def _stored(self, session: Session) -> None:
        """Come back when all that was taken is in the log."""
        with self._taken():
            await self._log.wait_stored(session.view.session_id, session.view.head)

    async def _serve(self, letter: RpcRequest, again: bool) -> RpcReply | None:
        request, session_id = letter.request, letter.call.session_id
        try:
            if self._runtime.is_draining:
                await self._hand_over(session_id)
            if await self._owner_of(session_id) is not None:
                return RpcReply(request=request, elsewhere=True)
            do = self._once if again or self._is_newly_ours(session_id) else self._here
            return RpcReply(request=request, receipt=await do(letter.call, request))
        except (LeaseLost, OwnerUnknown):
            self._drop_copy(session_id)
            return RpcReply(request=request, elsewhere=True)
        except OutcomeUnknown:
            return None
        except GatewayError as error:
            if again and isinstance(error, Overloaded):  # it came before, and may have been taken then
                return None
            return RpcReply(request=request, refused=error_to_message(error))
