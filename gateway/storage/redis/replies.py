"""The replies of the scripts that run in Redis, read into typed values."""

from collections.abc import Sequence
from typing import Any, Literal, cast

from msgspec import Struct

Reply = Any
"""What Redis answers: bytes, an integer, None, or a list of replies."""


class OwnerUsage(Struct, frozen=True):
    """How much an owner has, as Redis counts it; `sessions` is None where the script did not count them."""

    owner: str
    stored_bytes: int
    sessions: int | None


def _read_usage(fields: Sequence[Reply]) -> OwnerUsage | None:
    if not fields:
        return None
    owner, stored_bytes, sessions = fields
    return OwnerUsage(owner.decode(errors="surrogatepass"), stored_bytes, sessions if sessions >= 0 else None)


class Appended(Struct, frozen=True):
    """What became of the records of one session.

    They are stored (`ok`), or an earlier attempt has stored some (`at` some head), or they are refused: there are too
    many sessions (`full`), or too many of this owner (`sessions`), another server writes the session (`fenced`), or
    there is no such session (`gone`).
    """

    outcome: Literal["ok", "at", "full", "sessions", "fenced", "gone"]
    head: int
    usage: OwnerUsage | None


def read_appended(replies: Sequence[Reply]) -> tuple[int, list[Appended]]:
    """The replies of the script `append`: how many sessions there are, and what became of each one."""
    appended = [
        Appended(outcome.decode(), int(head), _read_usage(usage))
        for reply in replies for outcome, head, *usage in reply[1:]
    ]
    return replies[-1][0], appended


class Removed(Struct, frozen=True):
    """What became of a session that was to be removed, and how many sessions are left."""

    outcome: Literal["ok", "gone", "fenced"]
    session_count: int
    usage: OwnerUsage | None


def read_removed(reply: Reply) -> Removed:
    outcome, session_count, *usage = reply
    return Removed(outcome.decode(), session_count, _read_usage(usage))


class Claim(Struct, frozen=True):
    """What became of a claim: the session is `yours`, `held` by its owner, or `gone`; or your lease has `lapsed`."""

    outcome: Literal["yours", "held", "gone", "lapsed"]
    owner: str = ""
    token: str = ""
    head: int = 0


def read_claim(reply: Reply) -> Claim:
    outcome = reply[0].decode()
    if outcome == "yours":
        return Claim(outcome, token=reply[1].decode(), head=int(reply[2]))
    return Claim(outcome, owner=reply[1].decode() if outcome == "held" else "")


class Renewal(Struct, frozen=True):
    """What became of a lease: whether it was still good, and what Redis says of this server and all sessions."""

    was_good: bool
    leads: bool
    session_count: int
    is_to_drain: bool = False
    """Whether an operator has asked this server to drain and stop."""


def read_renewal(reply: Reply) -> Renewal:
    was_good, leads, session_count, is_to_drain = reply
    return Renewal(bool(was_good), bool(leads), session_count, bool(is_to_drain))


def read_session_ids(reply: Reply) -> list[str]:
    return [session_id.decode() for session_id in cast(list[bytes], reply)]
