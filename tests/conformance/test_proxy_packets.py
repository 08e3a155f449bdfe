"""Socket.IO packets on their way through the proxy."""

from collections.abc import Sequence
from typing import Any

import pytest

from conformance.faults.proxy.interceptor import Interceptor, PassedMessage, StreamInterceptor
from conformance.faults.proxy.packets import NOTHING, SEPARATOR, Link


class Noting(Interceptor):
    """Notes all that passes, changes `say`, and loses `gone`."""

    def __init__(self) -> None:
        self.received: list[tuple[str, Any]] = []
        self.sent: list[Any] = []

    def asked(self, json: Any) -> None:
        self.sent.append(json)

    def stream(self, channel: str) -> StreamInterceptor:
        return NotingListener(self)


class NotingListener(StreamInterceptor):
    def __init__(self, interceptor: Noting) -> None:
        self._meddler = interceptor

    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        self._meddler.received.append((message.name, message.json))
        if message.name == "gone":
            return ()
        return (message.saying({"changed": message.json}),) if message.name in ("say", "ack ask") else (message,)


@pytest.fixture
def link() -> Link:
    return Link(Noting())


@pytest.mark.parametrize(
    "packet",
    ['0{"sid":"a","upgrades":[]}', "2", "3probe", "6", '40{"sid":"b"}', "41", '44{"message":"no"}',
     '42["other",{"a": 1}]', '42["two",1,2]', "452-[]", "4", "42[broken"],
)  # fmt: skip
def test_undisturbed_packets_pass_to_the_letter(link: Link, packet: str) -> None:
    assert list(link.passed(packet)) == [packet]


def test_packets_are_named() -> None:
    interceptor = Noting()
    link = Link(interceptor)
    link.received('427["ask",{"what": 1}]')
    for packet in ('0{"sid":"a"}', '40{"sid":"b"}', '44{"message":"no"}', '42["other",{"a":1}]', '437[{"ok":true}]'):
        list(link.passed(packet))
    assert [name for name, _ in interceptor.received] == ["open", "connect", "refused", "other", "ack ask"]
    assert interceptor.received[-1][1] == {"ok": True}
    assert interceptor.sent == [["ask", {"what": 1}]]


def test_changed_packets_keep_their_head(link: Link) -> None:
    link.received('427["ask",{}]')
    assert list(link.passed('42/admin,["say",{"a":1}]')) == ['42/admin,["say",{"changed":{"a":1}}]']
    assert list(link.passed('437[{"ok":true}]')) == ['437[{"changed":{"ok":true}}]']


def test_a_payload_that_would_be_empty_says_nothing_in_due_form(link: Link) -> None:
    assert link.payload('42["gone",{}]') == NOTHING
    assert link.payload(SEPARATOR.join(['42["gone",{}]', "2", '42["other",{}]'])) == SEPARATOR.join(
        ["2", '42["other",{}]']
    )
