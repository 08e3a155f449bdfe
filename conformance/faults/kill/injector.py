"""The injector: an interceptor that puts flaws into what passes, one or several that do not disturb each other."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from conformance.faults.kill.field_damage import FIELD_DAMAGE, damaged_copy
from conformance.faults.kill.flaw import Flaw
from conformance.faults.kill.framing import FRAMINGS
from conformance.faults.kill.orders import Orders
from conformance.faults.kill.paths import changed
from conformance.faults.kill.stream_order import Disorder
from conformance.faults.proxy.interceptor import SSE, Answer, Interceptor, PassedMessage, StreamInterceptor

OTHER_TYPES = {"text/event-stream": "application/json", "application/json": "text/plain"}
Change = Callable[[Any, Any], None]


class Injector(Interceptor):
    """Damages what passes, and counts how often."""

    def __init__(self, flaws: Sequence[Flaw], orders: Orders, naming: Callable[[str, Any], str]) -> None:
        self.orders = orders
        self.naming = naming
        self.strikes = 0
        self.flaws = flaws
        self._by_place: dict[str, list[Flaw]] = defaultdict(list)
        for flaw in flaws:
            self._by_place[flaw.place].append(flaw)
        self._sent: dict[str, str] = {}
        self._cursors: dict[str, Any] = {}

    def asked(self, json: Any) -> None:
        """Remember what the client has sent under which name: a mask may hide it."""
        self._sent |= {name: value for name, value in _members(json) if isinstance(value, str) and value}

    def answered(self, answer: Answer) -> Answer:
        for flaw in self._by_place.get(answer.place, ()):
            if flaw.family == "answer":
                answer = self._misanswered(flaw, answer)
            elif answer.json is not ...:
                answer = self._said(flaw, answer)
        return answer

    def stream(self, channel: str) -> StreamInterceptor:
        return _StreamInjector(self, channel, [flaw for flaw in self.flaws if flaw.channel == channel])

    def _said(self, flaw: Flaw, answer: Answer) -> Answer:
        json, struck = self.damaged(flaw, answer.json)
        return answer.saying(json) if struck else answer

    def message(self, message: PassedMessage) -> PassedMessage:
        """The message with its fields damaged."""
        if message.json is ...:
            return message
        for flaw in self._by_place.get(f"{message.channel} {self.naming(message.name, message.json)}", ()):
            if flaw.family in ("field", "secret", "page"):
                json, struck = self.damaged(flaw, message.json)
                message = message.saying(json) if struck else message
        return message

    def damaged(self, flaw: Flaw, json: Any) -> tuple[Any, bool]:
        """The value with the flaw, and whether it has changed."""
        if flaw.kind in FIELD_DAMAGE:
            whole, struck = damaged_copy(self.orders.walk, flaw.kind, json, flaw.path)
        else:
            change = self._unmask if flaw.kind == "unmask" else self._stale(flaw)
            whole, _ = changed(self.orders.walk, json, flaw.path, change)
            struck = int(whole != json)
        self.strikes += struck
        return whole, bool(struck)

    def _unmask(self, container: Any, key: Any) -> None:
        if container[key] in self.orders.masks and key in self._sent:
            container[key] = self._sent[key]

    def _stale(self, flaw: Flaw) -> Change:
        def stay(container: Any, key: Any) -> None:
            container[key] = self._cursors.setdefault(flaw.name, container[key])

        return stay

    def _misanswered(self, flaw: Flaw, answer: Answer) -> Answer:
        self.strikes += 1
        match flaw.kind:
            case "status":
                return replace(answer, status=int(flaw.path))
            case "mime":
                headers = answer.headers.copy()
                headers["Content-Type"] = other_type(answer.headers.get("Content-Type", ""))
                return replace(answer, headers=headers)
            case _:
                return replace(answer, raw=answer.raw[: (len(answer.raw) + 1) // 2], json=...)


class _StreamInjector(StreamInterceptor):
    """What the injector does to one stream: fields first, then numbers, then the order, then the framing."""

    def __init__(self, injector: Injector, channel: str, flaws: Sequence[Flaw]) -> None:
        self._injector = injector
        last = injector.orders.order(channel).last
        self._disorders = [Disorder(flaw, last) for flaw in flaws if flaw.family == "event"]
        self._numbers = [flaw for flaw in flaws if flaw.family == "number"]
        self._counts: dict[str, int] = defaultdict(int)
        self._framings = [FRAMINGS[flaw.kind] for flaw in flaws if flaw.family == "framing" and channel == SSE]
        self._is_first = True

    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        message = self._renumbered(self._injector.message(message))
        messages: Sequence[PassedMessage] = (message,)
        for disorder in self._disorders:
            before = disorder.strikes
            try:
                messages = [left for item in messages for left in disorder.pass_on(self._name(item), item)]
            finally:
                self._injector.strikes += disorder.strikes - before
        return messages

    def _name(self, message: PassedMessage) -> str:
        return self._injector.naming(message.name, message.json)

    def ended(self) -> Sequence[PassedMessage]:
        return [message for disorder in self._disorders for message in disorder.flush()]

    def framed(self, block: bytes) -> Sequence[bytes]:
        pieces: Sequence[bytes] = (block,)
        for framing in self._framings:
            self._injector.strikes += 1
            pieces = framing(block, self._is_first)
        self._is_first = False
        return pieces

    def _renumbered(self, message: PassedMessage) -> PassedMessage:
        for flaw in self._numbers:
            if message.json is ... or not fnmatchcase(message.place, flaw.place):
                continue
            message = self._counted(flaw, message)
        return message

    def _counted(self, flaw: Flaw, message: PassedMessage) -> PassedMessage:
        """From the second message on the number is one too high, or one too low."""
        step = (1 if flaw.kind == "gap" else -1) if self._counts[flaw.name] else 0

        def shift(container: Any, key: Any) -> None:
            if isinstance(container[key], int):
                container[key] += step

        json, found = message.json, 0
        for path in flaw.path.split(","):
            json, slots = changed(self._injector.orders.walk, json, path, shift)
            found += slots
        self._counts[flaw.name] += bool(found)
        self._injector.strikes += bool(found and step)
        return message.saying(json) if found and step else message


def other_type(content_type: str) -> str:
    """A content type that is not the right one."""
    return OTHER_TYPES.get(content_type.partition(";")[0].strip(), "text/plain")


def _members(json: Any) -> Iterator[tuple[str, Any]]:
    """Every named thing in a value."""
    if isinstance(json, dict):
        for name, item in json.items():
            yield name, item
            yield from _members(item)
    elif isinstance(json, list):
        for item in json:
            yield from _members(item)
