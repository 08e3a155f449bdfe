"""Sections general and turn: every turn that was shown whole, in turn:end and in histories."""

from collections.abc import Iterator

from conformance.blade import turn
from conformance.blade.general import is_utc, times
from conformance.blade.offline.view import BladeView
from conformance.blade.schema_owners import damages, expect_shape
from conformance.blade.snapshot import text_of
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
COMPACTION = "compaction"


@rule("BL-GEN-01", "BL-TURN-01", needs="turn that was shown whole")
def turns_are_complete(view: BladeView) -> Found:
    """Every turn in turn:end and in the history has every field that is not optional."""
    for place, told in view.projections:
        yield place
        expect_shape("turn", told, "a turn")


@rule("BL-GEN-02", needs="time")
def times_are_in_utc(view: BladeView) -> Found:
    """Members that end in _at are ISO 8601 in UTC, on turns and on sessions."""
    shown = [*view.projections, *((item.place, body) for item, body in view.looks)]
    for place, told in shown:
        for value in times(told, []):
            yield place
            is_utc(value)


@rule("BL-GEN-03", needs="turn that was shown whole")
def ids_have_the_prefixes_of_the_examples(view: BladeView) -> Found:
    """Entries, turns and tool calls have ids that begin as in the examples."""
    for place, told in view.projections:
        yield place
        named = [("turn_", told.get("turn_id")), ("entry_", told.get("id"))]
        named += [("tc_", call.get("id")) for call in mappings(told.get("tool_calls"))]
        for prefix, name in named:
            expect.that(str(name).startswith(prefix), f"an id with the prefix {prefix}", name)


@rule("BL-TURN-06", needs="turn that was shown whole")
def kinds_are_message_or_compaction(view: BladeView) -> Found:
    """A turn is a message or a compaction, and the turns of a chat are messages."""
    for place, told in view.projections:
        yield place
        expect.member("the kind of a turn", ("message", COMPACTION), told.get("kind"))


@rule("BL-TURN-07", needs="chat")
def roles_say_who_spoke(view: BladeView) -> Found:
    """role is user, assistant or system, and a chat begins with the user's."""
    for place, told in view.projections:
        yield place
        expect.member("role", ("user", "assistant", "system"), told.get("role"))


@rule("BL-BLK-14", needs="chat")
def a_users_words_are_its_text(view: BladeView) -> Found:
    """The text of the user's turn is what was sent."""
    for spoken in view.whole:
        words = spoken.asked.get("message")
        if isinstance(words, str) and words and not spoken.is_answer and spoken.chat.users:
            yield spoken.place
            said = "".join(text_of(told.final) for told in spoken.chat.users)
            expect.equal("the user's words", words, said)


@rule("BL-TURN-08", needs="chat")
def statuses_say_what_became_of_a_turn(view: BladeView) -> Found:
    """An assistant turn starts streaming and ends otherwise; the user's turns are completed at their end."""
    for spoken in view.whole:
        for told in spoken.chat.replies:
            yield spoken.place
            expect.equal("the status at turn:start", "streaming", (told.start or {}).get("status"))
            expect.that(told.final["status"] != "streaming", "another status at turn:end", told.final["status"])
        for told in spoken.chat.users:
            expect.equal("the status of the user's turn at its end", "completed", told.final["status"])
        if spoken.status == "failed" and spoken.chat.replies:
            last = spoken.chat.replies[-1].final["status"]
            expect.equal("the status of the last turn of a failed chat", "failed", last)


@rule("BL-TURN-09", needs="turn that was shown whole")
def lists_are_always_there(view: BladeView) -> Found:
    """blocks and tool_calls are arrays on every turn, empty or not."""
    for place, told in view.projections:
        yield place
        for name in ("blocks", "tool_calls"):
            expect.that(isinstance(told.get(name), list), f"{name} to be an array", told)


@rule("BL-TURN-10", "BL-TURN-11", "BL-TURN-12", "BL-TURN-13", "BL-TURN-14", needs="turn that was shown whole")
def figures_are_of_their_types(view: BladeView) -> Found:
    """model, usage, duration_ms, started_at and context_window are of their types on every turn."""
    for place, told in view.projections:
        yield place
        for path, damaged in damages("turn", told, "a turn"):
            if path[0] in turn.FIGURES:
                damaged.look()
        if isinstance(told.get("context_window"), int):
            turn.has_figures(told)


@rule("BL-TURN-15", "BL-MREF-01", needs="turn that was shown whole")
def memory_refs_are_references(view: BladeView) -> Found:
    """memory_refs is null or a list of {id, content_preview, skill_name?}."""
    for place, told in view.projections:
        refs = told.get("memory_refs")
        yield place
        expect.that(refs is None or isinstance(refs, list), "memory_refs: null or an array", refs)
        for ref in refs or []:
            told_of = [mapping(ref).get(name) for name in ("id", "content_preview")]
            is_right = isinstance(told_of[0], int) and isinstance(told_of[1], str)
            expect.that(is_right, "an id and a content_preview", ref)


@rule("BL-TURN-17", needs="compaction turn")
def a_compaction_tells_what_it_did(view: BladeView) -> Found:
    """The members of a compaction turn are null or of their types, and the ratio fits the numbers."""
    for place, told in view.projections:
        if told.get("kind") == COMPACTION:
            yield place
            expect_shape("turn", told, "a compaction turn")
            before, after, ratio = (told.get(name) for name in ("tokens_before", "tokens_after", "saved_ratio"))
            if before and after is not None and ratio is not None:
                saved = max(0.0, 1 - after / before)
                expect.that(abs(saved - ratio) < 0.05, "saved_ratio to fit the tokens", told)


@rule("BL-TURN-18", needs="compaction turn")
def a_compaction_tells_its_trigger(view: BladeView) -> Found:
    """trigger is null, auto, manual or forced_retry."""
    for place, told in view.projections:
        if told.get("kind") == COMPACTION:
            yield place
            expect.that(told.get("trigger") in (None, "auto", "manual", "forced_retry"), "a known trigger", told)
