"""The order of a chat: a small grammar of turns within chats and patches within turns.

What is out of order breaks the sentence of one requirement: that there is one chat, that each turn has its start and
its end, that patches lie between them, or that a sub-agent speaks while its call is open.
"""

from conformance.blade.chat import Chat, TurnEvents
from conformance.blade.snapshot import is_message, parent_of
from conformance.kit import expect


def is_one_loop(chat: Chat) -> None:
    """Expect one chat:start first and one chat:end last."""
    with expect.owned("BL-FLOW-01"):
        counts = [chat.names[0], chat.names[-1], chat.names.count("chat:start"), chat.names.count("chat:end")]
        expect.equal("first and last event, and how often each", ["chat:start", "chat:end", 1, 1], counts)


def turns_are_whole(chat: Chat, earlier: frozenset[str] = frozenset()) -> None:
    """Expect every turn to start once and end once, in this order; earlier ones may be taken up again."""
    with expect.owned("BL-FLOW-03"):
        for turn in chat.turns:
            if turn.turn_id not in earlier:
                bounds = [name for name, _ in _events(chat, turn) if name != "turn:patch"]
                expect.equal(f"the bounds of {turn.turn_id}", ["turn:start", "turn:end"], bounds)
        _roots_follow_each_other(chat, earlier)


def _events(chat: Chat, turn: TurnEvents) -> list[tuple[str, object]]:
    return [(name, body) for name, body in chat.events if name.startswith("turn:") and body["turn_id"] == turn.turn_id]


def _roots_follow_each_other(chat: Chat, earlier: frozenset[str]) -> None:
    spoken = [turn for turn in chat.turns if is_message(turn.about) and turn.turn_id not in earlier]
    roots = {turn.turn_id for turn in spoken if parent(turn) is None}
    marks = [(name, body["turn_id"]) for name, body in chat.events if name in ("turn:start", "turn:end")]
    open_turns: set[str] = set()
    for name, turn_id in marks:
        if turn_id in roots and name == "turn:start":
            expect.equal("root turns that are open when another starts", [], sorted(open_turns))
            open_turns.add(turn_id)
        elif name == "turn:end":
            open_turns.discard(turn_id)


def parent(turn: TurnEvents) -> str | None:
    """The fork call a turn belongs to, as its start says, or else its end."""
    return parent_of(turn.start or {}) or parent_of(turn.about)


def patches_lie_between(chat: Chat, earlier: frozenset[str] = frozenset()) -> None:
    """Expect the patches of a turn after its turn:start and before its turn:end."""
    turns_are_whole(chat, earlier)
    with expect.owned("BL-FLOW-04"):
        for turn in chat.turns:
            if turn.turn_id not in earlier:
                marks = [name for name, _ in _events(chat, turn)]
                between = ["turn:start", *["turn:patch"] * len(turn.patches), "turn:end"]
                expect.equal(f"the events of {turn.turn_id}", between, marks)


def the_user_is_first(chat: Chat) -> None:
    """Expect the user's turn first, and once."""
    begun = [turn for turn in chat.turns if turn.start is not None and is_message(turn.about)]
    roles = [turn.role for turn in begun]
    is_right = roles[:1] == ["user"] and roles.count("user") == 1
    expect.that(is_right, "the user's turn first, and once", chat.shown, "BL-FLOW-04")


def children_lie_within(chat: Chat) -> None:
    """Expect the turns of a sub-agent between its call and the call's result."""
    with expect.owned("BL-FLOW-20"):
        for turn in chat.turns:
            fork = parent(turn)
            if fork is not None:
                if not chat.places("turn:patch", patch_type="add_tool_call", id=fork):
                    chat.expect_announced()
                begun = chat.place("turn:patch", patch_type="add_tool_call", id=fork)
                done = chat.places("turn:patch", patch_type="tool_result", tool_call_id=fork)
                own = [at for at, (_, body) in enumerate(chat.events) if body.get("turn_id") == turn.turn_id]
                is_within = begun < own[0] and (not done or own[-1] < done[0])
                expect.that(is_within, "the sub-agent between call and result", chat.shown)


def in_order(chat: Chat, earlier: frozenset[str] | None = None) -> None:
    """Expect chat:start, the user's turn, the assistant's turns, chat:end, each within its bounds."""
    is_one_loop(chat)
    patches_lie_between(chat, earlier or frozenset())
    if earlier is None:
        the_user_is_first(chat)
        children_lie_within(chat)
