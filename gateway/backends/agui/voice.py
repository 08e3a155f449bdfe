"""One speaker of a run, the agent or a sub-agent: its texts, thoughts and calls, told in lawful order."""

from gateway.ids import Mint
from gateway.model import (
    ROOT,
    BlockKind,
    Content,
    CustomEvent,
    DataPart,
    StopReason,
    ToolCall,
    ToolOrigin,
    Usage,
)
from gateway.ports import Said
from gateway.speech import Scribe

Key = tuple[str, str]
TEXT, THOUGHT, CALL = "text", "thought", "call"


class Voice:
    """A message here is a message there. A result ends the message of its call, unless a call is still written."""

    def __init__(self, mint: Mint, client_tools: frozenset[str], scope_id: str = ROOT) -> None:
        self.scribe = Scribe(mint, scope_id)
        self.scope_id = scope_id
        self.texts: list[str] = []
        """All texts of this run, for who tells them again."""
        self.ids: dict[str, str] = {}
        """The agent's ids of its messages, by ours."""
        self.called: set[str] = set()
        """All calls that were made, whatever came of them."""
        self.carried: set[str] = set()
        """The calls that an earlier run has made and left open; a run that goes on may tell them again."""
        self._client_tools = client_tools
        self._known = ""
        self._writing: dict[Key, list[str]] = {}
        self._thoughts: set[Key] = set()
        self._results: dict[str, Content] = {}
        self._awaited: set[str] = set()

    # -- messages -------------------------------------------------------------------------------------------------

    def begin(self) -> list[Said]:
        """The agent was asked; its first word may be long in coming."""
        return [] if self.scribe.pen.in_message else self._fresh()

    def _fresh(self) -> list[Said]:
        said = self.finish(StopReason.END_TURN)
        self._known = ""
        return [*said, *self.scribe.begin()]

    def _in_message(self, known: str) -> list[Said]:
        """A message to write in: the agent's message of this id, where it gives one."""
        said: list[Said] = []
        if not self.scribe.pen.in_message or (known and self._known and known != self._known and not self._calling):
            said = self._fresh()
        if known and not self._known:
            self._known = self.ids[self.scribe.pen.message_id] = known
        return said

    def finish(self, stop_reason: StopReason, usage: Usage = Usage()) -> list[Said]:  # noqa: B008  # it is frozen
        """Whatever is open ends; a call that was not written to its end is torn."""
        self.texts += ["".join(pieces) for (kind, _), pieces in self._writing.items() if kind == TEXT]
        self._writing, self._thoughts, self._known = {}, set(), ""
        return [*self.scribe.finish(stop_reason, usage), *self._told_results()]

    @property
    def _calling(self) -> bool:
        return any(kind == CALL for kind, _ in self._writing)

    # -- words ----------------------------------------------------------------------------------------------------

    def say(self, message_id: str, delta: str) -> list[Said]:
        if not delta:
            return []
        said = [*self.settle(), *self._in_message(message_id)]
        self._writing.setdefault((TEXT, message_id), []).append(delta)
        return [*said, *self.scribe.words((TEXT, message_id), delta)]

    def think(self, message_id: str, delta: str) -> list[Said]:
        """A thought's end is told when something else comes: until then it may be signed."""
        if not delta:
            return []
        said = [*self.settle(but=message_id), *([] if self.scribe.pen.in_message else self._fresh())]
        self._thoughts.add((THOUGHT, message_id))
        return [*said, *self.scribe.words((THOUGHT, message_id), delta, BlockKind.THINKING)]

    def sign(self, message_id: str, signature: str) -> list[Said]:
        if (THOUGHT, message_id) not in self._thoughts:
            return []
        return self.scribe.sign((THOUGHT, message_id), signature)

    def settle(self, but: str | None = None) -> list[Said]:
        """Thoughts have all they will have."""
        over = [key for key in self._thoughts if key[1] != but]
        self._thoughts.difference_update(over)
        return [event for key in over for event in self.scribe.end(key)]

    def end(self, kind: str, name: str) -> list[Said]:
        """A text or a call has all it will have."""
        pieces = self._writing.pop((kind, name), None)
        if pieces is None:
            return []
        if kind == TEXT:
            self.texts.append("".join(pieces))
        return [*self.scribe.end((kind, name)), *self._told_results()]

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, call_id: str, name: str, parent: str = "") -> list[Said]:
        if call_id in self.carried:
            return []
        said = [*self.settle(), *self._in_message(parent)]
        if not self._known:
            self._known = self.ids[self.scribe.pen.message_id] = call_id
        self._writing[CALL, call_id] = []
        self.called.add(call_id)
        self._awaited.add(call_id)
        origin = ToolOrigin.CLIENT if name in self._client_tools else ToolOrigin.BUILTIN
        return [*said, *self.scribe.call((CALL, call_id), ToolCall(call_id=call_id, name=name, origin=origin))]

    def arguments(self, call_id: str, fragment: str) -> list[Said]:
        return self.scribe.arguments((CALL, call_id), fragment) if (CALL, call_id) in self._writing else []

    def returned(self, call_id: str, content: Content) -> list[Said]:
        """A call came back; told as soon as the call itself has been."""
        if call_id not in self._awaited and call_id not in self.scribe.open_calls:
            return []
        said = [*self.settle(), *self.end(CALL, call_id)]
        self._results[call_id] = content
        return [*said, *self._told_results()]

    def _told_results(self) -> list[Said]:
        ready = [call_id for call_id in self._results if call_id in self.scribe.open_calls]
        if not ready:
            return []
        results = {call_id: self._results.pop(call_id) for call_id in ready}
        self._awaited.difference_update(ready)
        said = [] if self._calling else self.finish(StopReason.TOOL_USE)
        return [*said, *(event for one, content in results.items() for event in self.scribe.returned(one, content))]

    def end_calls(self) -> list[Said]:
        """Nothing more is written: the calls have what they have."""
        calls = [name for kind, name in self._writing if kind == CALL]
        return [event for name in calls for event in self.end(CALL, name)]

    def data(self, data: DataPart) -> list[Said]:
        """A piece that is neither words nor a call; while a call is being written it is told beside the message."""
        if self._calling:
            return [self.scribe.pen.say(CustomEvent(topic=data.type, payload={"content": data.content}))]
        return [*self.settle(), *self.begin(), *self.scribe.data(data)]
