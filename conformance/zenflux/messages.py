"""Section messages: message_start, the sub-types of message_delta, and message_stop."""

from typing import Any

import orjson

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.lifecycle import last_reason
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event, as_object
from conformance.zenflux.sample_runs import STREAM, approved, on_a_line, short, told

OBJECTS = ("usage", "intent", "billing")
JSON_STRINGS = ("recommended", "confirmation_request")
STRINGS = ("preface", "search", "knowledge")
OWNERS = {
    "usage": "ZF-EV-15",
    "recommended": "ZF-EV-16",
    "preface": "ZF-EV-17",
    "confirmation_request": "ZF-EV-18",
    "intent": "ZF-EV-19",
    "billing": "ZF-EV-20",
    "search": "ZF-EV-21",
    "knowledge": "ZF-EV-22",
}
"""The sub-types of message_delta, and whose the content of each is."""
MESSAGE = ("id", "type", "role", "content", "model", "stop_reason", "stop_sequence")


async def _annotation(exam: ZenfluxExamination, topic: str) -> Any:
    """The content of the annotation, where the profile lists it."""
    exam.profile.needs_annotation(topic)
    return (await told(exam, "annotate")).note(topic)


@requirement("ZF-EV-11", "ZF-EV-12")
async def message_start_has_an_empty_message(exam: ZenfluxExamination) -> None:
    """message_start has a message of the assistant: id, model, no content, no stop reason, no tokens used yet."""
    names: list[str] = []
    for run in await short(exam):
        for event in run.of("message_start"):
            names.append(event.message_id)
            usage = event.payload["message"]["usage"]
            used = [usage["input_tokens"], usage["output_tokens"]]
            expect.that(used == [0, 0], "no tokens used at the start", usage, "ZF-EV-12")
    expect.that(len(set(names)) == len(names), "an id for each message", names, "ZF-EV-11")


@requirement("ZF-EV-14", "ZF-EV-15")
async def usage_says_why_a_message_ended(exam: ZenfluxExamination) -> None:
    """A reply has a message_delta {type: usage, content: {stop_reason}}, and its last stop reason is end_turn."""
    for run in (await told(exam, "text"), await told(exam, "text", STREAM)):
        with expect.owned("ZF-EV-15"):
            expect.equal("the last stop_reason", "end_turn", last_reason(run))


@requirement("ZF-EV-16")
async def recommended_has_questions(exam: ZenfluxExamination) -> None:
    """recommended has {questions: [strings]}, as an object or as JSON in a string."""
    content = as_object(await _annotation(exam, "recommended"), "the content of recommended")
    questions = content.get("questions")
    is_right = isinstance(questions, list) and bool(questions) and all(isinstance(item, str) for item in questions)
    expect.that(is_right, "questions as a list of strings", content)


@requirement("ZF-EV-17")
async def preface_is_a_text(exam: ZenfluxExamination) -> None:
    """The content of preface is a string."""
    await _expect_string(exam, "preface")


@requirement("ZF-EV-18")
async def confirmation_request_says_what_to_confirm(exam: ZenfluxExamination) -> None:
    """confirmation_request has request_id, tool_name, description and options."""
    asked = (await approved(exam)).run.request
    exam.schemas.fit("confirmation", asked, "the content of a confirmation_request")


@requirement("ZF-EV-19")
async def intent_is_an_object(exam: ZenfluxExamination) -> None:
    """The content of intent is an object."""
    as_object(await _annotation(exam, "intent"), "the content of intent")


@requirement("ZF-EV-20")
async def billing_is_an_object(exam: ZenfluxExamination) -> None:
    """The content of billing is an object."""
    as_object(await _annotation(exam, "billing"), "the content of billing")


@requirement("ZF-TYPE-03")
async def token_counts_are_whole(exam: ZenfluxExamination) -> None:
    """Wherever a message_delta counts prompt_tokens or llm_calls, it has all members of UsageResponse."""
    for run in await on_a_line(exam, "annotate", "tool", "text"):
        for topic in ("usage", "billing"):
            for content in run.notes(topic):
                with expect.owned(OWNERS[topic]):
                    found = as_object(content, f"the content of {topic}")
                if {"prompt_tokens", "llm_calls"} & set(found):
                    exam.schemas.fit("usage_response", found, f"the content of {topic}")


@requirement("ZF-EV-21")
async def search_is_a_text(exam: ZenfluxExamination) -> None:
    """The content of search is a string."""
    await _expect_string(exam, "search")


@requirement("ZF-EV-22")
async def knowledge_is_a_text(exam: ZenfluxExamination) -> None:
    """The content of knowledge is a string."""
    await _expect_string(exam, "knowledge")


async def _expect_string(exam: ZenfluxExamination, topic: str) -> None:
    content = await _annotation(exam, topic)
    expect.that(isinstance(content, str) and bool(content), f"a string as the content of {topic}", content)


@requirement("ZF-EV-23")
async def message_stop_is_empty(exam: ZenfluxExamination) -> None:
    """Each message_start has its message_stop, whose data is {}."""
    for run in await short(exam):
        stops_empty(run)


def stops_empty(run: Run) -> None:
    """Expect a message_stop without data for each message_start."""
    starts, stops = run.of("message_start"), run.of("message_stop")
    expect.that(bool(starts), f"message_start in {run.asked}", run.names, "ZF-SEQ-03")
    expect.equal("messages begun and ended", len(starts), len(stops))
    expect.equal("the data of message_stop", [{}] * len(stops), [dict(event.data) for event in stops])


@requirement("G-ZF-01")
async def message_start_is_told_twice(exam: ZenfluxExamination) -> None:
    """message_start has the message at the top and in data, with message_id, session_id and conversation_id there."""
    begins_twice(await told(exam, "text"))


def begins_twice(run: Run) -> None:
    """Expect the message at the top and in data, as far as the specification knows its members."""
    for event in run.of("message_start"):
        message, again = event.payload.get("message"), event.data.get("message")
        expect.that(isinstance(message, dict), "message of message_start", dict(event.payload), "ZF-EV-11")
        expect.that(isinstance(again, dict), "the message in data of message_start", dict(event.data))
        ids = {"message_id": event.message_id, "session_id": run.session_id, "conversation_id": run.conversation_id}
        names = [name for name in MESSAGE if name in (message or {})]
        wanted = {name: (message or {})[name] for name in names}
        expect.equal("data.message of message_start", wanted, {name: (again or {}).get(name) for name in names})
        expect.equal("data of message_start", ids, {name: event.data.get(name) for name in ids})


@requirement("G-ZF-02")
async def message_delta_is_mirrored(exam: ZenfluxExamination) -> None:
    """message_delta has {type, content} in data and again in data.delta."""
    for run in await _noted(exam):
        for event in run.of("message_delta"):
            is_mirrored(event)


def is_mirrored(event: Event) -> None:
    """Expect type and content in data and again in data.delta."""
    delta = event.data.get("delta")
    expect.that("type" in event.data and "content" in event.data, "type and content", dict(event.data), "ZF-EV-14")
    expect.that(isinstance(delta, dict), "data.delta in message_delta", dict(event.data))
    expect.equal("data.delta.type", event.data["type"], (delta or {}).get("type"))
    said, again = event.data["content"], (delta or {}).get("content")
    same = said == again or _unpacked(said) == _unpacked(again)
    expect.that(same, "the same content in data and data.delta", dict(event.data))


def _unpacked(content: Any) -> Any:
    """What is in a JSON string, or the content itself."""
    try:
        return orjson.loads(content) if isinstance(content, str) else content
    except orjson.JSONDecodeError:
        return content


@requirement("G-ZF-03")
async def contents_are_spelled_as_in_the_examples(exam: ZenfluxExamination) -> None:
    """recommended and confirmation_request are JSON strings; usage, intent and billing objects; the rest strings."""
    for run in await _noted(exam):
        for event in run.of("message_delta"):
            is_spelled(event)


def is_spelled(event: Event) -> None:
    """Expect the content of a message_delta in the spelling of the examples."""
    topic, content = event.data["type"], event.data["content"]
    _has_its_kind(topic, content)
    if topic in OBJECTS:
        expect.that(isinstance(content, dict), f"an object as the content of {topic}", content)
    elif topic in (*JSON_STRINGS, *STRINGS):
        expect.that(isinstance(content, str), f"a string as the content of {topic}", content)
    if topic in JSON_STRINGS:
        as_object(content, f"the content of {topic}")


def _has_its_kind(topic: str, content: Any) -> None:
    """What is no text, or no object in any spelling, is a matter of the sub-type, not of its spelling."""
    if topic in STRINGS:
        expect.that(isinstance(content, str), f"a string as the content of {topic}", content, OWNERS[topic])
    elif topic in OWNERS:
        with expect.owned(OWNERS[topic]):
            as_object(content, f"the content of {topic}")


async def _noted(exam: ZenfluxExamination) -> list[Run]:
    """Runs with all kinds of message_delta."""
    return [await told(exam, "annotate"), await told(exam, "tool"), (await approved(exam)).run]


async def _billing(exam: ZenfluxExamination) -> dict[str, Any]:
    with expect.owned("ZF-EV-20"):
        return as_object(await _annotation(exam, "billing"), "the content of billing")


@requirement("G-ZF-36")
async def billing_is_a_usage_response(exam: ZenfluxExamination) -> None:
    """The content of billing has all members of UsageResponse."""
    content = await _billing(exam)
    owner = "ZF-TYPE-03" if {"prompt_tokens", "llm_calls"} & set(content) else None
    exam.schemas.fit("usage_response", content, "the content of billing", owner)


@requirement("G-ZF-36")
async def usage_may_count_tokens(exam: ZenfluxExamination) -> None:
    """Where usage counts input_tokens and output_tokens beside stop_reason, they are whole numbers."""
    for run in await on_a_line(exam, "text", "tool"):
        for content in run.notes("usage"):
            for name in ("input_tokens", "output_tokens"):
                with expect.owned("ZF-EV-15"):
                    count = as_object(content, "the content of usage").get(name, 0)
                expect.that(type(count) is int and count >= 0, f"a whole number as {name}", content)


@requirement("G-ZF-37")
async def tokens_add_up(exam: ZenfluxExamination) -> None:
    """total_tokens is the sum of prompt, completion, thinking, cache-read and cache-write tokens, as in the example."""
    content = await _billing(exam)
    names = ("prompt", "completion", "thinking", "cache_read", "cache_write")
    parts = [content.get(f"{name}_tokens") for name in names]
    if not all(type(part) is int for part in parts):
        raise NotTestable("billing does not count tokens")
    expect.equal("total_tokens", sum(part or 0 for part in parts), content.get("total_tokens"))
