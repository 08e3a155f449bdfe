"""The order of a chat: a small grammar of turns within chats and patches within turns."""

from conformance.blade.chat import Body, Chat
from conformance.blade.snapshot import is_message, parent_of
from conformance.kit import expect


class _Order:
    """Follows a chat event by event; `earlier` are turns of chats before, which an answer may take up again."""

    def __init__(self, chat: Chat, earlier: set[str]) -> None:
        self._chat = chat
        self._earlier = earlier
        self._open: dict[str, Body] = {}
        self._begun: set[str] = set()
        self._forks: set[str] = set()

    def follow(self, name: str, body: Body) -> None:
        match name:
            case "turn:start":
                self._start(body)
            case "turn:patch":
                self._patch(body)
            case "turn:end":
                self._known(body, "turn:end")
                self._open.pop(body["turn_id"], None)
            case "chat:end":
                expect.equal("turns that are open at chat:end", [], sorted(self._open))

    def _start(self, body: Body) -> None:
        parent = parent_of(body)
        expect.that(body["turn_id"] not in self._begun, "a turn to start once", self._chat.shown)
        self._begun.add(body["turn_id"])
        if parent is None:
            roots = [turn for turn in self._open.values() if parent_of(turn) is None]
            expect.equal("root turns that are open when another starts", [], [turn["turn_id"] for turn in roots])
        else:
            known = parent in self._forks or bool(self._earlier)
            expect.that(known, "a sub-agent's turn between its call and its result", self._chat.shown)
        self._open[body["turn_id"]] = body

    def _patch(self, body: Body) -> None:
        self._known(body, f"turn:patch {body['patch_type']}")
        if body["patch_type"] == "add_tool_call":
            self._forks.add(body["data"]["id"])
        elif body["patch_type"] == "tool_result":
            self._forks.discard(body["data"]["tool_call_id"])

    def _known(self, body: Body, what: str) -> None:
        known = body["turn_id"] in self._open or body["turn_id"] in self._earlier
        expect.that(known, f"{what} between the turn:start and turn:end of its turn", self._chat.shown)


def in_order(chat: Chat, earlier: set[str] | None = None) -> None:
    """Expect chat:start, the user's turn, the assistant's turns, chat:end, each within its bounds."""
    names = [name for name, _ in chat.events]
    expect.equal("the first event", "chat:start", names[0])
    expect.equal("how often chat:start and chat:end come", (1, 1), (names.count("chat:start"), names.count("chat:end")))
    roles = [turn.about["role"] for turn in chat.turns if turn.start is not None and is_message(turn.about)]
    if earlier is None:
        expect.that(roles[:1] == ["user"] and roles.count("user") == 1, "the user's turn first, and once", chat.shown)
    order = _Order(chat, earlier or set())
    for name, body in chat.events:
        order.follow(name, body)
