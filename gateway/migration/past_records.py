"""Makes the records of a session of ours from what another server has of it, and marks where it came from."""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.remote import SessionLink
from gateway.ids import make_mint
from gateway.ports import PastSession, PastTurn, RemoteAsk, RemoteTurnEnd

if TYPE_CHECKING:
    from gateway.translate import RecordComposer

METADATA_KEY = "import"
"""The key of the mark in a session's private metadata."""
KEPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
"""The ids that every dialect can show and take in a path; another id is replaced by one made from it."""


class Origin(Struct, frozen=True, kw_only=True):
    """The server that sessions come from: its dialect and its address."""

    dialect: str
    url: str

    def own_id(self, session_id: str) -> str:
        """The id of the session here: its old one or, where that cannot be kept, always the same other one."""
        if KEPT_ID.fullmatch(session_id):
            return session_id
        return f"sess_{hashlib.sha256(f'{self.dialect} {self.url} {session_id}'.encode()).hexdigest()[:24]}"


class ImportMark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a session came from, as it is stored in its private metadata."""

    dialect: str
    url: str
    session_id: str
    """The id there."""
    head: int = 0
    """The number of the last record that was imported: the session has gone on here if it has more."""
    updated_at: float | None = None
    """When the session was last changed there."""
    run: str = ""
    """The run that imported it."""
    unseen: tuple[str, ...] = ()
    """What could not be seen or kept."""

    @classmethod
    def of(cls, record: m.Record) -> "ImportMark | None":
        """The mark in the first record of a session; None if the session was not imported."""
        event = record.event
        private = event.metadata.get(m.PRIVATE) if isinstance(event, m.SessionCreated) else None
        found = private.get(METADATA_KEY) if isinstance(private, dict) else None
        try:
            return None if found is None else convert(found, cls)
        except ValidationError:
            return None


class Destination(Struct, frozen=True, kw_only=True):
    """Whose sessions the imported ones become here, and which agent they have."""

    owner: str = ""
    agent: str
    agents: frozenset[str] = frozenset()
    """The agents here: a session keeps the name of its agent if there is an agent of that name."""

    def agent_of(self, past: PastSession) -> str:
        return past.session.agent if past.session.agent in self.agents and past.session.agent else self.agent


def make_records(past: PastSession, origin: Origin, to: Destination, now: float, run: str = "") -> list[m.Record]:
    """The records of the session. Raises `GrammarError` if the server's history contradicts itself.

    A turn that was open at the server ends as interrupted. The session is linked to the server's, so that an agent of
    the kind `remote` with this address continues there.
    """
    session_id, records = origin.own_id(past.session.session_id), list[m.Record]()
    created = m.SessionCreated(
        agent=to.agent_of(past), owner=to.owner, title=past.session.title, metadata=dict(past.metadata),
        settings=past.settings, history=tuple(past.history),
    )
    from gateway.translate import RecordComposer  # few servers need it, and it brings the recordings along

    mint = make_mint(hashlib.sha256(session_id.encode()).hexdigest()[:12])
    composer = RecordComposer(session_id, mint, records.append, created)
    at = _start(past, now)
    composer.begin(at)
    for turn in past.turns:
        at = _compose_turn(composer, turn, at)
        composer.finish(at)
    mark = ImportMark(
        dialect=origin.dialect, url=origin.url, session_id=past.session.session_id, head=len(records),
        updated_at=past.session.updated_at, run=run, unseen=tuple(past.unseen),
    )
    link = SessionLink(
        upstream_session=past.session.session_id, upstream_url=origin.url, upstream_dialect=origin.dialect)
    metadata = link.stored(created.metadata)
    private = {**metadata[m.PRIVATE], METADATA_KEY: to_builtins(mark)}  # type: ignore[dict-item]  # `stored` made it
    records[0] = replace(records[0], event=replace(created, metadata={**metadata, m.PRIVATE: private}))
    changed = past.session.updated_at
    if changed is not None and records[-1].at < changed <= now:
        records[-1] = replace(records[-1], at=changed)
    return records


def _start(past: PastSession, now: float) -> float:
    times = (item.at for turn in past.turns for item in turn.items)
    found = past.session.created_at, next((at for at in times if at is not None), None), past.session.updated_at
    return min(now, next((at for at in found if at is not None), now))


def _compose_turn(composer: "RecordComposer", turn: PastTurn, at: float) -> float:
    """The time of its last item."""
    composer.name_turn(turn.turn_id)
    ended, asked_at = RemoteTurnEnd(), at
    for past in turn.items:
        at, item = at if past.at is None else past.at, past.item
        if isinstance(item, m.COMMANDS):
            if isinstance(item, m.ANSWERS):
                composer.waits(asked_at)
            composer.add_command(item, at, item.message_id if isinstance(item, m.SendMessage) else None)
            if isinstance(item, m.SendMessage | m.Compact):
                composer.resume(at)
            continue
        if isinstance(item, m.MessageEnded):
            ended = _end_after(item)
        asked_at = at if isinstance(item, RemoteAsk) else asked_at
        composer.add_item(item, at)  # type: ignore[arg-type]  # commands, which mypy does not tell apart, are above
    if composer.is_suspended or (composer.runs and composer.asks):
        ended = RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)
    if composer.runs or composer.is_suspended:
        composer.add_item(ended, at)
    return at


def _end_after(message: m.MessageEnded) -> RemoteTurnEnd:
    """How a turn ended whose end the server does not tell: as its last message."""
    if message.outcome is m.Outcome.COMPLETED:
        return RemoteTurnEnd()
    fault = m.Fault(code=m.FaultCode.BACKEND, message="The turn failed at the server that it was imported from.")
    return RemoteTurnEnd(
        outcome=message.outcome, stop_reason=message.stop_reason,
        fault=fault if message.outcome is m.Outcome.FAILED else None,
    )


def count_turns(records: Sequence[m.Record]) -> int:
    return sum(isinstance(record.event, m.TurnStarted) for record in records)
