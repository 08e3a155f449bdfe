"""How one client reads a session: which thread, in which framing, with which previews, and from where."""


import msgspec
from msgspec import Struct

import gateway.model as m
from adapters.cas.wire import PreviewedType

from .agents import configured_id


class StreamOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a projector must know beside the records; as a `word` it tells which readers can share one."""

    as_list: bool = False
    """Events as they stand in a list, instead of on a stream."""
    thread: str | None = None
    """The scope to be read; None is the session as a whole."""
    deltas: tuple[PreviewedType, ...] = ()
    """Which events are previewed on this connection."""
    incremental: bool = False
    """Whether the session was made for raw streaming: an agent.message then follows its message's last raw event."""
    raw: bool = False
    """Whether this connection gets the raw stream."""
    agent: str = ""
    agent_id: str = ""
    agent_version: int = 1
    past: tuple[int, str] | None = None
    """Of the record at that place, only what follows the event of that id."""
    muted: tuple[int, int] | None = None
    """The block that began at the first place is not previewed before the second."""

    @property
    def word(self) -> str:
        return _encode(self).decode()


def decode_options(word: str) -> StreamOptions:
    return _decode(word) if word else StreamOptions()


def session_stream_options(
    view: m.SessionView, thread: str | None, deltas: tuple[PreviewedType, ...] = (), *, as_list: bool
) -> StreamOptions:
    """How a session is read: previews are asked for by a connection, raw streaming belongs to the session."""
    own = view.private("cas")
    incremental = bool(own.get("incremental"))
    return StreamOptions(
        as_list=as_list, thread=thread, deltas=() if as_list else deltas, incremental=incremental,
        raw=incremental and not deltas and not as_list, agent=view.agent,
        agent_id=own.get("agent_id") or configured_id(view.agent), agent_version=own.get("agent_version") or 1,
    )


def preview_id(event_id: str, number: int) -> str:
    """The id of what is told and not kept: it stands before whatever else the record has to tell."""
    return f"{event_id}-p{number}"


def thread_id_of(session_id: str, scope_id: str) -> str:
    """A scope's name as a thread."""
    stem = session_id.rpartition("_")[2] if scope_id == m.ROOT else scope_id.removeprefix("scope_")
    return f"sthr_{stem}"


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StreamOptions).decode
