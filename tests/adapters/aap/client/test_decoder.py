"""AAP heard: what the house projects is what is heard again, and what strangers say becomes lawful or is refused."""

import inspect
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given

import adapters.aap.client.decoder
import gateway.model as m
from adapters.aap.client.decoder import Decoder, frame_decoder
from adapters.aap.client.readers import AAP
from adapters.aap.client.turn_stream import frames_of_body
from adapters.aap.server.stream_options import StreamMode, StreamOptions
from gateway.client import SseDecoder
from gateway.errors import BackendFailed
from gateway.ids import make_mint
from gateway.ports.remote import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd
from tests.support.dialect_tables import dialect
from tests.support.dialect_tables import table as table_of
from tests.support.dialects.aap.conversations import TOOLBOX, CheckingEngine, errors, facts, folded, talks
from tests.support.frames import bodies

STARTS = (m.TurnStarted, m.TurnResumed)


def heard_again(records: Sequence[m.Record], mode: StreamMode) -> CheckingEngine:
    """The records told by our outbound and heard again, answers being settled where they were given."""
    outbound, hearing, house = (
        dialect("aap").projector(table_of("aap"), StreamOptions(mode)),
        Decoder(make_mint(), TOOLBOX),
        CheckingEngine(),
    )
    refs = {r.event.request_id: r.event.call_id or r.event.request_id for r in records
            if isinstance(r.event, m.InputRequested)}
    for record in records:
        event = record.event
        if isinstance(event, m.InputAccepted) and isinstance(event.command, m.ANSWERS):
            [asked] = [asked for asked in house.asked if asked.ref == refs[event.command.request_id]]
            hearing.on_answer(asked, event.command)
        if isinstance(event, STARTS):
            house.start()
        house.take([one for frame in frames(bodies(outbound.feed(record)), mode) for one in hearing.feed(frame)])
    assert hearing.end() == [], "nothing was left open"
    return house


def frames(said: Sequence[bytes], mode: str) -> list[ParsedFrame]:
    if mode == "none":
        return [frame for body in said for frame in frames_of_body(orjson.loads(body))]
    return [ParsedFrame(event.name, orjson.loads(event.data)) for event in SseDecoder().feed(b"".join(said))]


# -- what our own server says -----------------------------------------------------------------------------------------
#
# Compared, of the agent itself: words and thoughts (in a row they are one: AAP does not tell where one block or message
# ends and the next begins), pictures, calls with id, name and input, results with their content, what was asked and
# of which call, where the turn waited, and how it ended; all of it in order. Whether a result is an error is compared
# where a client knows it by itself. Lost, as the table's `support` declares: sub-agents, data blocks, annotations,
# notices, titles, usage, custom events, output of tools, signatures, and the stop reasons that AAP has no word for.

@pytest.mark.parametrize("mode", ["delta", "message"])
@given(records=talks())
def test_what_is_streamed_is_heard_again_in_order(mode: str, records: list[m.Record]) -> None:
    heard = heard_again(records, mode)
    assert facts(heard.records, mode=mode) == facts(records, mode=mode)
    assert errors(heard.records) == errors(records)
    assert folded(heard.records) == folded(records)


@given(records=talks(loose=False))
def test_a_whole_turn_is_heard_as_its_history_has_it(records: list[m.Record]) -> None:
    """In this mode messages come one after the other, so only what they add up to is the same as in the log."""
    heard = heard_again(records, "none")
    assert folded(heard.records) == folded(records)
    ends = ("waits", "ended")
    assert [f for f in facts(heard.records) if f[0] in ends] == [f for f in facts(records) if f[0] in ends]


def test_the_words_of_the_table_are_read_backwards() -> None:
    for word, reason in {
        "end_turn": m.StopReason.END_TURN, "max_tokens": m.StopReason.MAX_TOKENS, "refusal": m.StopReason.REFUSAL,
        "error": m.StopReason.ERROR, "never heard of": "never heard of",
    }.items():
        assert frame_decoder().decode("turn_stop", {"stopReason": word}) == ("turn.ended", {"stop_reason": reason})
    assert frame_decoder().decode("turn_stop", {"stopReason": "tool_use"}) == ("turn.suspended", {})
    result = frame_decoder().decode("tool_result", {"toolCallId": "c"})
    assert result == ("tool.returned", {"call_id": "c", "content": None})
    assert AAP.table is AAP.table, "loaded once"


def test_a_hearing_knows_no_socket_and_no_clock() -> None:
    source = inspect.getsource(adapters.aap.client.decoder)
    for word in ("import asyncio", "import time", "aiohttp", "datetime", "import random"):
        assert word not in source


# -- what strangers say -----------------------------------------------------------------------------------------------

def hear(*said: tuple[str, Any], hearing: Decoder | None = None) -> list[DecodedItem]:
    """A turn of these frames between its start and its stop."""
    hearing = hearing or Decoder(make_mint(), TOOLBOX)
    whole = [("turn_start", {}), *said]
    return [one for name, body in whole for one in hearing.feed(ParsedFrame(name, body))]


def end(reason: str = "end_turn") -> tuple[str, Any]:
    return "turn_stop", {"stopReason": reason}


def call(name: str, call_id: str = "c1", **given: Any) -> tuple[str, Any]:
    return "tool_call", {"toolCallId": call_id, "name": name, "input": given}


def lawful(heard: Sequence[DecodedItem]) -> list[Any]:
    house = CheckingEngine()
    house.start()
    house.take(heard)
    return facts(house.records)


def words(text: str) -> tuple[str, Any]:
    return "text_delta", {"delta": text}


def test_a_result_ends_the_message_and_words_begin_another() -> None:
    heard = hear(words("Let me see."), call("clock"), ("tool_result", {"toolCallId": "c1", "content": "noon"}),
                 words("It is noon."), end())
    stops = [one.stop_reason for one in heard if isinstance(one, m.MessageEnded)]
    assert stops == [m.StopReason.TOOL_USE, m.StopReason.END_TURN]
    assert lawful(heard) == [("text", "Let me see."), ("call", "c1", "clock", {}), ("result", "c1", "noon"),
                             ("text", "It is noon."), ("ended", "end_turn")]


def test_words_and_thoughts_are_said_as_they_come() -> None:
    hearing = Decoder(make_mint())
    hear(words("a"), hearing=hearing)
    for frame, delta in ((("thinking_delta", {"delta": "b"}), "b"), (words("c"), "c")):
        assert [one.delta for one in hearing.feed(ParsedFrame(*frame)) if isinstance(one, m.BlockDelta)] == [delta]
    mixed = hear(words("a"), ("thinking_delta", {"delta": "b"}), words("c"), words("d"), end())
    assert lawful(mixed) == [("text", "a"), ("thinking", "b"), ("text", "cd"), ("ended", "end_turn")]


def test_unknown_frames_and_members_say_nothing() -> None:
    heard = hear(("usage", {"tokens": 3}), ("text_delta", {"delta": "hi", "index": 4}), ("message", "garbage"),
                 ("", None), ("ping", []), end())
    assert lawful(heard) == [("text", "hi"), ("ended", "end_turn")]


def test_the_name_of_a_frame_may_be_inside() -> None:
    said = [("message", {"event": "text_delta", "delta": "hi"}), ("message", {"event": "turn_stop", **end()[1]})]
    assert lawful(hear(*said)) == [("text", "hi"), ("ended", "end_turn")]


def test_a_turn_that_does_not_say_that_it_starts_is_heard() -> None:
    hearing = Decoder(make_mint())
    heard = [one for name, body in (words("hi"), end()) for one in hearing.feed(ParsedFrame(name, body))]
    assert lawful(heard) == [("text", "hi"), ("ended", "end_turn")]


def test_nothing_is_heard_after_the_end_until_another_turn_starts() -> None:
    hearing = Decoder(make_mint())
    heard = hear(words("a"), end(), words("b"), call("clock"), end("refusal"), hearing=hearing)
    assert lawful(heard) == [("text", "a"), ("ended", "end_turn")]
    assert lawful(hear(words("c"), end("refusal"), hearing=hearing)) == [("text", "c"), ("ended", "refusal")]


def test_a_second_start_changes_nothing() -> None:
    assert lawful(hear(words("a"), ("turn_start", {}), words("b"), end())) == [("text", "ab"), ("ended", "end_turn")]


@pytest.mark.parametrize(("name", "body"), [
    ("text_delta", {}), ("text_delta", {"delta": 3}), ("text_delta", None), ("text_delta", []),
    ("text", {"delta": "x"}), ("thinking_delta", {"delta": None}), ("thinking", {}), ("tool_call", {"name": "clock"}),
    ("tool_call", {"toolCallId": "", "name": "clock"}), ("tool_call", {"toolCallId": "c", "name": 1}),
    ("tool_call", {"toolCallId": "c", "name": "clock", "input": "{}"}), ("tool_result", {"content": "x"}),
    ("tool_result", {"toolCallId": "c", "content": 5}), ("turn_stop", {}), ("turn_stop", {"stopReason": 1}),
])
def test_a_broken_frame_is_refused_in_clear_words(name: str, body: Any) -> None:
    hearing = Decoder(make_mint(), TOOLBOX)
    began = hear(words("a"), hearing=hearing)
    with pytest.raises(BackendFailed, match=rf"a {name} of the server cannot be understood: .+"):
        hearing.feed(ParsedFrame(name, body))
    assert lawful([*began, *hearing.end(), RemoteTurnEnd(outcome=m.Outcome.FAILED)])[0] == ("text", "a")


def test_a_call_without_input_has_an_empty_one() -> None:
    bare = ("tool_call", {"toolCallId": "c1", "name": "clock"})
    assert lawful(hear(bare, ("tool_result", {"toolCallId": "c1"}), end())) == [
        ("call", "c1", "clock", {}), ("result", "c1", ""), ("ended", "end_turn"),
    ]


def test_two_calls_that_are_open_under_one_id_end_the_turn_with_a_fault() -> None:
    heard = hear(call("clock"), call("calc"), words("more"), end())
    assert isinstance(heard[-1], RemoteTurnEnd) and heard[-1].fault is not None
    assert "two calls with one id" in heard[-1].fault.message
    assert lawful(heard)[0] == ("call", "c1", "clock", {})


def test_an_id_may_be_used_again_when_its_call_is_over() -> None:
    back = ("tool_result", {"toolCallId": "c1", "content": "noon"})
    twice = [("call", "c1", "clock", {}), ("result", "c1", "noon")] * 2
    assert lawful(hear(call("clock"), back, call("clock"), back, end())) == [*twice, ("ended", "end_turn")]


def test_a_result_of_a_call_nobody_made_and_a_second_result_say_nothing() -> None:
    back = ("tool_result", {"toolCallId": "c1", "content": "noon"})
    assert lawful(hear(back, call("clock"), back, back, end())) == [
        ("call", "c1", "clock", {}), ("result", "c1", "noon"), ("ended", "end_turn"),
    ]


def test_a_result_may_be_made_of_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image", "url": "data:image/png;base64,AA=="},
             {"type": "video", "url": "x"}]
    heard = hear(call("clock"), ("tool_result", {"toolCallId": "c1", "content": parts}), end())
    [back] = [one for one in heard if isinstance(one, m.ToolReturned)]
    assert [type(part).__name__ for part in back.content] == ["TextPart", "ImagePart"]
    lawful(heard)


@pytest.mark.parametrize("kind", ["text_delta", "text"])
def test_a_piece_of_text_that_is_a_picture_is_one(kind: str) -> None:
    member = "delta" if kind == "text_delta" else "text"
    url = "https://example.test/a.png"
    heard = hear(words("see "), (kind, {member: f"![image]({url})"}), words("there"), end())
    assert lawful(heard) == [("text", "see "), ("image", url), ("text", "there"), ("ended", "end_turn")]
    inline = f"see ![image]({url})"
    assert lawful(hear((kind, {member: inline}), end())) == [("text", inline), ("ended", "end_turn")]


def test_whole_parts_are_blocks_of_their_own() -> None:
    heard = hear(("text", {"text": "a"}), ("text", {"text": "b"}), ("thinking", {"thinking": "c"}), end())
    assert [one.text for one in heard if isinstance(one, m.BlockEnded)] == ["a", "b", "c"]
    lawful(heard)


# -- how it ends ------------------------------------------------------------------------------------------------------

def test_an_error_is_a_fault_without_words_of_the_server() -> None:
    heard = hear(words("I am"), end("error"))
    assert heard[-1] == RemoteTurnEnd(stop_reason=m.StopReason.ERROR, outcome=m.Outcome.FAILED, fault=heard[-1].fault)
    assert heard[-1].fault.code is m.FaultCode.BACKEND
    assert [one.outcome for one in heard if isinstance(one, m.MessageEnded)] == [m.Outcome.FAILED]
    lawful(heard)


def test_a_reason_nobody_knows_is_an_error_that_names_it() -> None:
    heard = hear(words("a"), end("pause_turn"))
    assert isinstance(heard[-1], RemoteTurnEnd) and heard[-1].fault and "'pause_turn'" in heard[-1].fault.message
    lawful(heard)


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_why_it_stopped_is_told_with_the_message_and_with_the_turn(reason: str) -> None:
    heard = hear(words("a"), end(reason))
    assert [one.stop_reason for one in heard if isinstance(one, m.MessageEnded | RemoteTurnEnd)] == [reason, reason]


def test_a_stream_that_breaks_off_is_closed_without_an_end() -> None:
    hearing = Decoder(make_mint())
    heard = [*hear(("thinking_delta", {"delta": "hm"}), hearing=hearing), *hearing.end()]
    assert [type(one).__name__ for one in heard[-2:]] == ["BlockEnded", "MessageEnded"]
    assert hearing.feed(ParsedFrame(*words("more"))) == []


# -- waiting ----------------------------------------------------------------------------------------------------------

def asked(heard: Sequence[DecodedItem]) -> list[RemoteAsk]:
    return [one for one in heard if isinstance(one, RemoteAsk)]


def test_a_server_that_waits_asks_for_what_it_left_open() -> None:
    hearing = Decoder(make_mint(), TOOLBOX)
    heard = hear(call("clock", "c1"), call("calc", "c2", expression="1"), call("camera", "c3"),
                 ("tool_result", {"toolCallId": "c1", "content": "noon"}), end("tool_use"), hearing=hearing)
    assert hearing.paused
    assert [(one.ask.kind, one.ref) for one in asked(heard)] == [("permission", "c2"), ("client_tool", "c3")]
    waits = [one.call_id for one in heard if isinstance(one, m.ToolStatusChanged)]
    assert waits == ["c2", "c3"]
    assert all(one.status is m.ToolStatus.AWAITING_INPUT for one in heard if isinstance(one, m.ToolStatusChanged))
    ask = asked(heard)[0].ask
    assert isinstance(ask, m.PermissionAsk) and ask.description == "Run Calculator?"
    assert (ask.call.permission, asked(heard)[1].ask.call.origin) == (m.Permission.ASK, m.ToolOrigin.CLIENT)  # type: ignore[union-attr]
    lawful(heard)


def test_a_server_that_waits_for_nothing_has_failed() -> None:
    heard = hear(words("a"), end("tool_use"))
    assert isinstance(heard[-1], RemoteTurnEnd) and heard[-1].fault and "has called none" in heard[-1].fault.message
    lawful(heard)


def answered(*said: tuple[str, Any]) -> list[Any]:
    """A call of the calculator that was denied, a picture that was taken, then these frames."""
    hearing, house = Decoder(make_mint(), TOOLBOX), CheckingEngine()
    house.start()
    house.take(hear(call("calc", "c1"), call("camera", "c2"), end("tool_use"), hearing=hearing))
    permission, picture = house.asked
    hearing.on_answer(permission, m.DecidePermission(request_id="a1", granted=False, reason="no"))
    hearing.on_answer(picture, m.ReturnResult(request_id="a2", content="click", is_error=True))
    house.start()
    house.take(hear(*said, hearing=hearing))
    return [(r.event.call_id, r.event.content, r.event.is_error)
            for r in house.records if isinstance(r.event, m.ToolReturned)]


def test_what_the_client_carried_out_is_told_when_the_turn_goes_on() -> None:
    denied = ("tool_result", {"toolCallId": "c1", "content": "Not allowed."})
    assert answered(denied, words("ok"), end()) == [("c2", "click", True), ("c1", "Not allowed.", True)]


def test_a_denial_that_the_server_does_not_tell_is_told_when_it_goes_on() -> None:
    expected = [("c2", "click", True), ("c1", "Tool call denied: no", True)]
    assert answered(words("ok"), end()) == expected
    assert answered(end()) == expected
    noon = ("tool_result", {"toolCallId": "c3", "content": "noon"})
    assert answered(call("clock", "c3"), noon, end())[:2] == expected


def test_what_was_permitted_comes_back_when_the_server_says_so() -> None:
    hearing, house = Decoder(make_mint(), TOOLBOX), CheckingEngine()
    house.start()
    house.take(hear(call("calc"), end("tool_use"), hearing=hearing))
    hearing.on_answer(house.asked[0], m.DecidePermission(request_id="a1", granted=True))
    house.start()
    back = ("tool_result", {"toolCallId": "c1", "content": "42"})
    house.take(hear(words("Working. "), back, words("Done."), end(), hearing=hearing))
    assert facts(house.records)[-4:] == [("text", "Working. "), ("result", "c1", "42"), ("text", "Done."),
                                         ("ended", "end_turn")]


def test_calls_made_before_the_hearing_began_come_back_in_it() -> None:
    first = Decoder(make_mint(), TOOLBOX)
    house = CheckingEngine()
    house.start()
    house.take(hear(call("inner", "c1"), call("calc", "c2"), end("tool_use"), hearing=first))
    late = Decoder(make_mint(), TOOLBOX)
    inner = next(r.event.call for r in house.records if isinstance(r.event, m.BlockEnded) and r.event.call)
    late.recall([inner])
    late.on_answer(house.asked[0], m.DecidePermission(request_id="a1", granted=True))
    house.start()
    house.take(hear(("tool_result", {"toolCallId": "c2", "content": "42"}),
                    ("tool_result", {"toolCallId": "c1", "content": "done"}), end(), hearing=late))
    assert [f for f in facts(house.records) if f[0] == "result"] == [("result", "c2", "42"), ("result", "c1", "done")]
