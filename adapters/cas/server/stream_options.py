"""The options of one CAS stream or list: which thread, in which framing, with which previews, and from where."""

from pydantic import BaseModel

import gateway.model as m
from adapters.cas.wire import PreviewedType
from gateway import ports

from .agents import agent_id_of


class StreamOptions(ports.StreamOptions, frozen=True, kw_only=True):
    """What one subscriber asked for: a thread, previews, a place to resume; a list or a stream."""

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
    def reads_deltas(self) -> bool:
        """Whether a projector needs deltas: only a stream does, because a list has complete events only."""
        return not self.as_list


def session_stream_options(
    view: m.SessionView, thread: str | None, deltas: tuple[PreviewedType, ...] = (), *, as_list: bool
) -> StreamOptions:
    """How a session is read: previews are asked for by a connection, raw streaming belongs to the session."""
    own = view.private("cas")
    incremental = bool(own.get("incremental"))
    return StreamOptions(
        as_list=as_list, thread=thread, deltas=() if as_list else deltas, incremental=incremental,
        raw=incremental and not deltas and not as_list, agent=view.agent,
        agent_id=agent_id_of(view, own),
        agent_version=own.get("agent_version") or view.settings.agent_version or 1,
    )


def usual_stream_options(settings: BaseModel, view: m.SessionView) -> StreamOptions:
    """The options of a stream of the whole session, without previews."""
    return session_stream_options(view, None, as_list=False)


def preview_id(event_id: str, number: int) -> str:
    """The id of a preview, which is sent and not stored: a preview stands before all other events of its record."""
    return f"{event_id}-p{number}"


def thread_id_of(session_id: str, scope_id: str) -> str:
    """The id of the thread that shows a scope."""
    stem = session_id.rpartition("_")[2] if scope_id == m.ROOT else scope_id.removeprefix("scope_")
    return f"sthr_{stem}"
