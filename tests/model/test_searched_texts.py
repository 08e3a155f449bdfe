"""The texts that a search looks at: titles and what was said, each message whole; no thinking, no sub-agents."""

import gateway.model as m


def texts(*records: m.Record) -> list[str]:
    return list(m.searched_texts(records))


def record(event: m.AnyEvent, scope_id: str = m.ROOT) -> m.Record:
    return m.Record(seq=1, at=1.0, session_id="s", scope_id=scope_id, event=event)


def block(text: str, kind: m.BlockKind = m.BlockKind.TEXT, message_id: str = "m") -> m.BlockEnded:
    return m.BlockEnded(block_id="b", message_id=message_id, kind=kind, text=text)


def test_titles_questions_and_history_are_searched() -> None:
    history = (m.SeedMessage(role=m.Role.USER, content="before"),)
    assert texts(
        record(m.SessionCreated(agent="a", title="Tea", history=history)), record(m.SessionUpdated(title="Green tea")),
        record(m.InputAccepted(command_id="c", command=m.SendMessage(content="Which?"))),
    ) == ["Tea", "before", "Green tea", "Which?"]


def test_the_blocks_of_a_message_are_one_text() -> None:
    assert texts(record(block("green ")), record(block("no", message_id="n")), record(block("tea"))) == [
        "green tea", "no"]


def test_thinking_and_sub_agents_are_not_searched() -> None:
    assert texts(record(block("why", m.BlockKind.THINKING)), record(block("aside"), "scope_1")) == []
