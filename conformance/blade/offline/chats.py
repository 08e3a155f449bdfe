"""Sections flow, fork, headless, patch and turn: whole chats, judged as the live cases judge them."""

from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs

from conformance.blade import flow, fork, gap, patch, turn
from conformance.blade.chat import ASK, FORK, Chat
from conformance.blade.event_order import in_order
from conformance.blade.offline.view import BladeView, RecordedChat
from conformance.blade.snapshot import is_message
from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule

Found = Iterator[Exchange | str]
Kind = Callable[[RecordedChat], bool]


def _every(ids: str, what: str, judge: Callable[[Chat], None], is_kind: Kind) -> Rule:
    """A rule that puts every chat of a kind to the judge of a live case."""

    def check(view: BladeView) -> Found:
        for spoken in view.whole:
            if is_kind(spoken):
                yield spoken.place
                judge(view.own(spoken))

    check.__name__ = judge.__name__
    check.__doc__ = judge.__doc__
    return rule(*ids.split(), needs=what)(check)


def _said(spoken: RecordedChat) -> bool:
    """A message of the user's, and no answer to a question; a compaction on the way keeps an order of its own."""
    is_plain = all(is_message(turn.about) for turn in spoken.chat.turns)
    return is_plain and not spoken.is_answer and bool(spoken.asked.get("message"))


def _completed(spoken: RecordedChat) -> bool:
    return _said(spoken) and spoken.status == "completed"


def _tools(spoken: RecordedChat) -> list[str]:
    return [call["tool_name"] for call in spoken.chat.calls]


def _finished(spoken: RecordedChat) -> bool:
    """Completed, and nothing was asked of the user."""
    return _completed(spoken) and ASK not in _tools(spoken)


def _plain(spoken: RecordedChat) -> bool:
    return _finished(spoken) and not _tools(spoken) and not spoken.asked.get("output_schema")


def _one_tool(spoken: RecordedChat) -> bool:
    return _finished(spoken) and len(_tools(spoken)) == 1 and FORK not in _tools(spoken)


def _one_done(spoken: RecordedChat) -> bool:
    """One tool, which did not fail: a failure is told as the result, with a status of its own."""
    return _one_tool(spoken) and all(item["status"] != "error" for item in spoken.chat.results)


def _with_tools(spoken: RecordedChat) -> bool:
    return _finished(spoken) and bool(_tools(spoken)) and FORK not in _tools(spoken)


def _rounds(spoken: RecordedChat) -> bool:
    return _with_tools(spoken) and len([it for it in spoken.chat.replies if it.calls]) > 1


def _forked(spoken: RecordedChat) -> bool:
    return _finished(spoken) and _tools(spoken).count(FORK) == 1


def _turns(judge: Callable[[Any], None]) -> Callable[[Chat], None]:
    """A judge of chats made of a judge of turns."""

    def judged(chat: Chat) -> None:
        for told in (*chat.replies, *chat.children):
            if told.end is not None:
                judge(told)

    judged.__name__, judged.__doc__ = judge.__name__, judge.__doc__
    return judged


def _fork(judge: Callable[[Chat, Any], None]) -> Callable[[Chat], None]:
    def judged(chat: Chat) -> None:
        judge(chat, chat.call(FORK))

    judged.__name__, judged.__doc__ = judge.__name__, judge.__doc__
    return judged


JUDGED = (
    _every("BL-FLOW-01", "chat of a message", flow.is_one_loop, _completed),
    _every("BL-FLOW-02", "chat that went well", flow.ends_with_text, _finished),
    _every("BL-FLOW-03", "chat", flow.turns_are_whole, _finished),
    _every("BL-FLOW-04", "chat without tools", flow.is_plain, _plain),
    _every("BL-FLOW-05", "chat with text", _turns(flow.adds_up), _finished),
    _every("BL-FLOW-06", "chat with a tool that went well", flow.announces_and_answers, _one_done),
    _every("BL-FLOW-07", "chat with tools", flow.results_are_of_calls, _with_tools),
    _every("BL-FLOW-08", "chat with a tool", flow.goes_on_to_its_text, _one_tool),
    _every("BL-FLOW-09", "chat with several rounds of tools", flow.rounds_are_in_order, _rounds),
    _every("BL-FLOW-30", "chat", _turns(flow.tells_everything), _finished),
    _every("BL-PATCH-05", "chat with text", _turns(patch.is_cumulative), _completed),
    _every("BL-PATCH-07", "chat with a tool", patch.results_are_whole, _with_tools),
    _every("BL-PATCH-08", "chat", _turns(patch.status_is_true), _said),
    _every("BL-TURN-05", "chat", turn.has_loops, _completed),
    _every("BL-TURN-16", "chat with a sub-agent", turn.expect_children, _forked),
    _every("BL-FLOW-19", "chat with a sub-agent", _fork(fork.is_fork), _forked),
    _every("BL-FLOW-20", "chat with a sub-agent", _fork(fork.speaks_between), _forked),
    _every("BL-FLOW-21", "chat with a sub-agent", _fork(fork.ends_with_its_result), _forked),
    _every("BL-GAP-08", "chat with patches", gap.counts_patches, _completed),
)


@rule("BL-FLOW-04", "BL-FLOW-25", needs="chat")
def every_chat_is_in_order(view: BladeView) -> Found:
    """chat:start, the user's turn, the assistant's turns, chat:end, each within its bounds, headless or not."""
    for spoken in view.whole:
        if _said(spoken):
            yield spoken.place
            in_order(view.own(spoken))


@rule("BL-FLOW-25", needs="headless chat")
def a_headless_chat_tells_its_events(view: BladeView) -> Found:
    """With headless the events are those of any chat, text deltas included."""
    for spoken in view.completed:
        if spoken.asked.get("headless") and _said(spoken):
            yield spoken.place
            has_text = bool(spoken.chat.replies) and bool(spoken.chat.replies[-1].patches)
            expect.that(has_text, "text deltas", spoken.chat.shown)


@rule("BL-FLOW-26", needs="headless chat")
def a_headless_chat_has_a_result(view: BladeView) -> Found:
    """chat:end has the session, the status, the finish_reason, and the whole text as result.output."""
    for spoken in view.completed:
        if spoken.asked.get("headless") and not spoken.asked.get("output_schema") and not spoken.is_paused:
            yield spoken.place
            end = spoken.chat.end
            expect.equal("session_id", spoken.session, end.get("session_id"))
            expect.member("finish_reason", ("completed", "max_turns"), end.get("finish_reason"))
            result = end.get("result")
            expect.that(isinstance(result, dict), "result to be an object", end)
            expect.equal("result.output", spoken.chat.text, (result or {}).get("output"))


@rule("BL-FLOW-27", needs="headless chat with an output_schema")
def an_output_fits_the_schema_asked_for(view: BladeView) -> Found:
    """With output_schema result.output is an object that fits, and result.schema is a schema."""
    for spoken in view.completed:
        schema = spoken.asked.get("output_schema")
        if isinstance(schema, dict) and spoken.asked.get("headless") and not spoken.is_paused:
            yield spoken.place
            result: Any = spoken.chat.end.get("result")
            expect.that(isinstance(result, dict) and "output" in result, "a result with output", spoken.chat.end)
            found = jsonschema_rs.Draft202012Validator(schema).iter_errors(result["output"])
            problems = [error.message for error in found]
            expect.equal("what keeps result.output from fitting the schema", [], problems)
            expect.that(isinstance(result.get("schema"), dict), "result.schema to be an object", result)


@rule("BL-FLOW-22", needs="chat with a sub-agent")
def all_turns_are_in_one_stream(view: BladeView) -> Found:
    """Each turn of the stream has no parent or a fork call, and stays what it was."""
    for spoken in view.whole:
        forks = {call["id"] for it in [*view.earlier(spoken), spoken] for call in it.chat.calls}
        if FORK in _tools(spoken):
            yield spoken.place
            for told in spoken.chat.turns:
                parent = told.about.get("parent_fork_tool_call_id")
                expect.that(parent is None or parent in forks, "no parent, or a fork call", dict(told.about))
                begun = (told.start or told.about).get("parent_fork_tool_call_id")
                expect.equal("the parent at start and end", begun, parent)


@rule("BL-PATCH-01", needs="chat with patches")
def patches_name_session_and_loop(view: BladeView) -> Found:
    """Every patch names its session, its turn and that turn's loop."""
    for spoken in view.completed:
        if _said(spoken) and any(told.patches for told in spoken.chat.turns):
            yield spoken.place
            patch.has_envelopes(spoken.chat, spoken.session)


@rule("BL-PATCH-04", needs="chat with text")
def deltas_are_increments(view: BladeView) -> Found:
    """All text_deltas of a turn, put together, are the text it ends with."""
    for spoken in view.completed:
        for told in spoken.chat.replies:
            if told.end is not None and told.streamed():
                yield spoken.place
                texts = [it["content"] for it in told.final["blocks"] if it["type"] == "text"]
                expect.equal("the deltas, put together", "".join(texts), told.streamed())


@rule("BL-WS-06", needs="chat that was stopped")
def a_stopped_chat_is_interrupted(view: BladeView) -> Found:
    """A chat that ends interrupted has turn:end (interrupted) before it, and what was said is kept in it."""
    for spoken in view.whole:
        if spoken.status == "interrupted" and spoken.chat.replies:
            yield spoken.place
            last = spoken.chat.replies[-1]
            expect.equal("the status of turn:end", "interrupted", last.final["status"])
            with expect.owned("BL-FLOW-05"):
                flow.adds_up(last)


@rule("BL-GAP-23", needs="chat that failed")
def a_failure_is_told_in_order(view: BladeView) -> Found:
    """turn:end (failed), system:error with the session, chat:end (failed)."""
    for spoken in view.whole:
        if spoken.status == "failed" and spoken.chat.replies:
            yield spoken.place
            names = [it.name for it in spoken.packets]
            expect.that("system:error" in names, "a system:error before chat:end", names)
            told = spoken.packets[names.index("system:error")].body
            expect.equal("the session_id of the error", spoken.session, (told or {}).get("session_id"))
            spoken.chat.place("turn:end", role="assistant", status="failed")
