"""Servers are made of parts whose steps can be replaced: what an alteration does, and what a server without one is."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from conformance.faults.kill.setups import SETUPS, setup_of
from conformance.faults.steps import (
    AsyncStep,
    NoSuchStep,
    Step,
    Variant,
    alter,
    names_of,
    part_with,
    parts_of,
    replace_steps,
    step_of,
    variant,
    variants,
)


class Speaker:
    """Has a step that takes another of its own."""

    mark = "!"

    def word(self, name: str) -> str:
        return f"Hello {name}{self.mark}"

    async def speak(self, name: str) -> str:
        return self.word(name)


class Counter:
    """Has a step that takes one of another part."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker

    def count(self, name: str) -> int:
        return len(self.speaker.word(name))


class Greeter:
    """A server of two parts."""

    def __init__(self, name: str = "you") -> None:
        self.name = name
        self.speaker = Speaker()
        self.counter = Counter(self.speaker)
        self.parts = {"speaker": self.speaker, "counter": self.counter}


class Loud:
    """Shouts."""

    def word(self, step: Step[str], name: str) -> str:
        return step(name).upper()


@dataclass
class Remembering:
    """Says again what was said before, and names the server."""

    server: Greeter
    said: list[str] = field(default_factory=list)

    def word(self, step: Step[str], name: str) -> str:
        self.said.append(step(name))
        return f"{self.server.name}: {' '.join(self.said)}"


class Doubting:
    """Asks."""

    mark = "?"


class LoudAndDoubting:
    """Asks, and shouts."""

    after = Loud
    mark = "?"


def test_a_step_is_replaced_for_all_who_take_it() -> None:
    server = variant(Greeter, Loud)()
    assert server.speaker.word("you") == "HELLO YOU!"
    assert server.counter.count("you") == 10
    assert step_of(server, "word")("me") == "HELLO ME!"


def test_other_servers_stay_as_they_are() -> None:
    variant(Greeter, Loud)()
    assert Greeter().speaker.word("you") == "Hello you!"


def test_an_alteration_is_made_anew_for_each_server_and_given_it_if_it_asks() -> None:
    kind = variant(Greeter, Remembering)
    first, second = kind(name="first"), kind(name="second")
    assert first.speaker.word("a") == "first: Hello a!"
    assert first.speaker.word("b") == "first: Hello a! Hello b!"
    assert second.speaker.word("c") == "second: Hello c!"


def test_settings_are_replaced() -> None:
    server = variant(Greeter, Doubting)()
    assert server.speaker.word("you") == "Hello you?"
    assert Speaker.mark == "!"


def test_an_alteration_comes_after_another() -> None:
    assert variant(Greeter, LoudAndDoubting)().speaker.word("you") == "HELLO YOU?"


def test_the_last_alteration_is_the_outermost() -> None:
    server = Variant("both", Greeter, (Remembering, Loud))(name="x")
    assert server.speaker.word("you") == "X: HELLO YOU!"


async def test_a_step_that_is_awaited_is_replaced_by_one_that_is() -> None:
    class Twice:
        async def speak(self, step: AsyncStep[str], name: str) -> str:
            return f"{await step(name)} {await step(name)}"

    assert await variant(Greeter, Twice)().speaker.speak("you") == "Hello you! Hello you!"


def test_a_function_alters_a_server() -> None:
    def rename(server: Any) -> None:
        server.name = "nobody"

    server = Greeter()
    alter(server, rename)
    assert server.name == "nobody"


def test_a_step_that_nobody_has_is_an_error() -> None:
    class Singing:
        def sing(self, step: Step[str]) -> str:
            return step()

    with pytest.raises(NoSuchStep, match="no part has 'sing'"):
        variant(Greeter, Singing)()


def test_a_step_that_two_parts_have_is_an_error() -> None:
    server = Greeter()
    server.parts["other"] = Speaker()  # type: ignore[assignment]
    with pytest.raises(NoSuchStep, match="the parts speaker, other have a step 'word'"):
        replace_steps(server, Loud())


def test_a_server_that_is_not_made_of_parts_is_its_own_only_part() -> None:
    server = Speaker()
    assert parts_of(server) == {"server": server}
    alter(server, Loud)
    assert server.word("you") == "HELLO YOU!"


def test_variants_have_the_names_of_their_alterations() -> None:
    assert [kind.name for kind in variants(Greeter, Loud, Doubting)] == ["Loud", "Doubting"]
    assert names_of(Speaker()) == ["mark", "speak", "word"]


@pytest.mark.parametrize("dialect", SETUPS)
def test_every_step_of_a_reference_server_has_one_name(dialect: str) -> None:
    server = setup_of(dialect).server()
    names = [name for part in parts_of(server).values() for name in names_of(part)]
    assert [name for name in names if part_with(server, name) is None] == []
    assert len(names) == len(set(names)) > 30
    assert len(parts_of(server)) > 4


@pytest.mark.parametrize("dialect", SETUPS)
def test_no_part_of_a_reference_server_is_half_of_another(dialect: str) -> None:
    kinds = [type(part) for part in parts_of(setup_of(dialect).server()).values()]
    assert [kind.__name__ for kind in kinds if kind.__mro__ != (kind, object)] == []
