"""Section turn: TurnProjections, in events and in the history."""

from collections.abc import Mapping
from typing import Any

from conformance.blade.chat import FORK, Chat
from conformance.blade.conversation import Conversation
from conformance.blade.damaged_members import is_damaged, sound
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import Scene, Turn, messages, scene
from conformance.blade.snapshot import is_message, parent_of
from conformance.blade.turn_sources import distinct_calls, lacks_nothing
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable

RICH = ("fork", "bridge", "ui", "plan", "annotate", "fail", "ask")
"""Situations whose turns have more in them than a tool's do."""
COMPACTED = "a compacted session"


def kept_as_told(seen: Scene, name: str) -> None:
    """Expect the history to have this member of a turn as turn:end told it."""
    for turn, kept in seen.pairs:
        expect.equal(f"{name} of {turn.turn_id} in the history", turn.final.get(name), kept.get(name))


def begun_as_ended(chat: Chat, name: str) -> None:
    """Expect turn:start, where it has this member, to say what turn:end says."""
    for turn in chat.turns:
        begun = (turn.start or {}).get(name, turn.final[name])
        expect.equal(f"{name} of {turn.turn_id} at its start and end", begun, turn.final[name])


@requirement("BL-TURN-01")
async def a_turn_is_a_complete_snapshot(exam: BladeExamination) -> None:
    """The history lacks nothing of what turn:end told, for the user and for the assistant."""
    for situation in ("tool", *exam.profile.having(RICH)):
        for turn, kept in (await scene(exam, situation)).pairs:
            lacks_nothing(turn, kept)


def _different(turns: list[Turn], name: str) -> None:
    values = [turn[name] for turn in turns]
    expect.equal(f"as many different values of {name} as turns", len(values), len(set(values)))


@requirement("BL-TURN-02")
async def entry_ids_are_unique_and_kept(exam: BladeExamination) -> None:
    """Over several chats no entry id comes twice, and events and history agree on it."""
    for situation in ("text", "tool"):
        seen = await scene(exam, situation)
        _different(seen.kept(), "id")
        for chat in seen.chats:
            begun_as_ended(chat, "id")
        kept_as_told(seen, "id")


@requirement("BL-TURN-04")
async def ids_are_unique_and_kept(exam: BladeExamination) -> None:
    """Over several chats no turn_id comes twice, and the history knows the turns by it."""
    for situation in ("text", "tool"):
        seen = await scene(exam, situation)
        _different(seen.kept(), "turn_id")
        told = [turn.turn_id for turn in seen.turns]
        expect.equal("as many different turn_ids as turns", len(told), len(set(told)))
        owner = None if any(turn.end for turn in seen.turns) else "BL-FLOW-03"
        expect.that(bool(seen.pairs), "the turns in the history under their turn_id", told, owner)


@requirement("BL-TURN-03")
async def sequences_count_from_zero(exam: BladeExamination) -> None:
    """The first turn has the sequence 0, each further one a higher number, in events and history alike."""
    seen = await scene(exam, "text")
    told = [turn.final["sequence"] for turn in seen.turns]
    expect.equal("the first sequence", 0, min([*told, *(turn["sequence"] for turn in seen.kept())]))
    expect.that(told == sorted(set(told)), "the sequences of turn:end to increase", told)
    for chat in seen.chats:
        begun_as_ended(chat, "sequence")
    kept_as_told(seen, "sequence")


@requirement("BL-TURN-05")
async def the_root_loop_is_root(exam: BladeExamination) -> None:
    """Root turns have the loop_id root; a sub-agent's turns have one of their own."""
    seen = await scene(exam, "fork")
    has_loops(seen.chat())
    kept_as_told(seen, "loop_id")


def has_loops(chat: Chat) -> None:
    """Expect root turns in the loop root, and others elsewhere."""
    for turn in (*chat.users, *chat.replies):
        expect.equal("the loop_id of a root turn", "root", turn.final["loop_id"])
    for turn in chat.children:
        expect.that(turn.final["loop_id"] != "root", "another loop_id than root for a sub-agent", turn.final)
    begun_as_ended(chat, "loop_id")


@requirement("BL-TURN-06")
async def turns_of_a_chat_are_messages(exam: BladeExamination) -> None:
    """What is said in a chat has the kind message."""
    for situation in ("text", "tool"):
        seen = await scene(exam, situation)
        for turn in seen.kept():
            expect.equal("the kind of a turn", "message", turn["kind"])
        kept_as_told(seen, "kind")


@requirement("BL-TURN-06")
async def summaries_are_compactions(exam: BladeExamination) -> None:
    """When the agent compacts its own history, what is not a message is a compaction."""
    for turn in (await scene(exam, "compact")).kept():
        expect.member("the kind of a turn", ("message", "compaction"), sound(turn["kind"]))


@requirement("BL-TURN-07")
async def roles_say_who_spoke(exam: BladeExamination) -> None:
    """A chat begins with a turn of the user and goes on with the assistant's, in the history as in events."""
    seen = await scene(exam, "text")
    seen.chat()
    roles = [turn["role"] for turn in messages(seen.kept(0)) if sound(turn["role"]) != "system"]
    expect.equal("the roles", ["user", "assistant"], sorted(roles, reverse=True))
    kept_as_told(seen, "role")


@requirement("BL-TURN-08")
async def statuses_say_what_became_of_a_turn(exam: BladeExamination) -> None:
    """An assistant turn starts streaming and ends completed, or failed by a failure, and is kept so."""
    for situation, final in (("text", "completed"), ("ask", None), ("fail", "failed")):
        seen = await scene(exam, situation)
        turn = seen.chat().reply
        expect.equal("the status at turn:start", "streaming", (turn.start or {}).get("status"))
        if final is not None:
            expect.equal(f"the status at turn:end ({situation})", final, turn.final["status"])
        for user in seen.chat().users:
            expect.equal("the status of the user's turn at its end", "completed", user.final["status"])
        for told, kept in seen.pairs[: len(seen.chat().turns)]:
            expect.equal(f"the status of {told.turn_id} in the history", told.final["status"], kept["status"])


@requirement("BL-TURN-09")
async def lists_are_always_there(exam: BladeExamination) -> None:
    """blocks and tool_calls are arrays on every turn, empty or not."""
    seen = await scene(exam, "tool")
    for turn in [*(turn.final for turn in seen.turns), *seen.kept()]:
        for name in ("blocks", "tool_calls"):
            expect.that(isinstance(sound(turn[name]), list), f"{name} to be an array", turn)


@requirement("BL-TURN-10", "BL-TURN-11", "BL-TURN-12", "BL-TURN-13", "BL-TURN-14")
async def figures_are_of_their_types(exam: BladeExamination) -> None:
    """model, usage, duration_ms, started_at and context_window are of their types on every turn."""
    seen = await scene(exam, "text")
    for turn in [*(turn.final for turn in seen.turns), *seen.kept()]:
        has_figures(turn)


FIGURES = ("model", "usage", "duration_ms", "started_at", "context_window")


def has_figures(turn: Mapping[str, Any]) -> None:
    """Expect model, usage, duration_ms, started_at and context_window of their types.

    A turn that no model spoke may have no window to speak of.
    """
    for name in FIGURES:
        sound(turn.get(name))
    window = turn["context_window"]
    is_right = window > 0 or repr(turn["role"]) != repr("assistant")
    expect.that(is_right, "the context_window of the assistant above 0", window, "BL-TURN-14")


@requirement("BL-TURN-15", "BL-MREF-01")
async def memory_refs_are_references(exam: BladeExamination) -> None:
    """memory_refs is null or a list of {id, content_preview, skill_name?}, in events and history alike."""
    for turn, kept in (await scene(exam, "annotate")).pairs:
        told, seen = _references(turn.final), _references(kept)
        expect.that(told == seen, f"memory_refs in the history: {expect.show(told)}", seen, "BL-TURN-15")


def _references(turn: Mapping[str, Any]) -> list[list[Any]] | None:
    refs = turn.get("memory_refs")
    return refs and [[ref["id"], ref["content_preview"], ref.get("skill_name")] for ref in refs]


@requirement("BL-TURN-16")
async def parents_are_fork_calls(exam: BladeExamination) -> None:
    """Root turns have no parent; a sub-agent's name the fork call, in events and history alike."""
    seen = await scene(exam, "fork")
    expect_children(seen.chat())
    kept_as_told(seen, "parent_fork_tool_call_id")


def expect_children(chat: Chat) -> None:
    """Expect the turns of sub-agents to name fork calls."""
    distinct_calls(chat)
    forks = [call["id"] for call in chat.calls if call["tool_name"] == FORK]
    if not chat.children:
        chat.expect_calls()
    expect.that(bool(chat.children), "turns of a sub-agent, as the profile promises", chat.shown, "BL-FLOW-20")
    if not forks:
        chat.expect_announced()
    for turn in chat.children:
        expect.member("parent_fork_tool_call_id", forks, parent_of(turn.final))


class Compacted:
    """A session that the client had compacted: the acknowledgement, the history then, and how many turns there were."""

    def __init__(self, ack: Any, kept: list[Turn], told: int) -> None:
        self.ack = ack
        self.kept = kept
        self.told = told

    @property
    def summaries(self) -> list[Turn]:
        """The compaction turns; if there are none, the case cannot be put."""
        if not isinstance(self.ack, dict) or self.ack.get("status") != "ok":
            raise NotTestable(f"the server would not compact: {expect.show(self.ack)}")
        for turn in self.kept:
            if is_damaged(turn["kind"]):
                sound(turn["kind"])
        if found := [turn for turn in self.kept if not is_message(turn)]:
            return found
        raise NotTestable("the history shows no compaction")


async def compacted(exam: BladeExamination) -> Compacted:
    """A session of two chats, compacted as the client asked; made once for all cases that look at it."""
    exam.profile.prompt("text")
    return await exam.http.observations.once(COMPACTED, _compacted)


async def _compacted(exam: BladeExamination) -> Compacted:
    talk: Conversation = await exam.open()
    chats = [await talk.play("text") for _ in range(2)]
    with expect.owned("BL-WS-07"):
        ack = await talk.link.call("chat:compact", {"session_id": talk.session})
    return Compacted(ack, await talk.messages(), len([turn for chat in chats for turn in chat.turns]))


@requirement("BL-TURN-17")
async def a_compaction_tells_what_it_did(exam: BladeExamination) -> None:
    """The members of a compaction turn are null or of their types; count and ratio fit the turns and the numbers."""
    found = await compacted(exam)
    for turn in found.summaries:
        archived = turn.get("archived_count") or 0
        expect.that(archived <= found.told, f"archived_count of {found.told} turns at most", archived)
        before, after, ratio = (turn.get(name) for name in ("tokens_before", "tokens_after", "saved_ratio"))
        if before and after is not None and ratio is not None:
            saved = max(0.0, 1 - after / before)  # a short history may grow, and the ratio is not below 0
            expect.that(abs(saved - ratio) < 0.05, "saved_ratio to fit tokens_before and _after", turn)


@requirement("BL-TURN-18")
async def a_compaction_tells_its_trigger(exam: BladeExamination) -> None:
    """A compaction the client asked for is manual, if it says anything."""
    for turn in (await compacted(exam)).summaries:
        expect.that(turn.get("trigger") in (None, "manual"), "trigger: manual or null", turn)
