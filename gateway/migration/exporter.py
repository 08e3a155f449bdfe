"""Exports sessions to a server whose protocol takes a history: each becomes a new session there."""

from collections.abc import Callable, Container
from enum import StrEnum

from msgspec import Struct

import gateway.model as m
from gateway.errors import ConnectionLost, GatewayError, ServerUnreachable
from gateway.ports import NewRemoteSession, Remote
from gateway.storage.log import LogFile


class ExportOutcome(StrEnum):
    """What became of a session."""

    EXPORTED = "exported"
    RUNNING = "running"
    FAILED = "failed"


EXPORT_TEXTS = {
    ExportOutcome.EXPORTED: "exported",
    ExportOutcome.RUNNING: "not exported, because a turn runs or waits in them",
    ExportOutcome.FAILED: "not exported, because the server failed",
}


class ExportLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the report: a session here, and its id at the server."""

    session_id: str
    outcome: ExportOutcome
    url: str
    their_id: str = ""
    messages: int = 0
    unseen: tuple[str, ...] = ()
    reason: str = ""


SUBAGENTS = "words of sub-agents"
PIECES = "files and pieces of data of agents"
TIMES = "times, ids, usage and titles: the new session begins now"


def history_of(view: m.SessionView) -> tuple[list[m.SeedMessage], tuple[str, ...]]:
    """The messages of people and of the agent itself, the results of its calls, and what is not in them."""
    messages, unseen = list[m.SeedMessage](), dict.fromkeys([TIMES])
    for entry in view.entries:
        if entry.scope_id != m.ROOT:
            unseen[SUBAGENTS] = None
            continue
        content = entry.content
        if entry.role is m.Role.ASSISTANT and not isinstance(content, str):
            kept = tuple(part for part in content if not isinstance(part, m.DataPart | m.FilePart))
            unseen |= {PIECES: None} if len(kept) < len(content) else {}
            content = kept
        if content or entry.role is m.Role.TOOL:
            messages.append(m.SeedMessage(role=entry.role, content=content, call_id=entry.call_id))
    return messages, tuple(unseen)


class ExportChoice(Struct, frozen=True, kw_only=True):
    """Which sessions are exported, and where to."""

    url: str
    owner: str = ""
    since: float | None = None
    done: Container[str] = frozenset()
    """The sessions that an earlier run has exported."""
    is_dry: bool = False


async def export_sessions_to(
    remote: Remote, file: LogFile, choice: ExportChoice, report: Callable[[ExportLine], None],
) -> None:
    """Make a session at the server of each session here; raises the error of a server that cannot be reached."""
    for head in file.heads():
        if head.owner != choice.owner or head.session_id in choice.done:
            continue
        if head.in_turn:
            report(ExportLine(session_id=head.session_id, outcome=ExportOutcome.RUNNING, url=choice.url))
            continue
        view = m.fold(head.session_id, file.records(head.session_id))
        if view.closed is not m.CloseReason.DELETED and (choice.since is None or view.updated_at >= choice.since):
            report(await _export(remote, view, choice))


async def _export(remote: Remote, view: m.SessionView, choice: ExportChoice) -> ExportLine:
    history, unseen = history_of(view)
    settings = m.Settings(client_tools=view.settings.client_tools, system=view.settings.system)
    their_id = ""
    try:
        if not choice.is_dry:
            their_id = await remote.open(NewRemoteSession(settings=settings, history=history, title=view.title))
    except (ServerUnreachable, ConnectionLost):
        raise
    except GatewayError as error:
        return ExportLine(
            session_id=view.session_id, outcome=ExportOutcome.FAILED, url=choice.url, reason=error.message)
    return ExportLine(
        session_id=view.session_id, outcome=ExportOutcome.EXPORTED, url=choice.url, their_id=their_id,
        messages=len(history), unseen=unseen,
    )
