"""An agent of one's own: named in config.yaml, found beside it, refused in words if it is none."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.backends.kinds import BackendContext, is_class_reference, user_class_kind
from gateway.client import AddressPolicy
from gateway.errors import Invalid
from tests.support.gateway_server import serving

AGENT = '''
from gateway.backends import EventWriter
from gateway.model import AgentCard, text_of


class Parrot:
    card = AgentCard(name="parrot", title="Parrot")

    def __init__(self, times=1):
        self.times = times

    async def run(self, turn):
        writer = EventWriter(turn)
        yield writer.start_message()
        for said in writer.text(text_of(turn.command.content) * self.times):
            yield said
        yield writer.end_message()

    async def close(self):
        pass


class Owl(Parrot):
    def confine(self, addresses, *, trust_uploads):
        self.confined = addresses, trust_uploads


class NoBackend:
    pass


number = 7
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "my_parrot.py").write_text(AGENT)
    (tmp_path / "my_mistake.py").write_text("def broken(:\n")
    before = sys.path[:]
    yield tmp_path
    sys.path[:] = before
    for name in ("my_parrot", "my_mistake"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("word", "is_one"), [
    ("my_parrot:Parrot", True), ("a.b.c:D", True), ("demo", False), (":x", False), ("a:", False), ("a b:c", False),
])
def test_a_colon_makes_it_an_import(word: str, is_one: bool) -> None:
    assert is_class_reference(word) is is_one


@pytest.mark.parametrize(("word", "settings", "told"), [
    ("no_such_module_here:X", {}, "No module named"),
    ("my_parrot:Eagle", {}, "has no class 'Eagle'"),
    ("my_parrot:number", {}, "has no class 'number'"),
    ("my_mistake:broken", {}, "invalid syntax"),
    ("my_parrot:NoBackend", {}, "is not a backend"),
    ("my_parrot:Parrot", {"tims": 2}, "tims"),
])
def test_what_is_no_backend_is_told(folder: Path, word: str, settings: dict, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        user_class_kind(word, folder).make(settings, BackendContext(folder))


def test_a_class_that_can_be_confined_is_told_what_clients_may_name(folder: Path) -> None:
    addresses = AddressPolicy()
    made = user_class_kind("my_parrot:Owl", folder).make({}, BackendContext(folder, addresses, trust_uploads=True))
    assert made.backend.confined == (addresses, True)  # type: ignore[attr-defined]
    assert (made.card and made.card.title, made.module and made.module.files) == ("Parrot", (folder / "my_parrot.py",))


async def test_it_answers_over_http(folder: Path) -> None:
    agents = {"polly": {"backend": "my_parrot:Parrot", "settings": {"times": 2}}}
    async with serving(folder, agents=agents) as served:
        async with served.http.get(served.url("/aap/meta")) as response:
            assert (await response.json())["agents"][0]["title"] == "Parrot"
        async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "polly"}}) as response:
            session = (await response.json())["sessionId"]
        turn = {"messages": [{"role": "user", "content": "hi"}]}
        async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as response:
            body = await response.json()
    assert body["messages"][0]["content"] == [{"type": "text", "text": "hihi"}]
