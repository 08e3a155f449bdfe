"""The bench's own model service says what it is asked for, one write for each delta, to many callers at once."""

import socket
from collections.abc import Iterator

import pytest

from bench.client import Connections, run_batch
from bench.contenders import mock
from bench.load import concurrent_turns, turns_in_a_row
from bench.measure import BenchFailure, choose_cores
from bench.model_service import answer, script
from bench.protocols import ChatProtocol, words, workload_of
from bench.servers import Server

CHAT = ChatProtocol()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(mock(), tmp_path_factory.mktemp("service"), choose_cores().client) as server:
        yield server


def test_one_connection_can_ask_again_and_again(service: Server) -> None:
    samples = turns_in_a_row(service, [""] * 5, words(7))
    assert [sample.deltas for sample in samples] == [7] * 5


def test_many_callers_are_told_everything(service: Server) -> None:
    assert concurrent_turns(service, 60, words(300), rest=0.002).deltas == 60 * 300


def test_a_slow_answer_comes_in_pieces(service: Server) -> None:
    (sample,) = turns_in_a_row(service, [""], words(20, slowly=True))
    arrivals = sample.round.answers[0].arrivals(CHAT.delta_mark)
    assert len(set(arrivals)) > 1


def test_a_caller_that_leaves_does_not_disturb_the_others(service: Server) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as leaving:
        leaving.sendall(CHAT.turn("", words(50_000).message))
        leaving.recv(100)
    assert concurrent_turns(service, 2, words(10)).deltas == 20


def test_a_caller_that_takes_nothing_for_a_while_misses_nothing(service: Server) -> None:
    talk = words(50_000)
    with Connections(service.port) as connections:
        late, other = connections.open(2)
        late.sendall(CHAT.turn("", talk.message))
        run_batch([other], [CHAT.turn("", words(10).message)])
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body += late.recv(1 << 20)
    assert body.count(CHAT.delta_mark) == 50_000


def test_a_request_may_come_in_pieces(service: Server) -> None:
    request = CHAT.turn("", words(3).message)
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as slow:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(request), 50):
            slow.sendall(request[at:at + 50])
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body += slow.recv(1 << 16)
    assert body.count(CHAT.delta_mark) == 3


def test_each_delta_is_written_by_itself() -> None:
    pause, pieces = script("5 words")
    assert (pause, len(pieces)) == (0.0, 7)
    assert all(piece.count(b"data: ") == 1 for piece in pieces[1:-1])
    assert script("5 words, slowly")[0] > 0


@pytest.mark.parametrize("talk", [words(3), words(3, slowly=True)])
def test_a_message_stands_for_its_talk(talk: object) -> None:
    assert workload_of(talk.message) == talk  # type: ignore[attr-defined]


# -- what is right ----------------------------------------------------------------------------------------------------

def test_the_whole_answer_is_right() -> None:
    CHAT.check(b"".join(answer(words(3))), words(3))


@pytest.mark.parametrize(("left_out", "said"), [
    (0, None), (1, "2 deltas came, not 3"), (4, "did not finish once"), (5, None), (6, "does not end with"),
])
def test_what_is_missing_is_told(left_out: int, said: str | None) -> None:
    events = answer(words(3))
    del events[left_out]
    if said is None:  # a role and a cost may be left out
        CHAT.check(b"".join(events), words(3))
        return
    with pytest.raises(BenchFailure, match=said):
        CHAT.check(b"".join(events), words(3))


def test_words_in_another_order_are_told() -> None:
    events = answer(words(3))
    events[1], events[2] = events[2], events[1]
    with pytest.raises(BenchFailure, match="do not add up"):
        CHAT.check(b"".join(events), words(3))


def test_what_is_no_chunk_is_told() -> None:
    with pytest.raises(BenchFailure, match="no chunk"):
        CHAT.check(b"data: {}\n\ndata: [DONE]\n\n", words(3))
