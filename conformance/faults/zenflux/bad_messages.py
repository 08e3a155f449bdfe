"""Servers whose messages are announced, annotated or ended wrongly."""

from collections.abc import Iterator
from typing import Any

import orjson

from conformance.faults.fault import fault
from conformance.faults.zenflux.editing import Editing, Enveloping, Renoting, without
from conformance.faults.zenflux.memory import Body, Session
from conformance.faults.zenflux.player import Told
from conformance.faults.zenflux.server import ZenfluxServer

EMPTY = "messages.message_start_has_an_empty_message"
USAGE = "messages.usage_says_why_a_message_ended"
BILLING = "messages.billing_is_a_usage_response"
COUNTS = "messages.token_counts_are_whole"
TWICE = "messages.message_start_is_told_twice"
STOP = "messages.message_stop_is_empty"


@fault("ZF-EV-11", "ZF-EV-12", cases=EMPTY)
class MessageInDataOnly(Enveloping):
    """message_start has its message in data only."""

    def changed(self, envelope: Body) -> Body:
        return {name: value for name, value in envelope.items() if name != "message"}


class _Messaging(ZenfluxServer):
    """Changes the message of message_start."""

    def message(self, message: Body) -> Body:
        raise NotImplementedError

    def opened(self, session: Session) -> Told:
        told = super().opened(session)
        message = self.message(told.message or {})
        return Told(told.type, told.data | {"message": message}, message)


@fault("ZF-EV-12", cases=EMPTY)
class RoleOfAnAgent(_Messaging):
    """The role of a message is agent."""

    def message(self, message: Body) -> Body:
        return message | {"role": "agent"}


@fault("ZF-EV-11", cases=EMPTY)
class NoStopReason(_Messaging):
    """message_start has no stop_reason."""

    def message(self, message: Body) -> Body:
        return {name: value for name, value in message.items() if name != "stop_reason"}


@fault("ZF-EV-12", cases=EMPTY)
class TokensAtOnce(_Messaging):
    """message_start counts tokens already."""

    def message(self, message: Body) -> Body:
        return message | {"usage": {"input_tokens": 9, "output_tokens": 0}}


@fault("ZF-EV-14", "ZF-EV-15", cases=USAGE)
class NotesInDelta(Editing):
    """message_delta has its content in data.delta only."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield without(told, "type", "content") if told.type == "message_delta" else told


@fault("ZF-EV-15", cases=USAGE)
class UsageWithoutReason(Renoting):
    """usage only counts tokens."""

    topic = "usage"

    def content(self, content: Any) -> Any:
        return {"input_tokens": 3, "output_tokens": 5}


@fault("ZF-EV-15", cases=USAGE)
class AlwaysToolUse(Renoting):
    """Every stop reason is tool_use."""

    topic = "usage"

    def content(self, content: Any) -> Any:
        return content | {"stop_reason": "tool_use"}


@fault("ZF-EV-16", cases="messages.recommended_has_questions")
class BareQuestions(Renoting):
    """recommended is a list."""

    topic = "recommended"

    def content(self, content: Any) -> Any:
        return content["questions"]


class _AsObject(Renoting):
    """Says in an object what is a string."""

    def content(self, content: Any) -> Any:
        return {"text": content}


@fault("ZF-EV-17", cases="messages.preface_is_a_text")
class PrefaceAsObject(_AsObject):
    """preface is an object."""

    topic = "preface"


@fault("ZF-EV-21", cases="messages.search_is_a_text")
class SearchAsObject(_AsObject):
    """search is an object."""

    topic = "search"


@fault("ZF-EV-22", cases="messages.knowledge_is_a_text")
class KnowledgeAsObject(_AsObject):
    """knowledge is an object."""

    topic = "knowledge"


@fault("ZF-EV-18", cases="messages.confirmation_request_says_what_to_confirm")
class NothingToChoose(Renoting):
    """A confirmation_request offers nothing."""

    topic = "confirmation_request"

    def content(self, content: Any) -> Any:
        return orjson.dumps({name: value for name, value in content.items() if name != "options"}).decode()


@fault("ZF-EV-19", cases="messages.intent_is_an_object")
class IntentAsWord(Renoting):
    """intent is a word."""

    topic = "intent"

    def content(self, content: Any) -> Any:
        return content["name"]


@fault("ZF-EV-20", "G-ZF-36", cases=f"messages.billing_is_an_object {BILLING}")
class BillingInWords(Renoting):
    """billing is a sentence."""

    topic = "billing"

    def content(self, content: Any) -> Any:
        return "It is free."


@fault("ZF-TYPE-03", "G-ZF-36", cases=f"{COUNTS} {BILLING}")
class CallsUncounted(Renoting):
    """billing counts tokens and not the time they took."""

    topic = "billing"

    def content(self, content: Any) -> Any:
        return {name: value for name, value in content.items() if name != "latency"}


@fault("G-ZF-36", cases=BILLING)
class BillingInMoney(Renoting):
    """billing counts money."""

    topic = "billing"

    def content(self, content: Any) -> Any:
        return {"cost": 0.01, "currency": "CNY"}


@fault("G-ZF-37", cases="messages.tokens_add_up")
class TotalOfTwo(Renoting):
    """The total leaves the thinking and the cache out."""

    topic = "billing"

    def content(self, content: Any) -> Any:
        return content | {"total_tokens": content["prompt_tokens"] + content["completion_tokens"]}


@fault("ZF-EV-23", cases=STOP)
class StopWithUsage(Editing):
    """message_stop carries data."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield Told(told.type, {"usage": {}}) if told.type == "message_stop" else told


@fault("G-ZF-01", cases=TWICE)
class MessageAtTheTopOnly(ZenfluxServer):
    """message_start has its message at the top only."""

    def opened(self, session: Session) -> Told:
        told = super().opened(session)
        return Told(told.type, {}, told.message)


@fault("G-ZF-02", cases="messages.message_delta_is_mirrored")
class NotMirrored(Editing):
    """message_delta has no data.delta."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield without(told, "delta") if told.type == "message_delta" else told


@fault("G-ZF-03", cases="messages.contents_are_spelled_as_in_the_examples")
class QuestionsAsObject(Renoting):
    """recommended is an object instead of JSON in a string."""

    topic = "recommended"

    def content(self, content: Any) -> Any:
        return content


@fault("G-ZF-36", cases="messages.usage_may_count_tokens")
class TokensInWords(Renoting):
    """usage counts tokens in strings."""

    topic = "usage"

    def content(self, content: Any) -> Any:
        return content | {"input_tokens": "3"}
