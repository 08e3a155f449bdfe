"""Sections flow and history: what was streamed is what the messages keep."""

from collections.abc import Iterator

from conformance.blade.chat import TurnEvents
from conformance.blade.meta import handed
from conformance.blade.offline.view import BladeView, RecordedChat
from conformance.blade.schema_owners import expect_shape
from conformance.blade.snapshot import is_message
from conformance.blade.turn_sources import keeps, lacks_nothing
from conformance.kit import expect
from conformance.offline.recording import Exchange, mappings
from conformance.offline.rule import Rule, rule

Found = Iterator[Exchange | str]


def _kept(view: BladeView, spoken: RecordedChat) -> dict[str, dict[str, object]] | None:
    """The turns of the history right after a chat, by turn_id."""
    found = view.history(spoken.session, spoken.end)
    return {str(turn["turn_id"]): turn for turn in found[1]} if found is not None else None


def _pairs(view: BladeView) -> Iterator[tuple[RecordedChat, TurnEvents, dict[str, object]]]:
    """Every turn of a chat that went on to its end, with the same turn in the history right after it."""
    for spoken in view.whole:
        kept = _kept(view, spoken)
        for turn in spoken.chat.turns if kept is not None else []:
            if turn.end is not None and kept is not None:
                yield spoken, turn, kept.get(turn.turn_id, {})


@rule("BL-FLOW-31", needs="chat with the messages right after it")
def the_history_is_what_was_streamed(view: BladeView) -> Found:
    """After a chat:end the messages have every turn that was streamed, its blocks and calls unaltered."""
    for spoken, turn, kept in _pairs(view):
        yield spoken.place
        expect.that(bool(kept), f"{turn.turn_id} in the history", spoken.chat.shown)
        if turn.start is not None:
            keeps(turn, kept)


@rule("BL-TURN-01", needs="chat with the messages right after it")
def a_turn_is_a_complete_snapshot(view: BladeView) -> Found:
    """The history lacks nothing of what turn:end told."""
    for spoken, turn, kept in _pairs(view):
        if kept:
            yield spoken.place
            lacks_nothing(turn, kept)


def _kept_member(name: str, requirement: str) -> Rule:
    def check(view: BladeView) -> Found:
        for spoken, turn, kept in _pairs(view):
            if kept:
                yield spoken.place
                expect.equal(f"{name} of {turn.turn_id} in the history", turn.final.get(name), kept.get(name))

    check.__name__ = f"{name}_is_kept"
    check.__doc__ = f"The history has the {name} of a turn that turn:end told."
    return rule(requirement, needs="chat with the messages right after it")(check)


MEMBERS = {"sequence": "03", "loop_id": "05", "kind": "06", "role": "07", "status": "08"}
KEPT = tuple(_kept_member(name, f"BL-TURN-{number}") for name, number in MEMBERS.items())


@rule("BL-FLOW-31", needs="history")
def the_history_is_in_order(view: BladeView) -> Found:
    """The turns of a history come in the order of their sequence."""
    for item, _, turns in view.histories:
        numbers = [turn["sequence"] for turn in turns if is_message(turn)]
        if numbers:
            yield item
            expect.that(numbers == sorted(set(numbers)), "sequences that increase", numbers)


@rule("BL-TURN-02", "BL-TURN-04", needs="chat with the messages right after it")
def ids_are_kept(view: BladeView) -> Found:
    """Events and history agree on the ids of a turn, and start and end do."""
    for spoken, turn, kept in _pairs(view):
        yield spoken.place
        seen = (turn.final["turn_id"], (turn.start or turn.final).get("id"), kept.get("id"))
        expect.equal("turn_id and id", (turn.turn_id, turn.final["id"], turn.final["id"]), seen)


@rule("BL-TURN-02", "BL-TURN-04", needs="history of several turns")
def ids_are_unique(view: BladeView) -> Found:
    """No entry id and no turn_id comes twice in a history."""
    for item, _, turns in view.histories:
        for name in ("id", "turn_id"):
            ids = [turn[name] for turn in turns]
            if len(ids) > 1:
                yield item
                expect.equal(f"as many different values of {name} as turns", len(ids), len(set(ids)))


@rule("BL-TURN-03", needs="history")
def sequences_count_from_zero(view: BladeView) -> Found:
    """The first turn has the sequence 0, each further one a higher number."""
    for item, _, turns in view.histories:
        if turns and all(is_message(turn) for turn in turns):
            yield item
            numbers = [turn["sequence"] for turn in turns]
            expect.equal("the first sequence", 0, numbers[0])
            expect.that(numbers == sorted(set(numbers)), "the sequences to increase", numbers)


@rule("BL-TURN-16", needs="chat with the messages right after it")
def parents_are_kept(view: BladeView) -> Found:
    """The history has the parent that turn:end told."""
    for spoken, turn, kept in _pairs(view):
        if kept:
            yield spoken.place
            name = "parent_fork_tool_call_id"
            expect.equal(f"the parent of {turn.turn_id}", turn.final.get(name), kept.get(name))


@rule("BL-TURN-15", needs="chat with the messages right after it")
def memory_refs_are_kept(view: BladeView) -> Found:
    """The history has the memory_refs that turn:end told."""
    for spoken, turn, kept in _pairs(view):
        if kept:
            yield spoken.place
            expect.equal("memory_refs in the history", turn.final.get("memory_refs"), kept.get("memory_refs"))


@rule("BL-TC-01", "BL-TC-03", needs="call with the messages right after it")
def calls_are_shown_at_the_end(view: BladeView) -> Found:
    """The calls a turn announced are those of its turn:end."""
    for spoken in view.whole:
        for turn in spoken.chat.replies:
            if turn.calls and turn.end is not None and not spoken.is_answer:
                yield spoken.place
                names = ("id", "tool_name", "display_name")
                wanted = [[call[name] for name in names] for call in turn.calls]
                seen = [[call[name] for name in names] for call in turn.final["tool_calls"]]
                expect.equal("the calls of turn:end", wanted, seen)


@rule("BL-TC-07", needs="finished call with the messages right after it")
def results_are_kept(view: BladeView) -> Found:
    """A finished call has, at turn:end and in the history, the result and duration its patch told."""
    for spoken, turn, kept in _pairs(view):
        told = {item["tool_call_id"]: item for item in turn.data("tool_result")}
        shown: list[dict[str, object]] = [*turn.final["tool_calls"], *(kept.get("tool_calls") or [])]  # type: ignore[misc]
        for call in shown:
            if call["id"] in told:
                yield spoken.place
                wanted = (told[call["id"]]["result"], told[call["id"]].get("duration_ms"))
                expect.equal("result and duration", wanted, (call.get("result"), call.get("duration_ms")))


@rule("BL-PATCH-09", needs="call with the messages right after it")
def call_status_changes_are_true(view: BladeView) -> Found:
    """The last status a patch told of a call is what the history shows."""
    for spoken, turn, kept in _pairs(view):
        told = {call["id"]: call["status"] for call in turn.calls}
        for item in (*turn.data("tool_result"), *turn.data("set_tool_status")):
            told[item["tool_call_id"]] = item["status"]
        calls: list[dict[str, object]] = kept.get("tool_calls") or []  # type: ignore[assignment]
        for call in calls:
            if call["id"] in told:
                yield spoken.place
                expect.equal(f"the status of {call['id']}", told[call["id"]], call["status"])


@rule("BL-META-01", "BL-META-02", needs="bridge action")
def a_bridge_is_an_action(view: BladeView) -> Found:
    """A bridge has an action and an object as payload."""
    for spoken in view.whole:
        for bridge in handed(spoken.chat, "bridge"):
            yield spoken.place
            expect_shape("bridge", bridge, "_meta.bridge")


@rule("BL-META-01", "BL-META-04", "BL-META-05", "BL-META-06", needs="card")
def a_card_has_one_resource_and_a_place(view: BladeView) -> Found:
    """A card has a target of inline or preview, and HTML or an address, never both and never neither."""
    for spoken in view.whole:
        for card in handed(spoken.chat, "ui"):
            yield spoken.place
            expect_shape("ui", card, "_meta.ui")
            given = [name for name in ("resourceHTML", "resourceUri") if card.get(name)]
            expect.that(len(given) == 1, "one resource of the card", given, "BL-META-05")


@rule("BL-BR-02", needs="bridge action")
def a_bridge_action_is_delivered_once(view: BladeView) -> Found:
    """Per call there is one action in turn:end and in the history."""
    for place, turn in view.projections:
        blocks = mappings(turn.get("blocks"))
        calls = [str(it.get("tool_call_id")) for it in blocks if it.get("type") == "tool_bridge"]
        if calls:
            yield place
            expect.equal("bridge blocks per call", len(set(calls)), len(calls))
    for spoken in view.whole:
        if handed(spoken.chat, "bridge"):
            yield spoken.place
            results = [item["tool_call_id"] for item in spoken.chat.results]
            expect.equal("results per call", len(set(results)), len(results))
