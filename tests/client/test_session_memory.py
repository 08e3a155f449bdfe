"""Which sessions are remembered, and which are forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.client import SessionMemory


def test_the_sessions_that_were_used_last_are_remembered() -> None:
    memory = SessionMemory[list[int]](most=2)
    memory.setdefault("a", []).append(1)
    memory.setdefault("b", []).append(2)
    assert memory.setdefault("a", []) == [1]
    memory.setdefault("c", []).append(3)
    assert (len(memory), memory.get("a"), memory.get("c")) == (2, [1], [3])
    assert memory.setdefault("b", []) == [], "it was forgotten"
    assert len(memory) == 2


def test_to_read_a_state_is_a_use() -> None:
    memory = SessionMemory[int](most=2)
    memory.put("a", 1)
    memory.put("b", 2)
    assert memory.get("a") == 1
    assert memory.put("c", 3) == 2
    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (1, None, 3)


def test_what_is_forgotten_is_returned_once() -> None:
    memory = SessionMemory[str](most=1)
    assert memory.put("a", "first") is None
    assert memory.put("a", "second") is None, "that is the same session"
    assert memory.put("b", "other") == "second"
    assert memory.pop("b") == "other"
    assert memory.pop("b") is None
    assert memory.values() == []


def test_a_busy_session_is_not_forgotten() -> None:
    busy = {"a", "b"}
    memory = SessionMemory[str](most=2, is_busy=busy.__contains__)
    for name in "abc":
        memory.put(name, name)
    assert memory.values() == ["a", "b"], "the new one was the only one to forget"
    busy.add("c")
    memory.put("c", "c")
    assert memory.values() == ["a", "b", "c"]
    busy.discard("a")
    assert memory.put("c", "c") == "a"


def test_all_can_be_forgotten_at_once() -> None:
    memory = SessionMemory[int]()
    memory.put("a", 1)
    memory.clear()
    assert "a" not in memory and len(memory) == 0


@given(st.lists(st.sampled_from("abcdef")), st.integers(1, 4))
def test_the_last_so_many_names_are_known(used: list[str], most: int) -> None:
    memory = SessionMemory[str](most)
    for name in used:
        memory.put(name, name)
    last = list(dict.fromkeys(reversed(used)))[:most]
    assert memory.values() == last[::-1]
