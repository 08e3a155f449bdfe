"""What is remembered of sessions: the last so many, and nothing that can be printed."""

from adapters.aap.client.remote import SessionMemory
from adapters.aap.client.requests import SentSettings


def test_the_sessions_spoken_to_last_are_remembered() -> None:
    memory = SessionMemory(most=2)
    memory.of("a").user_messages = 1
    memory.of("b").user_messages = 2
    assert memory.of("a").user_messages == 1
    memory.of("c").user_messages = 3
    assert (len(memory), memory.of("a").user_messages, memory.of("c").user_messages) == (2, 1, 3)
    assert memory.of("b").user_messages is None, "it was forgotten"
    assert len(memory) == 2


def test_what_is_remembered_is_never_printed() -> None:
    known = SessionMemory().of("a")
    known.sent_settings = SentSettings(tools=[], options={"api_key": "s3cret"}, client_tools=[])
    assert "s3cret" not in repr(known)
