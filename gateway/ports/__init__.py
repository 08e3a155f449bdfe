"""The protocols between rooms: what a backend, a log, a dialect and the session service promise each other."""

from .addresses import Addresses
from .agents import Backend, Confined, Forgetting, Resuming, Said, Scoped, Telling, Turn
from .callers import NOBODY, Caller, Role
from .clock import Clock
from .dialects import Dialect, Outbound, Skipping
from .logs import EventLog, OnCommit, OnTrouble, SessionHead
from .resources import (
    AnswerPlace,
    Answers,
    Files,
    IssuedKey,
    KeptAnswer,
    KeyRing,
    Link,
    Resource,
    Resources,
    Stored,
    Tokens,
)
from .sessions import Chunk, Place, Receipt, Replays, ReplayState, Sessions, Subscription

__all__ = [
    "NOBODY",
    "Addresses",
    "AnswerPlace",
    "Answers",
    "Backend",
    "Caller",
    "Chunk",
    "Clock",
    "Confined",
    "Dialect",
    "EventLog",
    "Files",
    "Forgetting",
    "IssuedKey",
    "KeptAnswer",
    "KeyRing",
    "Link",
    "OnCommit",
    "OnTrouble",
    "Outbound",
    "Place",
    "Receipt",
    "ReplayState",
    "Replays",
    "Resource",
    "Resources",
    "Resuming",
    "Role",
    "Said",
    "Scoped",
    "SessionHead",
    "Sessions",
    "Skipping",
    "Stored",
    "Subscription",
    "Telling",
    "Tokens",
    "Turn",
]
