"""A chat as it was heard: from chat:start to chat:end, turn by turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conformance.blade.damaged_members import is_damaged
from conformance.blade.snapshot import is_message, parent_of, text_of
from conformance.kit import expect
from conformance.kit.expect import NotTestable
from conformance.kit.socketio import SocketEvent

EVENTS = ("chat:start", "turn:start", "turn:patch", "turn:end", "chat:end")
ASK, FORK = "AskUserQuestion", "Agent"
Body = Mapping[str, Any]


@dataclass
class TurnEvents:
    """The events of one turn."""

    turn_id: str
    is_first: bool = False
    """Whether it is the first turn of its chat, which is the user's."""
    start: Body | None = None
    patches: list[Body] = field(default_factory=list)
    end: Body | None = None

    @property
    def about(self) -> Body:
        """Who and where: from the end, which is complete, or from the start."""
        return self.end or self.start or {}

    @property
    def role(self) -> Any:
        """Who speaks; where the role itself is wrong, the place in the chat tells."""
        told = self.about.get("role")
        return ("user" if self.is_first else "assistant") if is_damaged(told) else told

    @property
    def final(self) -> Body:
        """What turn:end told; every turn that was spoken of has one."""
        shown = [item["patch_type"] for item in self.patches]
        expect.that(self.end is not None, f"turn:end of {self.turn_id}", shown, "BL-FLOW-03")
        return self.end or {}

    def data(self, patch_type: str) -> list[Body]:
        return [item["data"] for item in self.patches if item["patch_type"] == patch_type]

    def streamed(self, kind: str = "text") -> str:
        """The deltas of this kind, put together."""
        return "".join(item["text_delta"] for item in self.data("add_content") if item["type"] == kind)

    @property
    def calls(self) -> list[Body]:
        return self.data("add_tool_call")

    @property
    def results(self) -> list[Body]:
        return self.data("tool_result")

    def expect_announced(self) -> None:
        """Expect that the turn does not end with more calls than patches announced."""
        if self.start is not None and self.end is not None:
            told, ended = ({call["id"] for call in calls} for calls in (self.calls, self.end["tool_calls"]))
            expect.that(len(told) >= len(ended), "every call announced", sorted(ended - told), "BL-FLOW-06")


@dataclass(frozen=True)
class Chat:
    """What came of one chat:send."""

    heard: tuple[SocketEvent, ...]

    @cached_property
    def events(self) -> list[tuple[str, Body]]:
        """The events of the flow; others may come between them."""
        return [(item.name, item.body) for item in self.heard if item.name in EVENTS]

    @cached_property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    @cached_property
    def shown(self) -> list[str]:
        """The flow as a person reads it."""
        return [_said(name, body) for name, body in self.events]

    @cached_property
    def turns(self) -> list[TurnEvents]:
        """The turns in the order they were first spoken of."""
        found: dict[str, TurnEvents] = {}
        for name, body in self.events:
            if name.startswith("turn:"):
                turn = found.setdefault(body["turn_id"], TurnEvents(body["turn_id"], is_first=not found))
                match name:
                    case "turn:start":
                        turn.start = turn.start or body
                    case "turn:patch":
                        turn.patches.append(body)
                    case _:
                        turn.end = body
        return list(found.values())

    def _spoken(self, role: str) -> list[TurnEvents]:
        spoken = [turn for turn in self.turns if is_message(turn.about)]
        begun = [turn for turn in spoken if turn.start is not None]
        is_begun = bool(begun) or not any(turn.end is not None for turn in spoken)
        expect.that(is_begun, "turn:start of the turns that end", self.shown, "BL-FLOW-03")
        return [turn for turn in begun if turn.role == role]

    @property
    def users(self) -> list[TurnEvents]:
        return self._spoken("user")

    @property
    def replies(self) -> list[TurnEvents]:
        """The root's assistant turns."""
        return [turn for turn in self._spoken("assistant") if parent_of(turn.about) is None]

    @property
    def reply(self) -> TurnEvents:
        """The last of them; there must be one."""
        with expect.owned("BL-FLOW-04"):
            return expect.first("an assistant turn", reversed(self.replies), self.shown)

    @property
    def children(self) -> list[TurnEvents]:
        """The sub-agents' turns."""
        return [turn for turn in self._spoken("assistant") if parent_of(turn.about) is not None]

    @property
    def is_ended(self) -> bool:
        return self.names[-1:] == ["chat:end"]

    @property
    def end(self) -> Body:
        """What chat:end told; there must be one."""
        expect.that(self.is_ended, "chat:end", self.shown, "BL-FLOW-01")
        return self.events[-1][1]

    @property
    def text(self) -> str:
        """The text of the root's last turn."""
        return text_of(self.replies[-1].final) if self.replies else ""

    @property
    def calls(self) -> list[Body]:
        return [call for turn in self.turns for call in turn.calls]

    @property
    def results(self) -> list[Body]:
        return [item for turn in self.turns for item in turn.results]

    def call(self, tool: str | None = None) -> Body:
        """The call of this tool, or of any; the profile promises there is one."""
        found = [call for call in self.calls if tool in (None, call["tool_name"])]
        if not found:
            self.expect_calls()
        return expect.first(f"a call of {tool or 'a tool'}, as the profile promises", found, self.shown)

    def expect_calls(self) -> None:
        """Expect what was called to be announced; where nothing was, the profile promises too much."""
        self.expect_announced()
        if not self.calls:
            raise NotTestable(f"the agent calls no tool, though the profile promises it: {self.shown}")

    def question(self) -> Body:
        """The open question; the profile promises there is one."""
        asked = [call for call in self.calls if call["tool_name"] == ASK]
        if not asked:
            self.expect_calls()
        with expect.owned("BL-FLOW-10"):
            return expect.first(f"a call of {ASK}, as the profile promises", reversed(asked), self.shown)

    def expect_announced(self) -> None:
        """Expect that no turn ends with more calls than patches announced; what else is missing is so because of it."""
        for turn in self.turns:
            turn.expect_announced()

    def turn_of(self, call: Body) -> TurnEvents:
        """The turn that a call was announced in."""
        return next(turn for turn in self.turns if any(call is item for item in turn.calls))

    def places(self, name: str, **wanted: Any) -> list[int]:
        """Where in the flow events of this name have these members (of their data, for patches)."""
        found = []
        for place, (other, body) in enumerate(self.events):
            if other == name:
                inside = {**body, **body["data"]} if name == "turn:patch" else body
                found += [place] if all(inside.get(key) == value for key, value in wanted.items()) else []
        return found

    def place(self, name: str, **wanted: Any) -> int:
        """Where in the flow the first event of this name has these members; there must be one."""
        return expect.first(f"{name} with {expect.show(wanted)}", self.places(name, **wanted), self.shown)

    def ended(self, status: str) -> "Chat":
        expect.equal("the status of chat:end", status, self.end["status"])
        return self


def _said(name: str, body: Body) -> str:
    """An event in a few words; what is damaged is not told."""
    told: Sequence[Any] = ()
    if is_damaged(body):
        told = (repr(body),)
    elif name == "turn:patch":
        data = {} if is_damaged(body["data"]) else body["data"]
        told = (body["patch_type"], data.get("tool_name"), data.get("status"))
    elif name.startswith("turn:"):
        told = (body["role"], body.get("status"), parent_of(body))
    else:
        told = (body.get("status"),)
    return f"{name} {' '.join(repr(it) if is_damaged(it) else str(it) for it in told if it is not None)}".strip()
