"""Section streaming: the events of the turns in the recording, their order, and what they add up to."""

from collections.abc import Iterator

from conformance.aap.examination import SCHEMAS
from conformance.aap.exchange import blocks, of_messages
from conformance.aap.offline.history import abandons, leaves_out
from conformance.aap.offline.view import AapView, RecordedTurn
from conformance.aap.streaming import expect_ends, expect_vocabulary
from conformance.aap.turn import DECIDED_BY, REASONS, STREAMED, Event, Turn
from conformance.kit import expect
from conformance.offline.recording import Ending, Exchange
from conformance.offline.rule import Rule, rule

Found = Iterator[Exchange | str]


def _shape(name: str, requirement: str) -> Rule:
    """The rule that every event of this name fits its schema."""

    def check(view: AapView) -> Found:
        for turn in view.turns:
            for told in turn.exchange.events if turn.is_accepted and turn.exchange.is_stream else []:
                if told.event.event == name:
                    yield told.place
                    body = expect.parsed(told.event.data, f"the data of `{name}`")
                    SCHEMAS.fit(f"event.{name}", body, f"the data of `{name}`")

    check.__name__ = f"every_{name}_fits"
    check.__doc__ = f"The data of every {name} is an object with its members."
    return rule(requirement, needs=f"event `{name}`")(check)


SHAPES = tuple(_shape(name, requirement) for name, requirement in DECIDED_BY.items())


@rule("AAP-SSE-01", needs="streamed turn")
def a_stream_opens_and_closes_once(view: AapView) -> Found:
    """The first event is turn_start, the last turn_stop, and neither comes again."""
    for turn in view.turns:
        if turn.is_accepted and turn.mode in STREAMED and turn.exchange.is_whole:
            yield turn.exchange
            expect.equal("the content type", "text/event-stream", turn.exchange.content_type)
            expect_ends(Turn(turn.mode, turn.exchange.asked, _names(turn)))


def _names(turn: RecordedTurn) -> tuple[Event, ...]:
    """The events without their data, which other rules judge."""
    return tuple((told.event.event, {}) for told in turn.exchange.events)


def _vocabulary(view: AapView, mode: str) -> Found:
    for turn in view.streamed:
        if turn.mode == mode:
            yield turn.exchange
            expect_vocabulary(Turn(mode, turn.exchange.asked, _names(turn)))


@rule("AAP-SSE-02", needs="turn in the mode delta")
def delta_mode_speaks_in_deltas(view: AapView) -> Found:
    """In delta mode there are no events of another mode."""
    yield from _vocabulary(view, "delta")


@rule("AAP-SSE-03", needs="turn in the mode message")
def message_mode_speaks_in_wholes(view: AapView) -> Found:
    """In message mode there are no events of another mode."""
    yield from _vocabulary(view, "message")


@rule("AAP-SSE-03", needs="turn in the mode message with the history before and after it")
def every_part_is_one_event(view: AapView) -> Found:
    """The text and thinking events are, one for one, the parts of the assistant messages in the history."""
    for turn, told in view.told:
        kept = view.kept(turn) if turn.mode == "message" and told.stop != "error" else None
        if kept is not None:
            yield turn.exchange
            parts = [block for it in kept if it["role"] == "assistant" for block in blocks(it["content"])]
            wanted = [(it["type"], it[it["type"]]) for it in parts if it["type"] in ("text", "thinking")]
            seen = [(name, body[name]) for name, body in told.events if name in ("text", "thinking")]
            expect.equal("the parts told in message mode, as the history has them", wanted, seen)


@rule("AAP-SSE-04", needs="streamed tool call")
def calls_have_ids_of_their_own(view: AapView) -> Found:
    """No two calls of a session have one id."""
    for turn, told in view.told:
        if told.calls:
            yield turn.exchange
            others = [it for it in view.turns_of(turn.session) if it is not turn]
            ids = [call["toolCallId"] for call in told.calls]
            ids += [call["toolCallId"] for it in others if it.told is not None for call in it.told.calls]
            expect.equal("ids that more than one call has", [], sorted({it for it in ids if ids.count(it) > 1}))


@rule("AAP-SSE-04", needs="tool call of a turn with the history before and after it")
def calls_are_those_of_the_history(view: AapView) -> Found:
    """What is announced as tool_call is what the history keeps."""
    for turn, told in view.told:
        kept = view.kept(turn) if told.calls and told.stop != "error" else None
        if kept is not None:
            yield turn.exchange
            wanted = [item for item in of_messages(kept).said if item[0] == "call"]
            seen = [it for it in told.exchange.said if it[0] == "call"]
            expect.equal("the calls, as the history has them", wanted, seen)


@rule("AAP-SSE-05", needs="streamed tool result")
def results_follow_their_calls(view: AapView) -> Found:
    """A tool_result comes after its tool_call, of this turn or of the one that stopped for it, and once."""
    for turn, told in view.told:
        if turn.mode not in STREAMED or not told.named("tool_result"):
            continue
        yield turn.exchange
        asked = view.asked_before(turn)
        known = {call["toolCallId"] for call in asked or ()}
        is_known = asked is not None
        answered: set[str] = set()
        for name, body in told.events:
            if name == "tool_call":
                known.add(body["toolCallId"])
            elif name == "tool_result" and is_known:
                seen = body["toolCallId"]
                is_right = seen in known and seen not in answered
                expect.that(is_right, "a tool_result after its call, and once", told.names)
                answered.add(seen)


@rule("AAP-SSE-05", needs="streamed tool result of a session whose tools are known")
def client_tools_have_no_result_event(view: AapView) -> Found:
    """No tool_result is sent for a tool of the client."""
    for turn, told in view.told:
        setup = view.setup(turn.session, turn.exchange.order)
        calls = told.calls + (view.asked_before(turn) or [])
        if setup is not None and turn.mode in STREAMED and calls:
            yield turn.exchange
            names = {call["toolCallId"]: call["name"] for call in calls}
            told_for = [names.get(body["toolCallId"]) for body in told.named("tool_result")]
            expect.equal("results of client tools", [], [name for name in told_for if name in setup.client_names])


@rule("AAP-SSE-06", "AAP-SSE-07", needs="turn that stopped")
def the_reason_is_true(view: AapView) -> Found:
    """tool_use leaves a call open, and end_turn leaves none."""
    for turn, told in view.told:
        if told.body is None and not told.named("turn_stop"):
            continue
        yield turn.exchange
        answered = {str(message.get("toolCallId")) for message in turn.messages}
        pending = view.pending(turn) if "user" not in turn.roles else []
        waiting = [call for call in pending or [] if call["toolCallId"] not in answered] + told.open_calls
        if told.stop == "tool_use":
            expect.that(bool(waiting) or pending is None, "an open call at a tool_use stop", told.shown)
        elif told.stop == "end_turn":
            expect.equal("calls left open at the stop", [], [call["name"] for call in waiting])


@rule("AAP-SSE-07", needs="turn that stopped with tool_use, of a session whose tools are known")
def a_tool_use_stop_waits_for_the_client(view: AapView) -> Found:
    """What is left open at a tool_use stop is a client tool or an untrusted server tool."""
    for turn, told in view.told:
        setup = view.setup(turn.session, turn.exchange.order)
        if setup is not None and told.calls and told.stop == "tool_use":
            yield turn.exchange
            waiting = [call["name"] for call in told.open_calls]
            inline = [name for name in waiting if setup.tools.get(name) and name not in setup.client_names]
            expect.equal("trusted tools that wait for the client", [], inline)


@rule("AAP-SSE-08", needs="turn with the history before and after it")
def a_stream_tells_what_the_history_keeps(view: AapView) -> Found:
    """In every mode what the client was told of a turn is what the full history has of it."""
    for turn, told in view.told:
        kept = view.kept(turn) if turn.roles == {"user"} and told.stop != "error" else None
        if kept is not None and not abandons(view, turn):
            yield turn.exchange
            same = told.exchange.shown == of_messages(kept).shown
            owner = "AAP-NONE-01" if told.body is not None and leaves_out(told.messages, kept) else None
            expected = f"the turn as the history has it ({turn.mode}): {expect.show(of_messages(kept).shown)}"
            expect.that(same, expected, told.exchange.shown, owner)


@rule("AAP-SSE-09", needs="streamed turn that failed")
def a_failure_ends_the_stream_in_good_order(view: AapView) -> Found:
    """A stream is never cut: a turn that fails ends with turn_stop and the reason error."""
    for turn in view.turns:
        if turn.is_accepted and turn.mode in STREAMED and _has_failed(turn):
            yield turn.exchange
            names = [told.event.event for told in turn.exchange.events]
            expect.that(turn.exchange.ending is not Ending.CUT, "the stream not to be cut", names[-3:])
            expect.equal("the last event of a failed turn", ["turn_stop"], names[-1:])


def _has_failed(turn: RecordedTurn) -> bool:
    is_error = turn.told is not None and bool(turn.told.named("turn_stop")) and turn.told.stop == "error"
    return is_error or turn.exchange.ending is Ending.CUT


@rule("AAP-SSE-06", needs="turn in the mode none")
def none_names_its_reason(view: AapView) -> Found:
    """In the mode none the reason is one of the five, too."""
    for turn in view.turns:
        if turn.is_accepted and turn.mode == "none" and turn.exchange.is_whole and isinstance(turn.exchange.json, dict):
            yield turn.exchange
            expect.member("stopReason", REASONS, turn.exchange.json.get("stopReason"))


@rule("AAP-NONE-01", needs="turn in the mode none")
def none_is_one_json_body(view: AapView) -> Found:
    """In the mode none the answer is application/json with the stop reason and the messages."""
    for turn in view.turns:
        if turn.is_accepted and turn.mode == "none" and turn.exchange.is_whole:
            yield turn.exchange
            expect.equal("the content type", "application/json", turn.exchange.content_type)
            SCHEMAS.fit("turn", turn.exchange.reply.json(), f"the answer to {turn.exchange.asked}")


@rule("AAP-NONE-01", needs="turn in the mode none in which a trusted server tool ran")
def none_has_the_whole_exchange(view: AapView) -> Found:
    """The body has the inline results too, each after its call."""
    for turn, told in view.told:
        setup = view.setup(turn.session, turn.exchange.order)
        if setup is None or told.body is None or told.stop == "error":
            continue
        trusted = [call["toolCallId"] for call in told.calls if setup.tools.get(call["name"])]
        if trusted:
            yield turn.exchange
            expect.subset("the calls with a result", trusted, told.exchange.results)
            if turn.roles == {"user"}:
                expect.equal("who spoke first", "assistant", told.body["messages"][0]["role"])
