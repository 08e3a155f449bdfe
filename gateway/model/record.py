"""An event as the log keeps it: numbered, timed and placed by the engine, never by a backend."""

import msgspec
from msgspec import Struct

from .events import AnyEvent
from .vocabulary import ROOT

MODEL_VERSION = 1
"""Stored beside every log, so that an old one can still be read after the model has grown."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event in its place: `seq` is dense per session and starts at 1; `at` is seconds since the epoch."""

    seq: int
    at: float
    session_id: str
    event: AnyEvent
    turn_id: str | None = None
    scope_id: str = ROOT

    @property
    def event_id(self) -> str:
        """Made from the record itself, so that replay gives the same id and the hot path makes none."""
        return f"evt_{self.session_id.rpartition('_')[2]}_{self.seq}"


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Record).decode
