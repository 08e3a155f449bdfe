"""What is remembered of sessions: the last so many, and nothing that can be printed."""

from adapters.aap.remote_memory import Memory
from adapters.aap.remote_speech import Chosen


def test_the_sessions_spoken_to_last_are_remembered() -> None:
    memory = Memory(most=2)
    memory.of("a").said = 1
    memory.of("b").said = 2
    assert memory.of("a").said == 1
    memory.of("c").said = 3
    assert (len(memory), memory.of("a").said, memory.of("c").said) == (2, 1, 3)
    assert memory.of("b").said is None, "it was forgotten"
    assert len(memory) == 2


def test_what_is_remembered_is_never_printed() -> None:
    known = Memory().of("a")
    known.chosen = Chosen(tools=[], options={"api_key": "s3cret"}, client_tools=[])
    assert "s3cret" not in repr(known)
