"""A server that loses the last event of its streams: where its history has the finished turn, the turn is finished."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

import gateway.model as m
from adapters.aap.bodies import MessageBody
from adapters.aap.client.decoder import frame_decoder
from adapters.aap.client.missing_frames import ReceivedPieces, missing_frames
from adapters.aap.client.readers import AAP
from gateway.errors import GatewayError
from gateway.ports.remote import DecodedItem, ParsedFrame, RemoteTurnEnd
from mappings.language import DecodedFrame
from tests.support.client.byte_server import Answer, says, stream
from tests.support.client.byte_server import serving as scripted
from tests.support.dialects.aap.remote_conversation import MADE, SETTINGS, START, all_of, answer_to, conversing, event

NONE = says(b'{"error": "not found"}', 404)
HI, HELLO = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello there"}
CALL = {"type": "tool_use", "toolCallId": "c1", "name": "weather", "input": {"city": "Pera"}}
CALLED = {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, CALL]}
RESULT = {"role": "tool", "toolCallId": "c1", "content": "sunny"}


def meta(*kinds: str) -> Answer:
    capabilities = {"stream": {"delta": {}}, "application": {"tools": {}}, "history": {kind: {} for kind in kinds}}
    return says(orjson.dumps({"version": 3, "agents": [
        {"name": "stranger", "version": "1.0.0", "capabilities": capabilities}]}))


def kept(*messages: Any, kind: str = "full") -> Answer:
    return says(orjson.dumps({"history": {kind: messages}}))


def words(*deltas: str) -> Answer:
    """A stream without its last event."""
    return stream(START, *(event("text_delta", delta=delta) for delta in deltas))


def told(heard: Sequence[DecodedItem]) -> str:
    return "".join(one.delta for one in heard if isinstance(one, m.BlockDelta) and one.kind is m.BlockKind.TEXT)


async def say(*answers: Answer, strict: bool = False) -> Sequence[DecodedItem]:
    async with scripted(*answers) as server, conversing(server.url, is_strict=strict) as talk:
        heard = await all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi")))
        talk.house.start()
        talk.house.take(heard)
        return heard


# -- over the line ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["full", "compacted"])
@pytest.mark.parametrize("heard", [("Hello ", "there"), ("Hello ",), ()], ids=["whole", "begun", "nothing"])
async def test_a_turn_that_the_history_has_is_finished(kind: str, heard: tuple[str, ...]) -> None:
    with capture_logs() as logs:
        said = await say(meta(kind), MADE, words(*heard), NONE, kept(HI, HELLO, kind=kind))
    assert (told(said), said[-1]) == ("Hello there", RemoteTurnEnd())
    [line] = [line for line in logs if line["event"] == "turn_stop_missing"]
    assert (line["log_level"], line["upstream_session"]) == ("warning", "s1")


@pytest.mark.parametrize(("history", "heard"), [
    ([HI], ("Hello ",)), ([], ("Hello ",)), ([HI, {"role": "assistant", "content": "Good day"}], ("Hello ",)),
    ([HI, HELLO], ("Hello there", "!")), ([{"role": "user", "content": "other"}, HELLO], ("Hello there",)),
    ([HI, HELLO, HI, HELLO], ("Hello there",)), ([HI, CALLED, RESULT], ("Let me see.",)),
], ids=["no answer", "nothing", "other words", "more words", "other message", "two messages", "ends with a result"])
async def test_a_turn_that_the_history_does_not_have_fails(history: list[Any], heard: tuple[str, ...]) -> None:
    with pytest.raises(GatewayError, match="ended its stream before the turn was over"):
        await say(meta("full"), MADE, words(*heard), NONE, kept(*history))


@pytest.mark.parametrize(("answers", "strict"), [
    ((meta(), MADE, words("Hello there"), NONE), False),
    ((meta("full"), MADE, words("Hello there"), NONE, says(b"{}", 500)), False),
    ((meta("full"), MADE, words("Hello there"), NONE, kept(HI, HELLO)), True),
], ids=["no history", "no answer", "strict"])
async def test_a_turn_fails_if_the_history_cannot_or_must_not_be_asked(answers: Any, strict: bool) -> None:
    with pytest.raises(GatewayError, match="ended its stream before the turn was over"):
        await say(*answers, strict=strict)


async def test_a_turn_that_waits_is_answered_and_finished() -> None:
    called = stream(START, event("text_delta", delta="Let me see."))
    answers = (
        meta("full"), MADE, called, NONE, kept(HI, CALLED), words("It is "), NONE,
        kept(HI, CALLED, RESULT, {"role": "assistant", "content": "It is sunny."}),
    )
    async with scripted(*answers) as server, conversing(server.url, SETTINGS) as talk:
        [asked] = await talk.hear(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi")))
        assert (asked.ask.kind, asked.ref) == ("client_tool", "c1")
        assert not await talk.hear(talk.remote.answer(talk.session_id, [(asked, answer_to(asked.ask))]))
    assert (told(talk.heard), talk.heard[-1]) == ("Let me see.It is sunny.", RemoteTurnEnd())


# -- what is missing --------------------------------------------------------------------------------------------------

def transcript(*frames: ParsedFrame) -> ReceivedPieces:
    heard = ReceivedPieces()
    for frame in frames:
        heard.add(frame)
    return heard


def messages(*said: Any) -> list[MessageBody]:
    return [AAP.read_as(MessageBody, one, "a message") for one in said]


def words_of(delta: str) -> DecodedFrame:
    return DecodedFrame("block.delta.text", {"delta": delta})


STOP = DecodedFrame("turn.ended", {"stop_reason": m.StopReason.END_TURN})
SEE, HEARD_CALL = (
    ParsedFrame("text", {"text": "Let me see."}),
    ParsedFrame("tool_call", {k: CALL[k] for k in CALL if k != "type"}),
)
HEARD_RESULT = ParsedFrame("tool_result", {"toolCallId": "c1", "content": "sunny"})
TOLD_CALL, TOLD_RESULT = (frame_decoder().decode(frame.name, frame.body) for frame in (HEARD_CALL, HEARD_RESULT))
DONE = [HI, CALLED, RESULT, {"role": "assistant", "content": [
    {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Sunny"}, {"type": "text", "text": "."}]}]


@pytest.mark.parametrize(("heard", "missing"), [
    ([SEE, HEARD_CALL, HEARD_RESULT, ParsedFrame("text", {"text": "Sunny."})], []),
    ([SEE, HEARD_CALL, HEARD_RESULT], [words_of("Sunny.")]),
    ([SEE, HEARD_CALL], [TOLD_RESULT, words_of("Sunny.")]),
    ([SEE], [TOLD_CALL, TOLD_RESULT, words_of("Sunny.")]),
])
def test_what_is_missing_is_told_in_order(heard: list[ParsedFrame], missing: list[DecodedFrame]) -> None:
    assert missing_frames(messages(*DONE), transcript(*heard), []) == [*missing, STOP]


def test_a_turn_that_was_continued_begins_after_what_was_returned() -> None:
    heard = transcript(HEARD_RESULT, ParsedFrame("text_delta", {"delta": "Sun"}))
    assert missing_frames(messages(*DONE), heard, ["c1"]) == [words_of("ny."), STOP]
    assert missing_frames(messages(*DONE[:2]), heard, ["c1"]) is None
    assert missing_frames(messages(*DONE), heard, ["c1", "c2"]) is None


def test_a_turn_with_an_open_call_waits() -> None:
    assert missing_frames(messages(HI, CALLED), transcript(SEE), []) == [TOLD_CALL, DecodedFrame("turn.suspended", {})]
