"""AAP's bodies by the names that its table spells: a server writes them, a client reads them."""

from collections.abc import Sequence
from typing import Any, ClassVar

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue
from mappings.language import Body, rows_of


# -- agents -----------------------------------------------------------------------------------------------------------
class ToolBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool"
    name: str
    title: str | None = None
    description: str | None = None
    parameters: JsonObject | None = None


class OptionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "option"
    kind: str
    name: str
    title: str | None = None
    description: str | None = None
    choices: Sequence[str] | None = None
    default: str | None = None


class AgentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "agent"
    name: str
    title: str | None = None
    version: str | None = None
    description: str | None = None
    tools: Sequence[ToolBody] | None = None
    options: Sequence[OptionBody] | None = None
    capabilities: dict[str, dict[str, Any] | None] | None = None
    how_to_answer: str | None = None


class MetaBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "meta"
    version: int
    agents: Sequence[AgentBody]


# -- sessions ---------------------------------------------------------------------------------------------------------
class ServerToolBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "server_tool"
    name: str
    trust: bool | None = None


class SessionAgentBody(Body, frozen=True, kw_only=True):
    """What a session has chosen of its agent."""

    row: ClassVar[str] = "session.agent"
    name: str | None = None
    tools: Sequence[ServerToolBody] | None = None
    options: dict[str, str] | None = None


class SessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session"
    session_id: str | None = None
    agent: SessionAgentBody
    tools: Sequence[ToolBody] | None = None


class ListedSession(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.listed"
    session_id: str
    agent: SessionAgentBody
    tools: Sequence[ToolBody] | None = None


class SessionsBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "sessions"
    sessions: Sequence[ListedSession]
    next: str | None = None


class CreatedBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "created"
    session_id: str


# -- messages ---------------------------------------------------------------------------------------------------------
class MessageBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "message"
    role: str
    call_id: str | None = None
    content: m.Content | None = None


class HistoriesBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "histories"
    full: Sequence[MessageBody] | None = None
    compacted: Sequence[MessageBody] | None = None


class HistoryBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "history"
    history: HistoriesBody


class TurnBody(Body, frozen=True, kw_only=True):
    """A turn that is not streamed."""

    row: ClassVar[str] = "turn"
    stop_reason: str
    messages: Sequence[MessageBody] = ()


# -- calls that people answer, as blocks of a message -----------------------------------------------------------------
class AskedCall(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "asked.call"
    call: m.ToolCall


class AskedContinuation(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "asked.continuation"
    request_id: str
    ask: m.ContinuationAsk


class AskedRollback(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "asked.rollback"
    request_id: str
    ask: m.RollbackAsk


# -- questions, as the input of a call --------------------------------------------------------------------------------
class ChoiceBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "choice"
    label: JsonValue
    description: str | None


class QuestionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "question"
    question: str
    header: str | None
    multi_select: bool | None
    options: Sequence[ChoiceBody] | None


class QuestionsBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "questions"
    questions: Sequence[QuestionBody]


# -- what an application asks for -------------------------------------------------------------------------------------
class NewSessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.new"
    agent: SessionAgentBody
    messages: Sequence[MessageBody] | None = None
    tools: Sequence[ToolBody] | None = None


class NewTurnBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "turn.new"
    messages: Sequence[Any]
    stream: str
    agent: SessionAgentBody | None = None
    tools: Sequence[ToolBody] | None = None


OBJECTS = rows_of(__name__)
"""The rows of the table's objects, each with the struct whose fields it spells."""
