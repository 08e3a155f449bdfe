"""A run: the events from what a client sent to the next idle, and what can be asked of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conformance.cas.requirement_owners import of_event
from conformance.kit import expect
from conformance.kit.expect import NotTestable

Body = dict[str, Any]
PIECES = frozenset({"event_start", "event_delta", "agent.message_start", "agent.message_delta", "agent.message_stop"})
BLOCK_PIECES = frozenset({f"agent.content_block_{part}" for part in ("start", "delta", "stop")})
ANSWERED_BY = {
    "agent.tool_use": ("user.tool_confirmation", "tool_use_id"),
    "agent.mcp_tool_use": ("user.tool_confirmation", "tool_use_id"),
    "agent.custom_tool_use": ("user.custom_tool_result", "custom_tool_use_id"),
}


def is_piece(event: Body) -> bool:
    """Whether this is a piece of an event rather than an event."""
    return str(event["type"]) in PIECES | BLOCK_PIECES


def message(content: Any) -> Body:
    return {"type": "user.message", "content": content}


def confirmation(call: Body, result: str = "allow", **more: Any) -> Body:
    """A decision on a server tool."""
    return {"type": "user.tool_confirmation", "tool_use_id": call["id"], "result": result, **more}


def tool_result(call: Body, **more: Any) -> Body:
    """What a custom tool gave."""
    return {"type": "user.custom_tool_result", "custom_tool_use_id": call["id"], **more}


def answer(call: Body) -> Body:
    """An answer that lets the agent go on, whatever kind of call it is."""
    expect.member("the type of a pending event", ANSWERED_BY, call["type"])
    is_custom = call["type"] == "agent.custom_tool_use"
    return tool_result(call, content="The word means: found.") if is_custom else confirmation(call)


def text_of(content: Any) -> str:
    """The text in a string or in blocks."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content or [])


def texts(content: Any) -> list[str]:
    """The text blocks of blocks, or of a string; empty ones do not count."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    told = [block for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return [str(block["text"]) for block in told if block.get("text")]


OF_TOOLS_AND_THREADS = ("agent.tool_", "agent.custom_tool_", "agent.mcp_tool_", "agent.thread_", "session.thread_")


@dataclass(frozen=True)
class Run:
    """What came of one POST to /events."""

    asked: str
    accepted: Sequence[Body]
    events: Sequence[Body]

    @property
    def idle(self) -> Body:
        return self.events[-1]

    @property
    def stop(self) -> str:
        return str(self.idle["stop_reason"]["type"])

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def root(self) -> list[Body]:
        """The events that are not of a child thread."""
        children = {event["session_thread_id"] for event in self.of("session.thread_created")}
        return [event for event in self.events if event.get("session_thread_id") not in children]

    @property
    def text(self) -> str:
        """What the agent said."""
        return "".join(text_of(event["content"]) for event in self.root if event["type"] == "agent.message")

    @property
    def pending(self) -> list[Body]:
        """The calls that wait for an answer, as requires_action lists them."""
        self.stopped("requires_action")
        known = {event["id"]: event for event in self.events}
        with expect.owned("CAS-EV-16"):
            names = expect.keyed("a stop_reason", self.idle["stop_reason"], "event_ids")["event_ids"]
            expect.subset("the events told so far", names, known)
        return [known[name] for name in names]

    @property
    def is_plain(self) -> bool:
        """Whether nothing is told of tools and of threads."""
        return not any(kind.startswith(OF_TOOLS_AND_THREADS) for kind in self.kinds)

    def of(self, *kinds: str) -> list[Body]:
        return [event for event in self.events if event["type"] in kinds]

    def one(self, kind: str) -> Body:
        """The one event of this type; the profile promises there is one."""
        found = self.of(kind)
        if self.is_plain and kind.startswith(OF_TOOLS_AND_THREADS):
            raise NotTestable(f"{self.asked} brings about no {kind}, though the profile promises it")
        owner = "CAS-EV-12" if kind == "session.status_running" else of_event(kind)
        expect.that(len(found) == 1, f"one {kind} after {self.asked}", self.kinds, owner)
        return found[0]

    def some(self, kind: str) -> list[Body]:
        """The events of this type; the profile promises there are some."""
        found = self.of(kind)
        owner = "CAS-EV-12" if kind == "span.model_request_start" else of_event(kind)
        expect.that(bool(found), f"a {kind} after {self.asked}", self.kinds, owner)
        return found

    def stopped(self, *reasons: str, owner: str | None = None) -> "Run":
        """Expect one of these stop reasons; another one is the owner's failure, or that of who lets a turn stop so."""
        shown = {"events": self.kinds, "stop_reason": self.idle["stop_reason"]}
        is_promised = owner is None and (self.stop == "error" or ("requires_action" in reasons and self.is_plain))
        if is_promised and self.stop not in reasons:
            raise NotTestable(f"{self.asked} stops with {self.stop}, though the profile promises {reasons[0]}")
        expected = f"{self.asked} to stop with {' or '.join(reasons)}"
        expect.that(self.stop in reasons, expected, shown, owner or self._stopped_by(reasons))
        return self

    def _stopped_by(self, wanted: tuple[str, ...]) -> str:
        """The requirement by which a turn stops with these reasons."""
        if "requires_action" in wanted:
            return "CAS-RES-04" if self.of("agent.tool_result") else "CAS-EV-16"
        return "CAS-EV-16" if self.stop == "requires_action" else "CAS-EV-13"

    def spoke(self) -> "Run":
        """Expect that the agent said something."""
        expect.that(bool(self.text), f"{self.asked} to let the agent say something", self.kinds, "CAS-EV-14")
        return self
