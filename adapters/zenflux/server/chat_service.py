"""Starts and stops runs, for the chat socket and for HTTP."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux.wire import LOCAL_USER, ChatSend, ZenfluxSettings
from gateway.errors import Busy, GatewayError, Invalid, NotFound
from gateway.http import Context
from gateway.ports import Receipt, Resource, SessionFilter

from . import inbound, views
from .agents import choose_agent, default_agent
from .views import private_metadata, with_user_id

TITLE_GENERATION = "title_generation"
UPLOAD_LINK = "link"
"""Under this name a stored file keeps the address that its upload was answered with."""
TITLE_SOURCE_LENGTH = 10_000
"""How many characters of a message are looked at for a title."""
RECORDS_PER_PAGE = 512


class ConversationNotFound(NotFound):
    """The client named a conversation that is not there, or not for them."""


class FileNotFound(NotFound):
    """The client named a file that is not there, or not for them."""


@contextmanager
def conversation_errors(conversation_id: str) -> Iterator[None]:
    """The texts of errors in ZenFlux: a session is a conversation here."""
    try:
        yield
    except NotFound:
        raise ConversationNotFound(f"there is no conversation '{conversation_id}'") from None
    except Busy:
        raise Busy("a session is running in this conversation; wait for its end, or stop it") from None


@dataclass(frozen=True, slots=True)
class CheckedMessage:
    """A message that was found to be in order, and has changed nothing yet."""

    owner: str
    body: ChatSend
    agent: str
    """The agent of the settings that runs the message."""
    settings: m.Settings | None
    """The settings of the agent that the client has chosen; None if the conversation keeps its own."""
    view: m.SessionView | None
    command: m.AnyCommand


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run, the conversation it is in, and how that was just before the run."""

    view: m.SessionView
    before: m.SessionView
    receipt: Receipt
    named: str | None
    """The client's id of its message, if it has one."""

    @property
    def run_id(self) -> str:
        assert self.receipt.turn_id is not None, "a message begins a turn"
        return self.receipt.turn_id

    @property
    def message_id(self) -> str:
        """The id of the person's message, which is the client's if it names one; the model names the reply."""
        begun: m.InputAccepted | m.TurnStarted = self.receipt.records[0].event  # type: ignore[assignment]
        return self.named or begun.command_id


class StoppedRun(NamedTuple):
    """A run that is over, or is about to be: how it ended, and when."""

    run_id: str
    outcome: m.Outcome
    at: float


class ChatService:
    """Starts and stops runs for clients."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context

    async def check(self, owner: str, body: ChatSend) -> CheckedMessage:
        """Refuse all that can be refused before the run starts."""
        self.context.sessions.check_turn(owner)
        view = await self._conversation(owner, body.conversation_id) if body.conversation_id else None
        card, settings = await self._agent(owner, body.agent_id, view)
        if view is not None and body.message_id in {entry.message_id for entry in view.entries if body.message_id}:
            raise Invalid(f"message_id: there is a message '{body.message_id}' here already", param="message_id")
        stored = await self._files(owner, body)
        command = inbound.message_of(body, card, stored, self.context.table)
        return CheckedMessage(owner, body, card.name, settings, view, command)

    async def _agent(
        self, owner: str, agent_id: str | None, view: m.SessionView | None,
    ) -> tuple[m.AgentCard, m.Settings | None]:
        """The agent of a message and, if the client has chosen another than the conversation has, its settings."""
        if view is not None and agent_id in (None, "", view.agent_id) and view.agent in self.context.agents:
            return self.context.agents[view.agent], None
        wanted = agent_id or (view.agent_id if view else await default_agent(self.context, owner))
        chosen = await choose_agent(self.context, owner, wanted)
        return chosen.card, chosen.settings

    async def begin(self, wish: CheckedMessage) -> StartedRun:
        if wish.view is None:
            view = await self.converse(wish.owner, wish.agent, wish.body.user_id, settings=wish.settings)
            async with self.context.undo_if_refused(lambda: self.context.sessions.delete(view.owner, view.session_id)):
                return await self._begun(wish, view)
        return await self._begun(wish, wish.view)

    async def _begun(self, wish: CheckedMessage, view: m.SessionView) -> StartedRun:
        sessions, agent = self.context.sessions, view.agent
        if agent == wish.agent:
            return await self._submitted(wish, view)

        async def undo() -> None:
            await sessions.update(wish.owner, view.session_id, agent=agent)

        with conversation_errors(view.session_id):
            await sessions.update(wish.owner, view.session_id, agent=wish.agent)
        async with self.context.undo_if_refused(undo):
            return await self._submitted(wish, view)

    async def _submitted(self, wish: CheckedMessage, view: m.SessionView) -> StartedRun:
        sessions = self.context.sessions
        with conversation_errors(view.session_id):
            before = copy(view)  # the agent may change the view before this server reads the start of the run
            title = self._title_of(wish.body, view)
            settings = wish.settings and with_memory_use(wish.settings, view.settings)
            configured = settings is not None and settings != view.settings
            commands = [m.Configure(settings=settings)] if settings is not None and configured else []
            submitting = sessions.submit(wish.owner, view.session_id, [*commands, wish.command])
            if title is not None:
                submitting = self._entitled(wish, view, title, submitting)
            receipt = await self.context.begin_turn(wish.owner, view.session_id, submitting)
        return StartedRun(view, before, receipt, wish.body.message_id or None)

    async def begun(self, owner: str, run_id: str) -> StartedRun:
        """The run of this id, as `begin` returned it when the run started."""
        view = await self.find(owner, run_id)
        before, named = m.SessionView(session_id=view.session_id), None
        async for record in self._records(owner, view.session_id):
            if isinstance(record.event, m.InputAccepted) and isinstance(record.event.command, m.SendMessage):
                named = record.event.command.message_id
            if isinstance(record.event, m.TurnStarted) and record.turn_id == run_id:
                return StartedRun(view, before, Receipt(run_id, (record,), record.seq - 1, begun=True), named)
            if isinstance(record.event, m.SessionCreated | m.SessionUpdated):
                m.apply(before, record)
        raise NotFound(f"there is no session '{run_id}'")

    async def _records(self, owner: str, session_id: str) -> AsyncIterator[m.Record]:
        after = 0
        while page := await self.context.sessions.records(owner, session_id, after, RECORDS_PER_PAGE):
            for record in page:
                yield record
            after = page[-1].seq

    def _title_of(self, body: ChatSend, view: m.SessionView) -> str | None:
        """The first words of the message as a title, if there is none and the client asked for one."""
        wanted = view.title is None and TITLE_GENERATION in (body.background_tasks or ())
        return self._first_words(body.message) if wanted else None

    def title_of(self, view: m.SessionView) -> str | None:
        """The first words of a conversation as a title; None if nobody has written any."""
        written = (m.text_of(entry.content) for entry in view.entries if entry.role is m.Role.USER)
        return next((title for text in written if (title := self._first_words(text))), None)

    def _first_words(self, text: str) -> str | None:
        return " ".join(text[:TITLE_SOURCE_LENGTH].split())[:self.context.settings.title_length] or None

    async def _entitled(
        self, wish: CheckedMessage, view: m.SessionView, title: str, submitting: Coroutine[object, None, Receipt],
    ) -> Receipt:
        """Set the title while the run is on, so that its stream has the change, even if the run is very short."""
        submitted = asyncio.ensure_future(submitting)
        await asyncio.sleep(0)  # by now the run has begun, or was refused; the agent has sent no event yet
        if not submitted.done() or submitted.exception() is None:
            with suppress(GatewayError):  # the outcome of the message is streamed, and the title can be set later
                await self.context.sessions.update(wish.owner, view.session_id, title=title)
        return await submitted

    async def converse(
        self, owner: str, agent: str, user_id: str, title: str | None = None, settings: m.Settings | None = None,
    ) -> m.SessionView:
        """A new conversation of the owner, for the user that the client names."""
        metadata, memory_user = with_user_id({}, user_id), "" if user_id in ("", LOCAL_USER, owner) else user_id
        return await self.context.sessions.create(
            owner, agent, title=title, metadata=metadata,
            settings=replace(settings or m.Settings(), memory_user=memory_user),
        )

    async def find(self, owner: str, run_id: str) -> m.SessionView:
        """The conversation that a run is in."""
        try:
            view = await self.context.sessions.find_by_id(owner, run_id)
        except NotFound:
            raise NotFound(f"there is no session '{run_id}'") from None
        views.run_entries(view, run_id)
        return view

    async def stop(self, owner: str, run_id: str) -> StoppedRun:
        """Stop a run; one that is over stays as it is."""
        view = await self.find(owner, run_id)
        outcome = views.run_outcome(view, run_id)
        if outcome is not None:
            end = views.run_end(view, run_id)
            return StoppedRun(run_id, outcome, end.at if end else view.updated_at)
        command = self.context.table.command("chat.abort", turn_id=run_id)
        await self.context.sessions.submit(owner, view.session_id, [command])
        return StoppedRun(run_id, m.Outcome.INTERRUPTED, self.context.clock())

    def is_of(self, view: m.SessionView, user_id: str | None) -> bool:
        """Whether a conversation is this user's; one of another dialect names no user, and is the local user's too."""
        named = private_metadata(view.metadata).get("user_id")
        return not user_id or user_id in ((named,) if named else (LOCAL_USER, view.owner))

    def filter_of(self, owner: str, user_id: str | None) -> SessionFilter:
        """The conversations of which `is_of` is true."""
        if not user_id:
            return SessionFilter()
        named = m.field_label(self.context.dialect, "user_id", user_id)
        if user_id in (LOCAL_USER, owner):
            return SessionFilter(without=m.field_label(self.context.dialect, "user_id"), unless=named)
        return SessionFilter(labels=(named,))

    async def _conversation(self, owner: str, session_id: str) -> m.SessionView:
        with conversation_errors(session_id):
            return await self.context.sessions.get(owner, session_id)

    async def _files(self, owner: str, body: ChatSend) -> dict[str, m.FilePart]:
        """The stored files that a message names, by their ids, and by the links that uploads were answered with.

        Any other address is refused unless clients may name it.
        """
        stored: dict[str, m.FilePart] = {}
        elsewhere: list[tuple[str, str]] = []
        for number, reference in enumerate(body.files or []):
            file_id, url = reference.file_id, reference.file_url or ""
            if file_id and file_id not in stored:
                stored[file_id] = await self._file(owner, file_id, f"files.{number}.file_id")
            if url and url not in stored:
                linked = await self._linked(owner, url)
                if linked is not None:
                    stored[url] = linked
                else:
                    elsewhere.append((f"files.{number}.file_url", url))
        await self.context.check_message_addresses(elsewhere)
        return stored

    async def _file(self, owner: str, file_id: str, field: str) -> m.FilePart:
        try:
            found = await self.context.resources.get("file", owner, file_id)
        except NotFound:
            raise FileNotFound(f"{field}: there is no file '{file_id[:128]}'", param=field) from None
        return _file_part(found)

    async def _linked(self, owner: str, url: str) -> m.FilePart | None:
        """The caller's file that has this link; the link of a file leads to this server, wherever that is."""
        file_id = url.rpartition("/")[2]
        if not file_id.startswith("file_"):
            return None
        try:
            found = await self.context.resources.get("file", owner, file_id)
        except NotFound:
            return None
        return _file_part(found) if found.body.get(UPLOAD_LINK) == url else None


def _file_part(found: Resource) -> m.FilePart:
    body = found.body
    return m.FilePart(name=body["name"], file_id=found.resource_id, media_type=body["media_type"], size=body["size"])


def with_memory_use(settings: m.Settings, old: m.Settings) -> m.Settings:
    """Settings that use memories as those of the conversation do, unless they say themselves whether."""
    memory = old.memory if settings.memory is None else settings.memory
    return replace(settings, memory=memory, memory_user=old.memory_user)
