"""Who speaks in a run: the agent, and its sub-agents, each from its start to its end."""

from gateway.ids import Mint
from gateway.model import Level, NoticePosted, ScopeOpened, ScopeStatus, ScopeStatusChanged, StopReason, ToolCall
from gateway.ports import Said, Scoped

from .voice import Voice
from .wire import Event

UNTOLD = ""
"""What came of a call where the agent does not say."""


class Voices:
    """The agent's own voice, and those of the sub-agents that have not ended, by their names."""

    def __init__(self, mint: Mint, client_tools: frozenset[str]) -> None:
        self.root = Voice(mint, client_tools)
        self._mint, self._client_tools = mint, client_tools
        self._subagents: dict[str, Voice] = {}

    @property
    def inner_first(self) -> tuple[Voice, ...]:
        """In the order in which they end."""
        return (*reversed(self._subagents.values()), self.root)

    @property
    def open_calls(self) -> dict[str, tuple[Voice, ToolCall]]:
        """The calls that have not come back, whoever made them."""
        voices = (self.root, *self._subagents.values())
        return {call_id: (voice, call) for voice in voices for call_id, call in voice.scribe.open_calls.items()}

    def of(self, event: Event) -> tuple[Voice, list[Said]]:
        """Whose event it is; a sub-agent that was not heard of before begins with it."""
        name = event.subagent_run_id
        if name is None or event.type.startswith("SUBAGENT_"):
            return self.root, []
        if name not in self._subagents:
            return self._open(name, event)
        return self._subagents[name], []

    def started(self, voice: Voice, event: Event) -> list[Said]:
        name = event.subagent_run_id or ""
        return [] if name in self._subagents else self._open(name, event)[1]

    def finished(self, voice: Voice, event: Event) -> list[Said]:
        return self._end(event.subagent_run_id or "", StopReason.END_TURN)

    def failed(self, voice: Voice, event: Event) -> list[Said]:
        told = NoticePosted(topic="subagent", title=event.message or "A sub-agent failed.", level=Level.ERROR)
        return [told, *self._end(event.subagent_run_id or "", StopReason.ERROR)]

    def end_subagents(self) -> list[Said]:
        """Those that have not ended, end."""
        return [event for name in list(reversed(self._subagents)) for event in self._end(name, StopReason.END_TURN)]

    def _open(self, name: str, event: Event) -> tuple[Voice, list[Said]]:
        parent = self._subagents.get(event.parent_subagent_run_id or "", self.root)
        voice = self._subagents[name] = Voice(self._mint, self._client_tools, self._mint("scope"))
        cause = event.parent_tool_call_id if event.parent_tool_call_id in self.open_calls else None
        opened = ScopeOpened(parent=parent.scope_id, call_id=cause, agent=event.name, title=event.description)
        return voice, [Scoped(voice.scope_id, opened)]

    def _end(self, name: str, stop_reason: StopReason) -> list[Said]:
        voice = self._subagents.pop(name, None)
        if voice is None:
            return []
        said = [*voice.settle(), *voice.end_calls(), *voice.finish(stop_reason)]
        said += [event for call_id in list(voice.scribe.open_calls) for event in voice.scribe.returned(call_id, UNTOLD)]
        return [*said, Scoped(voice.scope_id, ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=stop_reason))]
