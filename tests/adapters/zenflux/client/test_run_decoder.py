"""Single things a ZenFlux server may say, by the letter of the documents and a little beside it."""

from itertools import count
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.zenflux.asks import AskRef, decode_ref, encode_ref
from adapters.zenflux.client.block_decoder import read_content
from adapters.zenflux.client.decoder import Decoder
from adapters.zenflux.client.readers import read_fault
from adapters.zenflux.client.run_decoder import UsageCounter
from gateway.client import read_usage
from gateway.errors import BackendFailed
from gateway.ports.remote import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd
from tests.support.dialects.zenflux.facts import facts, lawful


class Ears:
    """A hearing that is told events one by one."""

    def __init__(self, run: str = "run_1") -> None:
        numbers = count(1)
        self.hearing = Decoder(lambda prefix: f"{prefix}_{next(numbers)}")
        self.run, self.seq = run, 0
        self.heard: list[DecodedItem] = []

    def say(self, kind: str, data: Any = None, **envelope: Any) -> list[DecodedItem]:
        self.seq += 1
        payload = {"type": kind, "session_id": self.run, "data": data or {}, **envelope}
        return self.take(ParsedFrame("", {"type": "event", "event": kind, "payload": payload, "seq": self.seq}))

    def take(self, frame: ParsedFrame) -> list[DecodedItem]:
        new = list(self.hearing.feed(frame))
        self.heard += new
        lawful(self.heard)
        return new

    def block(self, index: int, block: dict[str, Any], *deltas: Any) -> list[DecodedItem]:
        said = self.say("content_start", {"index": index, "content_block": block})
        for delta in deltas:
            said += self.say("content_delta", {"index": index, "delta": delta})
        return said + self.say("content_stop", {"index": index})

    def note(self, kind: str, content: Any) -> list[DecodedItem]:
        return self.say("message_delta", {"type": kind, "content": content})


@pytest.fixture
def ears() -> Ears:
    return Ears()


# -- the documents ----------------------------------------------------------------------------------------------------

def test_the_documented_run_is_two_messages(ears: Ears) -> None:
    ears.say("session_start")
    ears.say("conversation_start", {"title": "新对话"})
    ears.say("message_start", None, message={"id": "m", "model": "glm"})
    ears.block(0, {"type": "thinking", "thinking": ""}, "Hm", "m")
    ears.block(1, {"type": "text", "text": ""}, "I look.")
    ears.block(2, {"type": "tool_use", "id": "call_1", "name": "search", "input": {}}, '{"q":', '"x"}')
    ears.note("usage", {"stop_reason": "tool_use"})
    ears.say("message_stop")
    ears.say("message_start", None, message={"id": "n", "model": "glm"})
    ears.block(3, {"type": "tool_result", "tool_use_id": "call_1", "content": "", "is_error": False}, "fo", "und")
    ears.block(4, {"type": "text", "text": ""}, "Here.")
    ears.note("usage", {"stop_reason": "end_turn"})
    ears.say("message_stop")
    ears.say("session_end", {"status": "completed", "duration_ms": 3})
    kinds = [
        type(one)
        for one in ears.heard
        if isinstance(one, m.MessageStarted | m.MessageEnded | m.ToolReturned | RemoteTurnEnd)
    ]
    assert kinds == [m.MessageStarted, m.MessageEnded, m.ToolReturned, m.MessageStarted, m.MessageEnded, RemoteTurnEnd]
    [turn] = facts(ears.heard)
    assert turn.parts == [
        (m.BlockKind.THINKING, "Hmm"), (m.BlockKind.TEXT, "I look."),
        (m.BlockKind.TOOL_USE, ("call_1", "search", {"q": "x"})), (m.BlockKind.TEXT, "Here.")]
    assert (turn.results, turn.stops) == ({"call_1": ("found", False)}, [m.StopReason.TOOL_USE, m.StopReason.END_TURN])
    assert [one.model for one in ears.heard if isinstance(one, m.MessageStarted)] == ["glm", "glm"]


def test_one_message_of_several_rounds_is_several_messages(ears: Ears) -> None:
    ears.say("message_start")
    ears.block(0, {"type": "tool_use", "id": "a", "name": "one"}, "{}")
    ears.block(1, {"type": "tool_use", "id": "b", "name": "two"}, "{}")
    ears.block(2, {"type": "tool_result", "tool_use_id": "b", "content": "B"})
    ears.block(3, {"type": "tool_result", "tool_use_id": "a", "content": "A", "is_error": True})
    ears.block(4, {"type": "text", "text": "done"})
    ears.note("usage", {"stop_reason": "max_tokens", "input_tokens": 3, "output_tokens": 4})
    ears.say("message_stop")
    ears.say("session_end", {"status": "completed"})
    [turn] = facts(ears.heard)
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.MAX_TOKENS]
    assert turn.results == {"a": ("A", True), "b": ("B", False)}
    assert turn.usage == m.Usage(input_tokens=3, output_tokens=4)
    assert turn.ended == RemoteTurnEnd(stop_reason=m.StopReason.MAX_TOKENS)


def test_a_providers_results_stay_in_its_message(ears: Ears) -> None:
    ears.say("message_start")
    ears.block(0, {"type": "server_tool_use", "id": "a", "name": "web"}, "{}")
    [back] = ears.block(1, {"type": "tool_result", "tool_use_id": "a", "content": "pages"})
    ears.block(2, {"type": "text", "text": "read"})
    ears.say("session_end", {"status": "completed"})
    assert isinstance(back, m.ToolReturned)
    assert back.origin is m.ToolOrigin.PROVIDER
    assert facts(ears.heard)[0].stops == [m.StopReason.END_TURN]


def test_server_sent_events_are_heard_as_frames_are(ears: Ears) -> None:
    for kind, data in (
        ("session_start", {}), ("message_start", {}),
        ("content_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_delta", {"index": 0, "delta": "hi"}), ("ping", {"type": "ping"}), ("content_stop", {"index": 0}),
        ("message_stop", {}),
    ):
        ears.take(ParsedFrame("message", {"type": kind, "session_id": "run_1", "data": data}))
    assert ears.take(ParsedFrame("done", {"type": "done", "data": {"type": "done"}})) == [RemoteTurnEnd()]
    assert ears.take(ParsedFrame("done", {})) == []
    assert facts(ears.heard)[0].words() == "hi"


@pytest.mark.parametrize("name", ["", "message", "done"])
def test_a_run_is_done_whatever_its_event_is_called(ears: Ears, name: str) -> None:
    ears.take(ParsedFrame("", {"type": "session_start", "session_id": "run_1"}))
    assert ears.take(ParsedFrame(name, {"type": "done", "data": {"type": "done"}})) == [RemoteTurnEnd()]


def test_events_without_any_envelope_are_heard(ears: Ears) -> None:
    ears.take(ParsedFrame("", {"type": "event", "event": "message_start", "payload": {}}))
    ears.take(ParsedFrame("content_delta", {"data": {"index": 0, "delta": "hi"}}))
    assert facts([*ears.heard, *ears.hearing.end()])[0].words() == "hi"


# -- blocks -----------------------------------------------------------------------------------------------------------

def test_blocks_that_grow_side_by_side_are_told_one_after_the_other(ears: Ears) -> None:
    ears.say("content_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    ears.say("content_delta", {"index": 0, "delta": "he"})
    ears.say("content_start", {"index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "one"}})
    ears.say("content_start", {"index": 2, "content_block": {"type": "tool_use", "id": "b", "name": "two"}})
    for index, delta in ((2, '{"y"'), (0, "l"), (1, '{"x"'), (2, ":2}"), (0, "lo"), (1, ":1}")):
        ears.say("content_delta", {"index": index, "delta": delta})
    for index in (2, 0, 1):
        ears.say("content_stop", {"index": index})
    assert facts(ears.heard)[0].parts == [
        (m.BlockKind.TEXT, "hello"), (m.BlockKind.TOOL_USE, ("a", "one", {"x": 1})),
        (m.BlockKind.TOOL_USE, ("b", "two", {"y": 2}))]


def test_deltas_may_be_objects_and_thoughts_may_be_signed(ears: Ears) -> None:
    ears.block(0, {"type": "thinking"}, {"thinking": "so"}, {"signature": "sig"})
    ears.block(1, {"type": "text"}, {"text": "hi"})
    ears.block(2, {"type": "tool_use", "id": "a", "name": "one"}, {"partial_json": '{"x": 1}'})
    ended = [one for one in ears.heard if isinstance(one, m.BlockEnded)]
    assert [(one.text, one.signature) for one in ended[:2]] == [("so", "sig"), ("hi", None)]
    assert ended[2].call is not None
    assert ended[2].call.input == {"x": 1}
    signed = Ears()
    signed.block(0, {"type": "thinking", "thinking": "so", "signature": "sig"})
    assert [one.signature for one in signed.heard if isinstance(one, m.BlockEnded)] == ["sig"]


def test_pictures_come_by_address_or_whole(ears: Ears) -> None:
    ears.block(0, {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}})
    ears.block(1, {"type": "image", "source": {"type": "url", "media_type": None, "data": "https://x.test/a.png"}})
    ears.block(2, {"type": "image", "source": {}})
    ears.block(3, {"type": "image", "source": {"url": "https://x.test"}})
    ears.block(4, {"type": "image", "source": {"type": "url", "media_type": "image/*", "data": "https://x.test/b"}})
    assert [said for _, said in facts(ears.heard)[0].parts] == [
        "data:image/gif;base64,R0lG", "https://x.test/a.png", "https://x.test", "https://x.test/b"]
    assert [one.image.media_type for one in ears.heard if isinstance(one, m.BlockEnded) and one.image] == [
        "image/gif", None, None, None]


def test_what_a_tool_gave_back_may_be_blocks() -> None:
    assert read_content([{"type": "text", "text": "a"}, {"type": "image", "source": {"url": "https://x.test"}}]) == (
        m.TextPart(text="a"), m.ImagePart(url="https://x.test"))
    assert read_content({"a": 1}) == '{"a":1}'
    assert read_content(None) == ""


def test_a_delta_of_a_block_that_has_ended_says_nothing(ears: Ears) -> None:
    ears.block(0, {"type": "tool_result", "tool_use_id": "x"})
    assert ears.say("content_delta", {"index": 0, "delta": "late"}) == []
    ears.block(1, {"type": "text", "text": "a"})
    assert ears.say("content_delta", {"index": 1, "delta": "late"}) == []


# -- what is said about messages --------------------------------------------------------------------------------------

def test_remarks_wait_for_the_end_of_a_block(ears: Ears) -> None:
    ears.say("content_start", {"index": 0, "content_block": {"type": "text", "text": "a"}})
    assert ears.note("intent", {"intent": "ask"}) == []
    said = ears.say("content_stop", {"index": 0})
    assert [type(one) for one in said] == [m.BlockEnded, m.MessageAnnotated]


def test_content_may_be_json_in_a_string(ears: Ears) -> None:
    [*_, note] = ears.note("recommended", '{"questions": ["What?"]}')
    assert isinstance(note, m.MessageAnnotated)
    assert (note.topic, note.content) == (m.AnnotationTopic.RECOMMENDED, {"questions": ["What?"]})
    [note] = ears.note("preface", '{"as": "it is"}')
    assert isinstance(note, m.MessageAnnotated)
    assert note.content == '{"as": "it is"}'


def test_a_bill_after_the_costs_is_no_remark_and_counts_what_was_not_told(ears: Ears) -> None:
    ears.block(0, {"type": "text", "text": "a"})
    ears.note("usage", {"stop_reason": "end_turn", "input_tokens": 5, "output_tokens": 7})
    bill = {"prompt_tokens": 5, "completion_tokens": 7, "thinking_tokens": 2, "cache_read_tokens": 3}
    assert ears.note("billing", bill) == []
    ears.say("session_end", {"status": "completed"})
    assert facts(ears.heard)[0].usage == m.Usage(
        input_tokens=5, output_tokens=7, thinking_tokens=2, cache_read_tokens=3)


def test_a_bill_alone_is_a_remark_and_counts(ears: Ears) -> None:
    ears.block(0, {"type": "text", "text": "a"})
    [note] = ears.note("billing", {"prompt_tokens": 5, "completion_tokens": 7})
    assert isinstance(note, m.MessageAnnotated)
    ears.say("message_stop")
    assert facts(ears.heard)[0].usage == m.Usage(input_tokens=5, output_tokens=7)


def test_costs_are_counted_once() -> None:
    costs = UsageCounter()
    costs.spent(m.Usage(input_tokens=1, output_tokens=2))
    costs.message_over()
    assert costs.take() == m.Usage(input_tokens=1, output_tokens=2)
    costs.spent(m.Usage(input_tokens=10))
    costs.billed(read_usage({"input_tokens": 11, "output_tokens": 22, "thinking_tokens": -4}))
    assert costs.take() == m.Usage(input_tokens=10, output_tokens=20)
    assert costs.take() == m.Usage()


def test_costs_that_are_no_numbers_count_for_nothing(ears: Ears) -> None:
    ears.block(0, {"type": "text", "text": "a"})
    ears.note("usage", {"stop_reason": "end_turn", "input_tokens": 10, "output_tokens": "20"})
    assert ears.note("billing", "nothing") == []
    ears.note("billing", {"prompt_tokens": 10, "completion_tokens": 2**60, "thinking_tokens": -4})
    ears.say("session_end", {"status": "completed"})
    assert facts(ears.heard)[0].usage == m.Usage(input_tokens=10)


def test_costs_that_come_after_the_last_message_are_not_lost(ears: Ears) -> None:
    ears.block(0, {"type": "tool_use", "id": "a", "name": "one"}, "{}")
    ears.note("confirmation_request", {"request_id": "r", "metadata": {"kind": "permission", "tool_use_id": "a"}})
    ears.note("usage", {"stop_reason": "end_turn", "input_tokens": 5})
    ears.say("message_stop")
    ears.say("session_stopped", {"reason": "user_requested"})
    ears.say("session_end", {"status": "cancelled"})
    [turn] = facts(ears.heard)
    assert turn.usage == m.Usage(input_tokens=5)
    assert turn.ended == RemoteTurnEnd(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)


# -- asks -------------------------------------------------------------------------------------------------------------

def asked(ears: Ears, content: Any) -> RemoteAsk:
    [*_, ask] = ears.note("confirmation_request", content)
    assert isinstance(ask, RemoteAsk)
    return ask


def test_a_documented_request_is_about_the_last_call_of_that_tool(ears: Ears) -> None:
    for call_id, name in (("a", "rm"), ("b", "ls"), ("c", "rm")):
        ears.block(len(ears.heard), {"type": "tool_use", "id": call_id, "name": name, "input": {"path": call_id}})
    documented = {"request_id": "r", "tool_name": "rm", "description": "Remove?", "options": ["approve", "reject"]}
    one = asked(ears, orjson.dumps(documented).decode())
    assert isinstance(one.ask, m.PermissionAsk)
    assert (one.ask.call.call_id, one.ask.call.input, one.ask.description) == ("c", {"path": "c"}, "Remove?")
    assert decode_ref(one.ref) == AskRef(run="run_1", kind="permission", request_id="r", seq=ears.seq)
    assert ears.hearing.paused
    ears.say("conversation_delta", {"title": "still"})
    assert ears.hearing.paused
    ears.block(77, {"type": "tool_result", "tool_use_id": "c"})
    assert not ears.hearing.paused


def test_a_permission_for_a_call_that_was_not_told_is_a_question(ears: Ears) -> None:
    one = asked(ears, {"request_id": "r", "tool_name": "rm", "question": "May I?", "options": ["approve", "reject"]})
    options = (m.Choice(label="approve"), m.Choice(label="reject"))
    assert one.ask == m.QuestionAsk(questions=(m.Question(question="May I?", options=options),))


@pytest.mark.parametrize(
    ("content", "question"),
    [
        (
            {"confirmation_type": "single_choice", "question": "Which?", "options": ["a", "b"]},
            m.Question(question="Which?", options=(m.Choice(label="a"), m.Choice(label="b"))),
        ),
        (
            {
                "confirmation_type": "multiple_choice",
                "title": "Which?",
                "options": [{"label": "a", "description": "A"}, 3],
            },
            m.Question(
                question="Which?",
                options=(m.Choice(label="a", description="A"), m.Choice(label="3")),
                multi_select=True,
            ),
        ),
        ({"confirmation_type": "text_input", "question": "Name?"}, m.Question(question="Name?")),
    ],
)
def test_a_choice_is_a_question(ears: Ears, content: Any, question: m.Question) -> None:
    assert asked(ears, content).ask == m.QuestionAsk(questions=(question,))


def test_a_form_has_the_names_of_its_questions(ears: Ears) -> None:
    one = asked(ears, {"questions": [{"id": "colour", "label": "Which?", "options": ["red"]}, {"question": "Why?"}]})
    assert one.ask == m.QuestionAsk(questions=(
        m.Question(question="Which?", options=(m.Choice(label="red"),)), m.Question(question="Why?")))
    assert decode_ref(one.ref).ids == ("colour", "1")


def test_long_and_failed_runs_ask(ears: Ears) -> None:
    [going] = ears.say("long_running_confirm", {"turn": 20, "message": "Go on?"})
    [back] = ears.say("rollback_options", {"task_id": "t", "options": ["undo", {"id": "x", "action": "all"}],
                                           "error": "broke"})
    assert isinstance(going, RemoteAsk)
    assert going.ask == m.ContinuationAsk(turn=20, message="Go on?")
    assert isinstance(back, RemoteAsk)
    assert back.ask == m.RollbackAsk(task_id="t", error="broke", options=(
        {"id": "undo", "label": "undo"}, {"id": "x", "action": "all"}))


def test_a_form_that_is_no_longer_pending_asks_nothing(ears: Ears) -> None:
    assert ears.note("hitl", {"status": "answered", "questions": [{"question": "?"}]}) == []


def test_refs_are_words() -> None:
    ref = AskRef(run="run", kind="question", request_id="r", seq=4, ids=("0",), precise=True)
    assert decode_ref(encode_ref(ref)) == ref
    with pytest.raises(BackendFailed):
        decode_ref("nonsense")


# -- beside, and the end ----------------------------------------------------------------------------------------------

def test_what_is_said_of_the_conversation(ears: Ears) -> None:
    assert ears.say("conversation_delta", {"title": "New"}) == [m.SessionUpdated(title="New")]
    assert ears.say("conversation_delta", {"metadata": {"a": 1}}) == [m.SessionUpdated(metadata={"a": 1})]
    [compacted] = ears.say("conversation_delta", {"compressed": {"summary": "much", "trimmed_count": 9}})
    assert isinstance(compacted, m.SessionCompacted)
    assert (compacted.summary, compacted.archived) == ("much", 9)
    assert ears.say("conversation_start", {"title": "Old"}) == [], "where it stands is no change"


def test_a_notification_is_a_notice(ears: Ears) -> None:
    payload = {"notification_type": "task_done", "title": "Done", "message": "All of it"}
    [notice] = ears.take(ParsedFrame("", {"type": "event", "event": "notification", "payload": payload, "seq": 0}))
    assert notice == m.NoticePosted(topic="task_done", title="Done", detail=payload)


@pytest.mark.parametrize(("kind", "code", "retryable"), [
    ("network_error", m.FaultCode.BACKEND, True), ("timeout_error", m.FaultCode.TIMEOUT, True),
    ("overloaded_error", m.FaultCode.OVERLOADED, True), ("internal_error", m.FaultCode.BACKEND, False),
    ("validation_error", m.FaultCode.INVALID, False), ("model_not_configured", m.FaultCode.BACKEND, False),
])
def test_an_error_is_a_fault(ears: Ears, kind: str, code: m.FaultCode, retryable: bool) -> None:
    ears.block(0, {"type": "text", "text": "half"})
    ears.say("error", {"error": {"type": kind, "message": "why"}})
    assert ears.hearing.closing
    ears.say("message_stop")
    assert ears.hearing.closing
    [ended] = ears.say("session_end", {"status": "failed"})
    assert isinstance(ended, RemoteTurnEnd)
    assert ended.fault is not None
    assert (ended.fault.code, ended.fault.message, ended.fault.retryable) == (code, "why", retryable)
    late = code is m.FaultCode.TIMEOUT
    assert (ended.outcome, ended.stop_reason) == (
        m.Outcome.FAILED,
        m.StopReason.TIMEOUT if late else m.StopReason.ERROR,
    )


def test_runs_follow_one_another_in_one_hearing(ears: Ears) -> None:
    for run in ("run_1", "run_2", "run_3"):
        ears.run = run
        ears.say("session_start")
        ears.block(0, {"type": "text", "text": run})
        if run != "run_2":  # which is broken off
            ears.say("session_end", {"status": "completed"})
            assert ears.block(1, {"type": "text", "text": "late"}) == []
    assert [turn.words() for turn in facts(ears.heard)] == ["run_1", "run_2run_3"]


# -- words ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("word", "stop"), [
    ("tool_use", m.StopReason.TOOL_USE), ("max_tokens", m.StopReason.MAX_TOKENS), ("refusal", m.StopReason.REFUSAL),
    ("end_turn", m.StopReason.END_TURN), ("stop", m.StopReason.END_TURN), (None, m.StopReason.END_TURN),
    (3, m.StopReason.END_TURN),
])
def test_a_message_ends_for_a_reason_of_the_table(ears: Ears, word: Any, stop: m.StopReason) -> None:
    ears.block(0, {"type": "text", "text": "a"})
    ears.note("usage", {"stop_reason": word})
    ears.say("message_stop")
    assert facts(ears.heard)[0].stops == [stop]


@pytest.mark.parametrize(("word", "outcome"), [
    ("completed", m.Outcome.COMPLETED), ("failed", m.Outcome.FAILED), ("cancelled", m.Outcome.INTERRUPTED),
    ("moved_to_background", m.Outcome.COMPLETED), (3, m.Outcome.COMPLETED),
])
def test_a_run_ends_with_an_outcome_of_the_table(ears: Ears, word: Any, outcome: m.Outcome) -> None:
    [ended] = ears.say("session_end", {"status": word})
    assert isinstance(ended, RemoteTurnEnd)
    assert ended.outcome is outcome


@pytest.mark.parametrize(("word", "cause"), [
    ("user_requested", m.StopReason.INTERRUPTED), ("timeout", m.StopReason.TIMEOUT), ("error", m.StopReason.ERROR),
    ("else", m.StopReason.INTERRUPTED), (None, m.StopReason.INTERRUPTED),
])
def test_a_run_is_stopped_for_a_reason_of_the_table(ears: Ears, word: Any, cause: m.StopReason) -> None:
    ears.say("session_stopped", {"reason": word})
    [ended] = ears.say("session_end", {"status": "cancelled"})
    assert isinstance(ended, RemoteTurnEnd)
    assert ended.stop_reason is cause


def test_the_type_of_a_block_tells_who_runs_a_call(ears: Ears) -> None:
    for index, word in enumerate(("server_tool_use", "tool_use")):
        ears.block(index, {"type": word, "id": word, "name": "n"}, "{}")
    calls = [one.call for one in ears.heard if isinstance(one, m.BlockEnded) and one.call]
    assert [call.origin for call in calls] == [m.ToolOrigin.PROVIDER, m.ToolOrigin.BUILTIN]


@pytest.mark.parametrize(("data", "words"), [
    ({"error": "words"}, "words"),
    ({"error": {"message": "words"}}, "words"),
    ({"message": "words", "retryable": True}, "words"),
    ({"error": {}}, "the server did not say what went wrong"),
])
def test_an_error_may_be_told_in_other_shapes(ears: Ears, data: Any, words: str) -> None:
    ears.say("error", data)
    [ended] = ears.say("session_end", {"status": "failed"})
    assert isinstance(ended, RemoteTurnEnd)
    assert ended.fault == m.Fault(code=m.FaultCode.BACKEND, message=words, retryable=data.get("retryable") is True)


def test_an_unknown_code_is_the_servers_own_failure() -> None:
    fault = read_fault(None, {"message": "why", "retryable": None})
    assert fault == m.Fault(code=m.FaultCode.BACKEND, message="why")


# -- what is refused --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("kind", "data", "words"), [
    ("content_start", {"content_block": {"type": "text"}}, r"'payload\.data\.index' is missing"),
    ("content_start", {"index": "0", "content_block": {"type": "text"}}, r"index' should be a whole number"),
    ("content_start", {"index": 0}, r"'payload\.data\.content_block\.type' is missing"),
    ("content_start", {"index": 0, "content_block": {"type": ""}}, r"type' should be a text that is not empty"),
    ("content_start", {"index": 0, "content_block": {"type": "tool_use"}}, r"content_block\.name' is missing"),
    ("content_delta", {"delta": "a"}, r"index' is missing"),
    ("content_delta", {"index": 0}, r"delta' is missing"),
    ("content_delta", {"index": 0, "delta": 7}, r"delta' should be a text"),
    ("content_stop", {}, r"index' is missing"),
])
def test_a_frame_of_content_that_cannot_be_understood_is_refused(ears: Ears, kind: str, data: Any, words: str) -> None:
    with pytest.raises(BackendFailed, match=f"a {kind} of the server cannot be understood: .*{words}"):
        ears.say(kind, data)
    ears.say("session_end", {"status": "completed"})
    assert ears.say(kind, data) == [], "a run that is over is not looked at"
    with pytest.raises(BackendFailed):
        ears.say(kind, data, session_id="another run")


@pytest.mark.parametrize("body", [None, [], "text", 7])
def test_a_frame_is_an_object(ears: Ears, body: Any) -> None:
    with pytest.raises(BackendFailed, match="the server sent a frame that is not an object"):
        ears.take(ParsedFrame("", body))


@pytest.mark.parametrize("payload", [None, [], "text"])
def test_an_event_has_a_payload(ears: Ears, payload: Any) -> None:
    with pytest.raises(BackendFailed, match="a message_stop of the server cannot be understood: 'payload'"):
        ears.take(ParsedFrame("", {"type": "event", "event": "message_stop", "payload": payload}))


@pytest.mark.parametrize("data", [[], "text", 7])
def test_the_data_of_an_event_are_an_object(ears: Ears, data: Any) -> None:
    with pytest.raises(BackendFailed, match=r"a message_stop of the server cannot be understood: 'payload\.data'"):
        ears.take(ParsedFrame("", {"type": "event", "event": "message_stop", "payload": {"data": data}}))


@pytest.mark.parametrize("body", [
    {"type": "res", "ok": True}, {"type": "pong"}, {"type": "req"}, {"type": "ping", "data": {"type": "ping"}},
    {"type": "event", "event": "tick", "payload": {"ts": 1}}, {"type": "plan_updated", "data": 7}, {},
])
def test_what_is_no_event_of_a_run_says_nothing(ears: Ears, body: Any) -> None:
    assert ears.take(ParsedFrame("", body)) == []


def test_a_block_of_an_unknown_kind_is_ignored_with_all_its_deltas(ears: Ears) -> None:
    ears.say("message_start")
    assert ears.block(0, {"type": "hologram"}, "x", {"text": "y"}, {}) == []


def test_a_delta_of_an_unknown_kind_says_nothing(ears: Ears) -> None:
    ears.block(0, {"type": "text", "text": "a"}, {"citation": 7}, {})
    assert facts(ears.heard)[0].words() == "a"


def test_the_end_of_a_thought_may_sign_it(ears: Ears) -> None:
    ears.say("content_start", {"index": 0, "content_block": {"type": "thinking", "thinking": "so"}})
    ears.say("content_stop", {"index": 0, "signature": "sig"})
    assert [one.signature for one in ears.heard if isinstance(one, m.BlockEnded)] == ["sig"]


@pytest.mark.parametrize("data", [
    {"type": "usage", "content": {"stop_reason": "refusal"}},
    {"delta": {"type": "usage", "content": {"stop_reason": "refusal"}}},
    {"type": "usage", "content": '{"stop_reason":"refusal"}', "delta": {"content": {"stop_reason": "refusal"}}},
])
def test_a_message_delta_may_have_its_content_at_either_place(ears: Ears, data: Any) -> None:
    ears.block(0, {"type": "text", "text": "a"})
    ears.say("message_delta", data)
    ears.say("message_stop")
    assert facts(ears.heard)[0].stops == [m.StopReason.REFUSAL]
