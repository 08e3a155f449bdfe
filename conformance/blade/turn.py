"""Section turn: TurnProjections, in events and in the history."""

from collections.abc import Callable, Mapping
from typing import Any

from conformance.blade.chat import FORK, Chat
from conformance.blade.examination import BladeExamination
from conformance.blade.snapshot import is_message, parent_of, plain
from conformance.blade.talk import Talk
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable

STATUSES = ("streaming", "completed", "paused", "failed", "interrupted")


RICH = ("fork", "bridge", "ui", "plan", "annotate", "fail", "ask")
"""Situations whose turns have more in them than a tool's do."""


@requirement("BL-TURN-01")
async def a_turn_is_a_complete_snapshot(exam: BladeExamination) -> None:
    """turn:end and the history show the same complete turn, for the user and for the assistant."""
    talk = await exam.open()
    await _expect_kept(talk, await talk.play("tool"))
    for situation in exam.profile.having(RICH):
        chat = await talk.play(situation)
        await _expect_kept(talk, chat)
        if situation == "ask":
            await _expect_kept(talk, await talk.answer(chat.question()))


async def _expect_kept(talk: Talk, chat: Chat) -> None:
    kept = {turn["turn_id"]: turn for turn in await talk.messages()}
    for told in chat.turns:
        expect.that(told.turn_id in kept, f"{told.turn_id} in the history", sorted(kept))
        if told.start is not None:
            expect.equal(f"the turn {told.turn_id} in the history", plain(told.final), plain(kept[told.turn_id]))


async def _history(talk: Talk, *situations: str) -> list[dict[str, Any]]:
    for situation in situations:
        await talk.play(situation)
    return await talk.messages()


@requirement("BL-TURN-02", "BL-TURN-04")
async def ids_are_unique_and_kept(exam: BladeExamination) -> None:
    """Over several chats no entry id and no turn_id comes twice, and events and history agree on both."""
    talk = await exam.open()
    chats = [await talk.play("text"), await talk.play("tool")]
    kept = await talk.messages()
    told = [turn for chat in chats for turn in chat.turns]
    for name in ("id", "turn_id"):
        ids = [turn[name] for turn in kept]
        expect.equal(f"as many different values of {name} as turns", len(ids), len(set(ids)))
    pairs = {(turn["turn_id"], turn["id"]) for turn in kept}
    for turn in told:
        expect.equal("the turn_id of turn:end", turn.turn_id, turn.final["turn_id"])
        begun = (turn.start or {}).get("id", turn.final["id"])
        expect.equal("the entry id at the start and the end", begun, turn.final["id"])
        expect.that((turn.turn_id, turn.final["id"]) in pairs, f"{turn.turn_id} in the history under its id", kept)


@requirement("BL-TURN-03")
async def sequences_count_from_zero(exam: BladeExamination) -> None:
    """The first turn has the sequence 0, each further one a higher number, in events and history alike."""
    talk = await exam.open()
    chats = [await talk.play("text"), await talk.play("text")]
    told = [turn.final["sequence"] for chat in chats for turn in chat.turns]
    kept = [turn["sequence"] for turn in await talk.messages()]
    for turn in (turn for chat in chats for turn in chat.turns):
        begun = (turn.start or {}).get("sequence", turn.final["sequence"])
        expect.equal(f"the sequence of {turn.turn_id} at its start and end", begun, turn.final["sequence"])
    for what, seen in (("turn:end", told), ("the history", kept)):
        expect.equal(f"the first sequence of {what}", 0, seen[0])
        expect.that(seen == sorted(set(seen)), f"the sequences of {what} to increase", seen)


@requirement("BL-TURN-05")
async def the_root_loop_is_root(exam: BladeExamination) -> None:
    """Root turns and their patches have the loop_id root; a sub-agent's turns have one of their own."""
    chat = await (await exam.open()).play("fork")
    has_loops(chat)


def has_loops(chat: Chat) -> None:
    """Expect root turns in the loop root, and others elsewhere."""
    for turn in (*chat.users, *chat.replies):
        expect.equal("the loop_id of a root turn", "root", turn.final["loop_id"])
    for turn in chat.children:
        expect.that(turn.final["loop_id"] != "root", "another loop_id than root for a sub-agent", turn.final)
    for turn in chat.turns:
        begun = (turn.start or {}).get("loop_id", turn.final["loop_id"])
        loops = {patch["loop_id"] for patch in turn.patches} | {begun, turn.final["loop_id"]}
        expect.equal(f"the loops {turn.turn_id} and its patches speak of", 1, len(loops))


@requirement("BL-TURN-06")
async def turns_of_a_chat_are_messages(exam: BladeExamination) -> None:
    """What is said in a chat has the kind message."""
    for turn in await _history(await exam.open(), "text", "tool"):
        expect.equal("the kind of a turn", "message", turn["kind"])


@requirement("BL-TURN-06")
async def summaries_are_compactions(exam: BladeExamination) -> None:
    """When the agent compacts its own history, what is not a message is a compaction, and the chat goes on."""
    talk = await exam.open()
    await talk.play("text")
    (await talk.play("compact")).ended("completed")
    for turn in await talk.messages():
        expect.member("the kind of a turn", ("message", "compaction"), turn["kind"])
    (await talk.play("text")).ended("completed")


@requirement("BL-TURN-07")
async def roles_say_who_spoke(exam: BladeExamination) -> None:
    """A chat begins with a turn of the user that has the user's words, and goes on with the assistant's."""
    talk = await exam.open()
    words = exam.profile.prompt("text")
    turns = [turn for turn in await _history(talk, "text") if turn["role"] != "system"]
    expect.equal("the roles", ["user", "assistant"], [turn["role"] for turn in turns])
    said = [block.get("content") for block in turns[0]["blocks"] if block["type"] == "text"]
    expect.equal("the user's words", words, "".join(str(item) for item in said))


@requirement("BL-TURN-08")
async def statuses_say_what_became_of_a_turn(exam: BladeExamination) -> None:
    """An assistant turn starts streaming and ends completed, paused by a question, or failed by a failure."""
    for situation, final in (("text", "completed"), ("ask", "paused"), ("fail", "failed")):
        chat = await (await exam.open()).play(situation)
        turn = chat.reply
        expect.equal("the status at turn:start", "streaming", (turn.start or {}).get("status"))
        expect.equal(f"the status at turn:end ({situation})", final, turn.final["status"])
        for user in chat.users:
            expect.equal("the status of the user's turn at its end", "completed", user.final["status"])


@requirement("BL-TURN-09")
async def lists_are_always_there(exam: BladeExamination) -> None:
    """blocks and tool_calls are arrays on every turn, empty or not."""
    talk = await exam.open()
    chat = await talk.play("tool")
    for turn in [*(turn.final for turn in chat.turns), *await talk.messages()]:
        for name in ("blocks", "tool_calls"):
            expect.that(isinstance(turn[name], list), f"{name} to be an array", turn)
    ids = [call["id"] for turn in await talk.messages() for call in turn["tool_calls"]]
    expect.equal("the calls in the history", [call["id"] for call in chat.calls], ids)


FIGURES: dict[str, Callable[[Any], bool]] = {
    "model": lambda value: value is None or isinstance(value, str),
    "usage": lambda value: value is None or _is_usage(value),
    "duration_ms": lambda value: _count(value),
    "started_at": lambda value: value is None or isinstance(value, str),
    "context_window": lambda value: _count(value) and value > 0,
}


def _is_usage(value: Any) -> bool:
    return isinstance(value, dict) and all(_count(value.get(name)) for name in ("input_tokens", "output_tokens"))


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@requirement("BL-TURN-10", "BL-TURN-11", "BL-TURN-12", "BL-TURN-13", "BL-TURN-14")
async def figures_are_of_their_types(exam: BladeExamination) -> None:
    """model, usage, duration_ms, started_at and context_window are of their types on every turn."""
    talk = await exam.open()
    chat = await talk.play("text")
    for turn in [*(turn.final for turn in chat.turns), *await talk.messages()]:
        has_figures(turn)


def has_figures(turn: Mapping[str, Any]) -> None:
    """Expect model, usage, duration_ms, started_at and context_window of their types."""
    for name, fits in FIGURES.items():
        expect.that(fits(turn.get(name)), f"{name} of its type", turn)


@requirement("BL-TURN-15", "BL-MREF-01")
async def memory_refs_are_references(exam: BladeExamination) -> None:
    """memory_refs is null or a list of {id, content_preview, skill_name?}, in events and history alike."""
    talk = await exam.open()
    chat = await talk.play("annotate")
    kept = {turn["turn_id"]: turn for turn in await talk.messages()}
    for turn in chat.turns:
        expect.equal("memory_refs in the history", _references(turn.final), _references(kept[turn.turn_id]))


def _references(turn: Mapping[str, Any]) -> list[list[Any]] | None:
    refs = turn.get("memory_refs")
    return refs and [[ref["id"], ref["content_preview"], ref.get("skill_name")] for ref in refs]


@requirement("BL-TURN-16")
async def parents_are_fork_calls(exam: BladeExamination) -> None:
    """Root turns have no parent; a sub-agent's name the fork call, in events and history alike."""
    talk = await exam.open()
    chat = await talk.play("fork")
    expect_children(chat)
    kept = {turn["turn_id"]: parent_of(turn) for turn in await talk.messages()}
    for turn in chat.turns:
        expect.equal(f"the parent of {turn.turn_id} in the history", parent_of(turn.final), kept.get(turn.turn_id))


def expect_children(chat: Chat) -> None:
    """Expect the turns of sub-agents to name fork calls."""
    forks = [call["id"] for call in chat.calls if call["tool_name"] == FORK]
    expect.that(bool(chat.children), "turns of a sub-agent, as the profile promises", chat.shown)
    for turn in chat.children:
        expect.member("parent_fork_tool_call_id", forks, parent_of(turn.final))


async def compacted(talk: Talk) -> list[dict[str, Any]]:
    """The compaction turns after the client asked for one."""
    for _ in range(2):
        await talk.play("text")
    with expect.preparing("a compaction"):
        ack = await talk.link.call("chat:compact", {"session_id": talk.session})
    if not isinstance(ack, dict) or ack.get("status") != "ok":
        raise NotTestable(f"the server would not compact: {expect.show(ack)}")
    found = [turn for turn in await talk.messages() if not is_message(turn)]
    if not found:
        raise NotTestable("the history shows no compaction")
    return found


@requirement("BL-TURN-17")
async def a_compaction_tells_what_it_did(exam: BladeExamination) -> None:
    """The members of a compaction turn are null or of their types; count and ratio fit the turns and the numbers."""
    talk = await exam.open()
    for turn in await compacted(talk):
        exam.fit("turn", turn, "a compaction turn")
        told = {item.body["turn_id"] for item in talk.link.heard if item.name == "turn:end"}
        archived = turn.get("archived_count") or 0
        expect.that(archived <= len(told), f"archived_count of {len(told)} turns at most", archived)
        before, after, ratio = (turn.get(name) for name in ("tokens_before", "tokens_after", "saved_ratio"))
        if before and after is not None and ratio is not None:
            saved = max(0.0, 1 - after / before)  # a short history may grow, and the ratio is not below 0
            expect.that(abs(saved - ratio) < 0.05, "saved_ratio to fit tokens_before and _after", turn)


@requirement("BL-TURN-18")
async def a_compaction_tells_its_trigger(exam: BladeExamination) -> None:
    """A compaction the client asked for is manual, if it says anything."""
    for turn in await compacted(await exam.open()):
        expect.that(turn.get("trigger") in (None, "manual"), "trigger: manual or null", turn)
