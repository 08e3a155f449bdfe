"""Section messages: message_start, the sub-types of message_delta, and message_stop."""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule
from conformance.zenflux import messages
from conformance.zenflux.confirmations import NEEDED
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.offline.view import ZenfluxView
from conformance.zenflux.run_contents import as_object

Found = Iterator[Exchange | str]
ENDS = ("end_turn", "max_tokens", "stop_sequence", "refusal")
COUNTED = ("prompt", "completion", "thinking", "cache_read", "cache_write")


def _notes(view: ZenfluxView, *topics: str) -> Iterator[tuple[str, str, Any]]:
    """The contents of message_delta events of these sub-types, with their places."""
    for place, payload in view.of("message_delta"):
        data = payload.get("data")
        if isinstance(data, dict) and data.get("type") in topics:
            yield place, str(data["type"]), data.get("content")


def _text(content: Any, topic: str) -> None:
    expect.that(isinstance(content, str) and bool(content), f"a string as the content of {topic}", content)


def _object(content: Any, topic: str) -> None:
    as_object(content, f"the content of {topic}")


def _reason(content: Any, topic: str) -> None:
    expect.that("stop_reason" in as_object(content, f"the content of {topic}"), "stop_reason in usage", content)


def _questions(content: Any, topic: str) -> None:
    found = as_object(content, f"the content of {topic}").get("questions")
    is_right = isinstance(found, list) and bool(found) and all(isinstance(item, str) for item in found)
    expect.that(is_right, "questions as a list of strings", content)


def _request(content: Any, topic: str) -> None:
    found = as_object(content, f"the content of {topic}")
    SCHEMAS.fit("confirmation", found, f"the content of {topic}")


TOPICS: dict[str, tuple[str, Callable[[Any, str], None]]] = {
    "usage": ("ZF-EV-15", _reason),
    "recommended": ("ZF-EV-16", _questions),
    "preface": ("ZF-EV-17", _text),
    "confirmation_request": ("ZF-EV-18", _request),
    "intent": ("ZF-EV-19", _object),
    "billing": ("ZF-EV-20", _object),
    "search": ("ZF-EV-21", _text),
    "knowledge": ("ZF-EV-22", _text),
}


def _topic(topic: str, requirement: str, judge: Callable[[Any, str], None]) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for place, _, content in _notes(view, topic):
            yield place
            judge(content, topic)

    check.__name__ = f"{topic}_has_its_content"
    check.__doc__ = f"The content of {topic} is as the specification says."
    return rule(requirement, needs=f"message_delta `{topic}`")(check)


CONTENTS = tuple(_topic(topic, *row) for topic, row in TOPICS.items())


@rule("ZF-EV-11", "ZF-EV-12", needs="message_start")
def message_start_has_an_empty_message(view: ZenfluxView) -> Found:
    """message_start has an id of its own, and no tokens used yet."""
    seen: set[str] = set()
    for spoken in view.over:
        for event in spoken.run.of("message_start"):
            yield spoken.exchange
            message = event.payload["message"]
            told = [message["usage"]["input_tokens"], message["usage"]["output_tokens"]]
            expect.equal("the tokens used at the start", [0, 0], told)
            expect.that(message["id"] not in seen, "an id for each message", message["id"])
            seen.add(message["id"])


@rule("ZF-EV-15", needs="run that ended well")
def the_last_reason_ends_the_run(view: ZenfluxView) -> Found:
    """A reply has a usage, and its last stop reason is end_turn, or why the model could not come to its end."""
    for spoken in view.completed:
        notes = spoken.run.notes("usage")
        if spoken.run.is_socket and spoken.run.text:
            yield spoken.exchange
            expect.that(bool(notes), "a message_delta `usage`", spoken.run.names)
            last = as_object(notes[-1], "the content of usage")
            expect.member("the last stop_reason", ENDS, last.get("stop_reason"))


@rule("ZF-EV-23", needs="run on a socket")
def message_stop_is_empty(view: ZenfluxView) -> Found:
    """Each message_start has its message_stop, whose data is {}."""
    for spoken in view.completed:
        if spoken.run.is_socket:
            yield spoken.exchange
            messages.stops_empty(spoken.run)


@rule("ZF-TYPE-03", needs="message_delta that counts tokens")
def token_counts_are_whole(view: ZenfluxView) -> Found:
    """Wherever a message_delta counts prompt_tokens or llm_calls, it has all members of UsageResponse."""
    for place, topic, content in _notes(view, "usage", "billing"):
        found = as_object(content, f"the content of {topic}")
        if {"prompt_tokens", "llm_calls"} & set(found):
            yield place
            SCHEMAS.fit("usage_response", found, f"the content of {topic}")


@rule("G-ZF-01", needs="run")
def message_start_is_told_twice(view: ZenfluxView) -> Found:
    """message_start has the message at the top and in data, with message_id, session_id and conversation_id there."""
    for spoken in view.over:
        if spoken.run.is_socket:
            yield spoken.exchange
            messages.begins_twice(spoken.run)


@rule("G-ZF-02", "G-ZF-03", needs="message_delta")
def message_delta_is_mirrored_and_spelled(view: ZenfluxView) -> Found:
    """message_delta has {type, content} in data and again in data.delta, spelled as in the examples."""
    for spoken in view.spoken:
        for event in spoken.run.of("message_delta") if spoken.is_sound else []:
            yield spoken.exchange
            messages.is_mirrored(event)
            messages.is_spelled(event)


@rule("G-ZF-25", needs="message_delta `confirmation_request`")
def a_request_can_be_shown_to_a_user(view: ZenfluxView) -> Found:
    """A confirmation_request also has session_id, question, confirmation_type, timeout, metadata and created_at."""
    for place, _, content in _notes(view, "confirmation_request"):
        yield place
        found = as_object(content, "the content of a confirmation_request")
        expect.subset("the request", [*NEEDED, "timeout", "metadata", "created_at"], found)


@rule("G-ZF-36", needs="message_delta `billing`")
def billing_is_a_usage_response(view: ZenfluxView) -> Found:
    """The content of billing has all members of UsageResponse; counts in usage are whole numbers."""
    for place, topic, content in _notes(view, "billing", "usage"):
        found = as_object(content, f"the content of {topic}")
        if topic == "billing":
            yield place
            SCHEMAS.fit("usage_response", found, "the content of billing")
        for name in ("input_tokens", "output_tokens"):
            count = found.get(name, 0)
            expect.that(type(count) is int and count >= 0, f"a whole number as {name}", content)


@rule("G-ZF-37", needs="message_delta `billing`")
def tokens_add_up(view: ZenfluxView) -> Found:
    """total_tokens is the sum of the five other counts."""
    for place, _, content in _notes(view, "billing"):
        found = as_object(content, "the content of billing")
        parts = [found.get(f"{name}_tokens") for name in COUNTED]
        if all(type(part) is int for part in parts):
            yield place
            expect.equal("total_tokens", sum(part or 0 for part in parts), found.get("total_tokens"))
