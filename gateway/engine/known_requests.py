"""Finds the commands of a request in the log of their session, so that a repeated request is carried out once."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

import gateway.model as m
from gateway.ports import CURRENT_IDEMPOTENCY_KEY, EventLog, Receipt

KEYED = "k"
"""The ids of requests with an idempotency key begin with this letter, which no random id does."""
RANDOM_LENGTH = KEY_LENGTH = 16
"""How many characters a random id of a request has, and how many follow the letter of one with a key."""
COMMAND = "cmd_"
MAX_SESSIONS = 1000
"""How many sessions are kept in mind; the one that was asked about longest ago is forgotten first."""


def keyed_request(call: object) -> str | None:
    """The id of a request with an idempotency key, equal at every server and each time; None if there is no key.

    `call` is what is asked for: another request under the key is told by it.
    """
    key = CURRENT_IDEMPOTENCY_KEY.get()
    if key is None:
        return None
    return KEYED + sha256(msgspec.msgpack.encode((key, call))).hexdigest()[:KEY_LENGTH]


def is_keyed(request: str) -> bool:
    return request.startswith(KEYED)


def request_of(command_id: str) -> str:
    """The id of the request that a command came with: the beginning of the command's own id."""
    name = command_id.removeprefix(COMMAND)
    return name[:len(KEYED) + KEY_LENGTH if is_keyed(name) else RANDOM_LENGTH]


@dataclass(slots=True)
class SessionRequests:
    """The requests of one session: the record of the first command of each, up to the record that was read last."""

    upto: int = 0
    places: dict[str, int] = field(default_factory=dict)

    def take(self, records: Sequence[m.Record]) -> None:
        for record in records:
            if isinstance(record.event, m.InputAccepted):
                self.places.setdefault(request_of(record.event.command_id), record.seq)
        self.upto = max(self.upto, records[-1].seq if records else 0)


class KnownRequests:
    """Reads each record of a session once, however many requests are looked for in it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._sessions: OrderedDict[str, SessionRequests] = OrderedDict()

    async def receipt(self, session_id: str, request: str) -> Receipt | None:
        """The receipt of the commands of a request; None if the log has none of them."""
        known = self._sessions.setdefault(session_id, SessionRequests())
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        known.take(await self._log.read_without_deltas(session_id, known.upto))
        place = known.places.get(request)
        return None if place is None else _receipt(await self._log.read_without_deltas(session_id, place - 1), request)


def _receipt(spine: Sequence[m.Record], request: str) -> Receipt:
    """The receipt of commands, of which the first is the first of these records."""
    found = [record for record in spine
             if isinstance(record.event, m.InputAccepted) and request_of(record.event.command_id) == request]
    starts = [record for record in found if isinstance(record.event, m.InputAccepted)
              and isinstance(record.event.command, m.SendMessage | m.Compact)]
    resumed = any(isinstance(record.event, m.TurnResumed) for record in spine)
    after = (starts or found)[-1].seq
    return Receipt(turn_id=found[-1].turn_id, records=tuple(found), after=after, begun=bool(starts) or resumed)
