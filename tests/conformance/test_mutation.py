"""The language of faults.yaml: what a change does to a step of a server, and what is said of a file that is wrong."""

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from conformance.faults.compiler import Mutation, Tally
from conformance.faults.fault import load_faults, read_faults
from conformance.faults.mutation import Change, problems
from conformance.faults.steps import step_of
from conformance.faults.value_expressions import MISSING, changed, find, parse_path
from conformance.kit.documents import DocumentError
from conformance.kit.suite import dialects
from tests.support.conformance.wrong_servers import broken_handlers


class Refusal(Exception):
    """The server says no."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


@dataclass(frozen=True)
class Event:
    type: str
    data: dict[str, Any]


@dataclass
class Talk:
    title: str
    running: bool = False


class Player:
    def reason(self, why: str) -> str:
        return why


class Server:
    """A server with a step of every kind."""

    pace = 1.0

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.player = Player()
        self.parts = {"server": self, "player": self.player}

    def body(self, kind: str, talk: Talk) -> dict[str, Any]:
        return {"kind": kind, "title": talk.title, "items": [{"n": 1}, {"n": 2}], "spelled": '{"a": 1}', "none": None}

    def check(self, name: str, limit: int = 10) -> int:
        if name == "":
            raise Refusal(400, "name is missing")
        return limit

    async def answer(self, status: int) -> web.Response:
        return web.json_response({"ok": True}, status=status)

    async def tell(self, text: str) -> None:
        self.said.append(text)

    async def play(self, talk: Talk) -> AsyncIterator[Event]:
        for kind in ("start", "delta", "stop"):
            yield Event(kind, {"text": kind})

    def closing(self) -> Iterator[Event]:
        yield Event("usage", {})
        yield Event("stop", {})

    def frame(self, text: str) -> bytes:
        return f"data: {text}\n\n".encode()

    def pair(self) -> tuple[int, int]:
        return 20, 5


class Wrong:
    """A wrong server, made from changes."""

    def __init__(self, *changes: dict[str, Any]) -> None:
        self.changes = [Change(**change) for change in changes]
        self.server: Any = Server()
        assert [words for change in self.changes for words in problems(change, self.server)] == []
        self.tally = Tally()
        Mutation(self.changes, Refusal, self.tally)(self.server)

    def body(self, kind: str = "turn") -> dict[str, Any]:
        body: dict[str, Any] = self.server.body(kind, Talk("Hello"))
        return body

    async def events(self) -> list[str]:
        return [event.type async for event in self.server.play(Talk("Hello"))]


RIGHT = Server().body("turn", Talk("Hello"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"set": {"title": "Other"}}, RIGHT | {"title": "Other"}),
        ({"set": {"new": "{$it.title} of {$kind}"}}, RIGHT | {"new": "Hello of turn"}),
        ({"set": {"title": "$talk.running"}}, RIGHT | {"title": False}),
        ({"set": {"title": "$it.nowhere"}}, RIGHT),
        ({"set": {"items.*.n": 0}}, RIGHT | {"items": [{"n": 0}, {"n": 0}]}),
        ({"set": {"items.[n=2].n": 0}}, RIGHT | {"items": [{"n": 1}, {"n": 0}]}),
        ({"set": {"items.-1.n": 0}}, RIGHT | {"items": [{"n": 1}, {"n": 0}]}),
        ({"set": {"spelled.json().a": 2}}, RIGHT | {"spelled": '{"a":2}'}),
        (
            {"remove": "items.[n=1] title"},
            {name: RIGHT[name] for name in RIGHT if name != "title"} | {"items": [{"n": 2}]},
        ),
        ({"keep": "kind title"}, {"kind": "turn", "title": "Hello"}),
        ({"rename": {"items.*.n": "m"}}, RIGHT | {"items": [{"m": 1}, {"m": 2}]}),
        ({"change": {"title": "upper", "items": {"first": 1}}}, RIGHT | {"title": "HELLO", "items": [{"n": 1}]}),
        ({"change": {"none.*.n": "upper"}}, RIGHT),
        ({"becomes": []}, []),
        ({"argument": "kind", "becomes": "other"}, RIGHT | {"kind": "other"}),
        ({"argument": "talk", "set": {"title": "Other"}}, RIGHT | {"title": "Other"}),
        ({"when": {"it.title": "Hello"}, "becomes": 1}, 1),
        ({"when": {"it.title": {"not": "Hello"}}, "becomes": 1}, RIGHT),
        ({"when": {"it.items.*.n": 2, "talk.running": False}, "becomes": 1}, 1),
        (
            {
                "when": {"it.title": {"starts": "He"}, "it.items": {"over": 1}, "it.other": {"is": "absent"}},
                "becomes": 1,
            },
            1,
        ),
        ({"when": {"it.title": {"not": {"in": ["Hello", "Bye"]}}}, "becomes": 1}, RIGHT),
        ({"skip": True}, None),
        ({"answer": {"title": "$talk.title"}}, {"title": "Hello"}),
    ],
)
def test_what_a_step_returns_is_changed(change: dict[str, Any], expected: Any) -> None:
    wrong = Wrong({"at": "body", **change})
    assert wrong.body() == expected
    assert (wrong.tally.seen == {0}) is (expected != RIGHT)
    assert wrong.tally.troubles == []


def test_only_calls_with_these_arguments_go_wrong() -> None:
    wrong = Wrong({"at": "body(turn)", "becomes": 1})
    assert (wrong.body("turn"), wrong.body("session")["kind"]) == (1, "session")


def test_several_changes_nest() -> None:
    wrong = Wrong({"at": "body", "set": {"title": "Other"}}, {"at": "body", "change": {"title": "upper"}})
    assert wrong.body()["title"] == "OTHER"
    assert wrong.tally.seen == {0, 1}


def test_a_value_of_another_type_is_another_value() -> None:
    wrong = Wrong({"at": "check", "becomes": 10.0})
    assert wrong.server.check("x") == 10
    assert wrong.tally.seen == {0}


def test_a_step_refuses_or_does_not() -> None:
    refusing = Wrong({"at": "check", "when": {"limit": {"over": 5}}, "refuse": [422, "{$limit} is too much"]})
    with pytest.raises(Refusal, match="10 is too much"):
        refusing.server.check("x")
    assert refusing.server.check("x", limit=5) == 5
    assert Wrong({"at": "check", "rescue": 3}).server.check("") == 3
    with pytest.raises(Refusal, match="so: name is missing"):
        Wrong({"at": "check", "when": {"refusal.status": 400}, "refuse": [404, "so: {$refusal.words}"]}).server.check(
            ""
        )
    with pytest.raises(Refusal, match="name is missing"):
        Wrong({"at": "check", "when": {"refusal.status": 404}, "rescue": 3}).server.check("")
    with pytest.raises(Refusal, match="after"):
        Wrong({"at": "check", "when": {"it": 10}, "refuse": [400, "after"]}).server.check("x")


async def test_other_steps_are_taken() -> None:
    wrong = Wrong({"at": "tell", "when": {"text": "b"}, "first": ["tell", "a"], "then": ["tell", "{$text}b"]})
    await wrong.server.tell("b")
    await wrong.server.tell("c")
    assert wrong.server.said == ["a", "b", "bb", "c"]
    assert Wrong({"at": "closing", "instead": ["check", "x", 4]}).server.closing() == 4


def test_a_step_leaves_something_behind() -> None:
    wrong, talk = Wrong({"at": "body", "leaves": {"talk.running": True}}), Talk("Hello")
    wrong.server.body("turn", talk)
    assert talk.running
    assert wrong.tally.seen == {0}


async def test_answers_are_seen_as_status_and_body() -> None:
    answer = await Wrong({"at": "answer(404)", "set": {"status": 200, "body.ok": False}}).server.answer(404)
    assert (answer.status, orjson.loads(answer.body)) == (200, {"ok": False})
    page = await Wrong({"at": "answer", "answer": {"text": "<p>", "content_type": "text/html"}}).server.answer(200)
    assert (page.text, page.content_type, page.status) == ("<p>", "text/html", 200)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"drop": {"type": "delta"}}, "start stop"),
        ({"repeat": {"type": {"in": ["start", "stop"]}}}, "start start delta stop stop"),
        (
            {"insert": {"after": {"type": "start"}, "items": [{"type": "after-{$it.type}", "data": {}}]}},
            "start after-start delta stop",
        ),
        ({"insert": {"before": {}, "items": [{"type": "x", "data": {}}]}}, "x start x delta x stop"),
        ({"when": {"it.data.text": "stop"}, "set": {"type": "end"}}, "start delta end"),
        ({"when": {"talk.title": "Bye"}, "drop": {}}, "start delta stop"),
    ],
)
async def test_each_event_of_a_stream_is_changed(change: dict[str, Any], expected: str) -> None:
    assert await Wrong({"at": "play", **change}).events() == expected.split()


def test_values_get_the_type_of_what_they_replace() -> None:
    assert [it.type for it in Wrong({"at": "closing", "change": {".": "reverse"}}).server.closing()] == [
        "stop",
        "usage",
    ]
    assert Wrong({"at": "frame", "change": {".": {"replace": ["\n", "\r\n"]}}}).server.frame("x") == b"data: x\r\n\r\n"
    assert Wrong({"at": "frame", "becomes": ""}).server.frame("x") == b""
    assert Wrong({"at": "pair", "set": {"1": 0}}).server.pair() == (20, 0)
    assert Wrong({"at": "pair", "becomes": [1, 2]}).server.pair() == (1, 2)


def test_parts_and_settings_go_wrong_too() -> None:
    wrong = Wrong({"at": "player.reason", "change": {".": {"lookup": {"end": "stop"}}}}, {"at": "pace", "becomes": 0.1})
    assert wrong.server.player.reason("end") == "stop"
    wrong.tally.clear()
    assert (wrong.server.pace, wrong.tally.seen) == (0.1, {1})


def test_a_change_that_breaks_is_told() -> None:
    wrong = Wrong({"at": "body", "change": {"none": "upper"}})
    with pytest.raises(AttributeError):
        wrong.body()
    assert wrong.tally.troubles == ["body: AttributeError(\"'NoneType' object has no attribute 'upper'\")"]


def test_what_is_not_there_is_nothing() -> None:
    assert list(find({"a": None}, parse_path("a.b.c"))) == []
    assert changed({"a": 1}, parse_path("b.c"), lambda old: 2) == {"a": 1}
    assert changed({"a": 1}, ("a",), lambda old: MISSING) == {}
    assert str(MISSING) == "nothing"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": "bodi", "skip": True}, "at: no part has 'bodi'; do you mean 'body'?"),
        ({"at": "a b", "skip": True}, "at: 'a b' is no step; write `step`"),
        ({"at": "agent.reason", "skip": True}, "at: the server has no part 'agent'; it has: server, player"),
        ({"at": "body"}, "nothing goes wrong at body; say one of: becomes, set"),
        ({"at": "body", "argument": "kin", "becomes": 1}, "argument: body has no argument 'kin'; do you mean 'kind'?"),
        ({"at": "body", "when": {"tlak.title": 1}, "skip": True}, "there is no 'tlak' at body; do you mean 'talk'?"),
        ({"at": "body", "set": {"a": "$tolk.title"}}, "there is no 'tolk' at body; do you mean 'talk'?"),
        ({"at": "body", "set": {"a": "$talk[0]"}}, "there is no '$talk[0]' at body; "),
        ({"at": "body", "change": {"a": "uper"}}, "change: there is no function 'uper' here; do you mean 'upper'?"),
        (
            {"at": "body", "change": {"a": {"pluss": 1}}},
            "change: there is no function 'pluss' here; do you mean 'plus'?",
        ),
        (
            {"at": "body", "when": {"it.a": {"is": "abscent"}}, "becomes": 1},
            "is: there is no 'abscent'; do you mean 'absent'?",
        ),
        (
            {"at": "body", "when": {"it.a": {"start": "x"}}, "becomes": 1},
            "there is no test 'start'; do you mean 'starts'?",
        ),
        ({"at": "body", "then": ["tel", "x"]}, "no part has 'tel'; do you mean 'tell'?"),
        ({"at": "body(a, b, c)", "skip": True}, "at: body has only 2 arguments"),
        ({"at": "body", "argument": "kind", "refuse": [400]}, "argument: refuse is about the step"),
        ({"at": "body", "when": {"it.a": 1}, "skip": True}, "when: there is no `it` yet where skip decides"),
        ({"at": "pace", "skip": True}, "at: pace is a setting; a setting can only have `becomes`"),
    ],
)
def test_a_change_of_nothing_is_a_problem(change: dict[str, Any], words: str) -> None:
    found = list(problems(Change(**change), Server()))
    assert len(found) == 1
    assert found[0].startswith(words)


FILE = """\
faults:
- id: two-starts
  wrong: A chat starts twice.
  requirements: BL-FLOW-01 BL-FLOW-04
  cases: flow.one_message_is_one_loop
  mutate: {at: "events(*, chat:start)", change: {.: {times: 2}}}
"""


def faults_in(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    return read_faults(path, "blade")


@pytest.mark.parametrize(
    ("right", "wrong", "line", "words"),
    [
        ("BL-FLOW-01", "BL-FLOW-99", 4, "two-starts: requirements: there is no 'BL-FLOW-99'; do you mean"),
        ("one_loop", "one_lop", 5, "two-starts: cases: there is no 'flow.one_message_is_one_lop'; do you mean"),
        ("events(", "event(", 6, "two-starts: mutate: at: no part has 'event'; do you mean 'events'?"),
        ("change", "chanje", 6, "faults.0.mutate.0.chanje: there is no such entry; do you mean 'change'?"),
        ("mutate", "mutates", 6, "faults.0.mutates: there is no such entry; do you mean 'mutate'?"),
        ("twice.", "twice", 3, "two-starts: wrong: say in a sentence what is wrong"),
        ("two-starts", "Two Starts", 2, "Two Starts: an id is small letters and digits with hyphens"),
        ("mutate: {", "program: Nobody # {", 6, "two-starts: programs.py has no class 'Nobody'"),
        ("mutate: {", "program: PollingOnly # {", 6, "two-starts: the class has the name of the id: TwoStarts"),
        ("  mutate: {", "  # {", 2, "two-starts: say `mutate` or `program`, and not both"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_line(
    right: str, wrong: str, line: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentError) as error:
        faults_in(tmp_path, FILE.replace(right, wrong))
    assert f"{tmp_path / 'faults.yaml'}:{line}: {words}" in str(error.value)


def test_ids_are_unique_and_no_program_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as error:
        faults_in(tmp_path, FILE + FILE.removeprefix("faults:\n"))
    assert "faults.yaml:7: two-starts: this id was used before" in str(error.value)
    assert "no row has `program: PollingOnly`, which is in conformance.faults.blade.programs" in str(error.value)


def test_an_id_is_unique_in_all_files_of_a_dialect(tmp_path: Path) -> None:
    first, second = tmp_path / "faults.yaml", tmp_path / "more_faults.yaml"
    first.write_text(FILE.replace("two-starts", "two-beginnings"))
    second.write_text(FILE.replace("two-starts", "two-beginnings"))
    programs = [fault for fault in load_faults("blade").values() if not fault.changes]
    rows = "".join(
        f"- {{id: {it.name}, requirements: {' '.join(it.requirements)}, cases: {' '.join(it.cases)}, "
        f"program: {it.server.name}}}\n"
        for it in programs
    )
    third = tmp_path / "program_faults.yaml"
    third.write_text("faults:\n" + rows)
    with pytest.raises(DocumentError, match=r"more_faults\.yaml:2: two-beginnings: this id was used before"):
        read_faults(first, "blade", second, third)
    assert len(read_faults(first, "blade", third)) == 1 + len(programs)


@pytest.mark.parametrize("dialect", dialects())
def test_most_faults_are_rows(dialect: str) -> None:
    faults = load_faults(dialect).values()
    assert len([fault for fault in faults if fault.changes]) > 0.85 * len(faults)
    assert len({fault.sentence for fault in faults}) == len(faults)


def test_a_change_that_made_no_difference_is_told() -> None:
    fault = load_faults("blade")["two-starts"]
    fault.tally.clear()
    assert fault.unapplied == ["events(*, chat:start)"]
    server = fault.server()
    assert len(step_of(server, "events")(None, "chat:start", {})) == 2
    assert fault.unapplied == []
    assert inspect.iscoroutinefunction(step_of(load_faults("blade")["stop-ignored"].server(), "on_chat_stop"))


async def test_a_server_that_breaks_down_is_not_a_fault() -> None:
    async def broken(request: web.Request) -> web.Response:
        raise KeyError("agent")

    app = web.Application()
    app.router.add_get("/", broken)
    with broken_handlers() as raised:
        async with TestClient(TestServer(app)) as client:
            assert (await client.get("/")).status == 500
    assert raised == ["KeyError('agent')"]
