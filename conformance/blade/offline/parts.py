"""Sections block, tool_call and patch: the parts of turns, wherever they are shown."""

from collections.abc import Iterator
from typing import Any

from conformance.blade import block, tool_call
from conformance.blade.chat import ASK, FORK
from conformance.blade.offline.view import BladeView
from conformance.blade.schema_owners import PATCHES, expect_shape
from conformance.blade.snapshot import text_of
from conformance.kit import expect
from conformance.offline.recording import Exchange, mappings
from conformance.offline.rule import Rule, rule

Found = Iterator[Exchange | str]


def _blocks(view: BladeView) -> Iterator[tuple[str, Any]]:
    """Every block: of turns that were shown whole, and of patches."""
    for place, told in view.projections:
        yield from ((place, it) for it in mappings(told.get("blocks")))
    for place, patch in view.patches:
        if patch.get("patch_type") == "add_content" and isinstance(patch.get("data"), dict):
            yield place, patch["data"]


def _calls(view: BladeView) -> Iterator[tuple[str, Any]]:
    """Every call: of turns that were shown whole, and as it was announced."""
    for place, told in view.projections:
        yield from ((place, it) for it in mappings(told.get("tool_calls")))
    for place, patch in view.patches:
        if patch.get("patch_type") == "add_tool_call" and isinstance(patch.get("data"), dict):
            yield place, patch["data"]


@rule("BL-BLK-01", "BL-BLK-02", needs="block")
def blocks_have_a_known_type(view: BladeView) -> Found:
    """Every block has one of the twelve types, and strings (or nothing) for its tool."""
    for place, it in _blocks(view):
        yield place
        with expect.owned("BL-BLK-02"):
            expect.member("the type of a block", block.TYPES, it.get("type"))
        for name in ("tool_call_id", "tool_name", "display_name"):
            is_right = isinstance(it.get(name), (str, type(None)))
            expect.that(is_right, f"{name}: a string or null", it, "BL-BLK-01")


def _content(kind: str, fits: Any, what: str, requirement: str) -> Rule:
    def check(view: BladeView) -> Found:
        for place, it in _blocks(view):
            if it.get("type") == kind:
                yield place
                expect.that(fits(it), f"the content of a {kind} block to be {what}", it)

    check.__name__ = f"{kind}_blocks_have_their_content"
    check.__doc__ = f"The content of every {kind} block is {what}."
    return rule(requirement, needs=f"{kind} block")(check)


CONTENTS = tuple(_content(kind, fits, what, name) for name, kind, _, fits, what, _ in block.RULES)


def _whole(kind: str, requirement: str) -> Rule:
    def check(view: BladeView) -> Found:
        for spoken in view.completed:
            found = view.history(spoken.session, spoken.end)
            kept = {turn["turn_id"]: turn for turn in found[1]} if found is not None else {}
            for told in spoken.chat.replies:
                if told.end is not None and told.streamed(kind):
                    yield spoken.place
                    expect.equal(f"the {kind} blocks", told.streamed(kind), text_of(told.final, kind))
                    again = kept.get(told.turn_id, told.final)
                    expect.equal(f"the {kind} in the history", told.streamed(kind), text_of(again, kind))

    check.__name__ = f"{kind}_blocks_are_the_whole"
    check.__doc__ = f"The {kind} blocks of a turn, put together, are what was streamed and what the history keeps."
    return rule(requirement, needs=f"turn with streamed {kind}")(check)


WHOLES = (_whole("text", "BL-BLK-14"), _whole("thinking", "BL-BLK-15"))


def _patch(kind: str, requirement: str) -> Rule:
    def check(view: BladeView) -> Found:
        for place, patch in view.patches:
            if patch.get("patch_type") == kind:
                yield place
                expect_shape("event.turn-patch", patch, f"a patch {kind}")

    check.__name__ = f"every_{kind}_fits"
    check.__doc__ = f"Every patch {kind} has its envelope and its data."
    return rule(requirement, needs=f"patch {kind}")(check)


SHAPES = tuple(_patch(kind, name) for kind, name in PATCHES.items() if not kind.startswith("set_"))


@rule("BL-PATCH-01", "BL-PATCH-02", "BL-PATCH-08", "BL-PATCH-09", needs="patch")
def patches_are_of_five_kinds(view: BladeView) -> Found:
    """Every patch has its envelope, is of one of five kinds, and fits its kind."""
    for place, patch in view.patches:
        yield place
        expect_shape("event.turn-patch", patch, "a patch")


@rule("BL-PATCH-09", needs="chat with tools")
def call_patches_name_announced_calls(view: BladeView) -> Found:
    """tool_result and set_tool_status name a call that was announced before, in this chat or an earlier one."""
    for spoken in view.whole:
        known = {call["id"] for it in view.earlier(spoken) for call in it.chat.calls}
        for name, body in spoken.chat.events:
            if name == "turn:patch" and body["patch_type"] == "add_tool_call":
                known.add(body["data"]["id"])
            elif name == "turn:patch" and body["patch_type"] in ("tool_result", "set_tool_status"):
                yield spoken.place
                expect.member("tool_call_id", known, body["data"]["tool_call_id"])


@rule("BL-TC-01", needs="tool call")
def calls_are_complete(view: BladeView) -> Found:
    """A call has id, tool_name, display_name, arguments and status wherever it is shown."""
    for place, call in _calls(view):
        yield place
        expect.subset("a call", ["id", "tool_name", "display_name", "arguments", "status"], call)


@rule("BL-TC-02", "BL-TC-03", needs="tool call")
def calls_have_names(view: BladeView) -> Found:
    """tool_name and display_name are strings, and no two calls of a session have one id."""
    for place, call in _calls(view):
        yield place
        for name in ("id", "tool_name", "display_name"):
            is_word = isinstance(call.get(name), str) and bool(call[name].strip())
            expect.that(is_word, f"{name}: a string that says something", call)
    for item, _, turns in view.histories:
        yield item
        ids = [call["id"] for turn in turns for call in turn["tool_calls"]]
        expect.equal("calls with one id", len(ids), len(set(ids)))


@rule("BL-TC-04", needs="tool call")
def arguments_are_json_in_a_string(view: BladeView) -> Found:
    """arguments is a string that holds JSON."""
    for place, call in _calls(view):
        yield place
        expect.that(isinstance(call.get("arguments"), str), "arguments as a string", call)
        expect.parsed(call["arguments"], f"the arguments of {call.get('tool_name')}")


@rule("BL-TC-05", needs="tool call")
def a_status_is_one_of_five(view: BladeView) -> Found:
    """Calls have one of the five statuses."""
    for place, call in _calls(view):
        yield place
        expect.member("the status of a call", tool_call.STATUSES, call.get("status"))


@rule("BL-TC-06", needs="chat with a tool")
def a_status_says_what_a_call_is_doing(view: BladeView) -> Found:
    """A call is pending when announced (a question awaiting_answer), and not pending once its turn is completed.

    In a turn that is paused a call may wait with the question, to be carried out when it is answered.
    """
    for spoken in view.completed:
        for call in spoken.chat.calls:
            yield spoken.place
            wanted = "awaiting_answer" if call["tool_name"] == ASK else "pending"
            expect.equal("the status of a new call", wanted, call["status"])
    for place, told in view.projections:
        calls = mappings(told.get("tool_calls"))
        if told.get("status") == "completed" and calls and all(call.get("tool_name") != FORK for call in calls):
            yield place
            left = [call.get("status") for call in calls]
            expect.that("pending" not in left, "no call to be pending in a turn that is completed", left)


@rule("BL-TC-08", needs="tool call")
def a_reference_names_a_question(view: BladeView) -> Found:
    """pending_question_ref is null, or names a loop and an open question."""
    for place, call in _calls(view):
        ref = call.get("pending_question_ref")
        yield place
        if ref is not None:
            expect.that(isinstance(ref, dict) and "child_tool_call_id" in ref, "the question of a sub-agent", ref)
