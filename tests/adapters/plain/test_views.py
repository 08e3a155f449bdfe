"""What the bodies of a plain dialect can show is what the language lets tables use."""

import gateway.model as m
from adapters.plain.routes import agent_names, message_names, session_names, tool_names
from mappings.language.routes import AGENT_NAMES, MESSAGE_NAMES, SESSION_NAMES, TOOL_NAMES

CARD = m.AgentCard(name="demo", tools=(m.AgentTool(spec=m.ToolSpec(name="look")),))


def entry(role: m.Role, text: str, scope_id: str = m.ROOT) -> m.HistoryEntry:
    return m.HistoryEntry(role=role, content=text, seq=1, at=1.0, scope_id=scope_id)


def test_every_name_of_the_language_is_bound() -> None:
    view = m.SessionView(session_id="ses_1", entries=[entry(m.Role.USER, "hi")])
    shown = session_names(view, [CARD])
    assert set(shown) == {*SESSION_NAMES, "agents"}
    assert set(shown["messages"][0]) == set(message_names(view.entries[0])) == set(MESSAGE_NAMES)
    assert set(agent_names(CARD)) == set(AGENT_NAMES)
    assert set(tool_names(CARD.tools[0].spec)) == set(TOOL_NAMES)


def test_the_text_of_a_session_is_what_the_agent_said_last() -> None:
    entries = [entry(m.Role.USER, "1"), entry(m.Role.ASSISTANT, "one"), entry(m.Role.USER, "2"),
               entry(m.Role.ASSISTANT, "two, "), entry(m.Role.ASSISTANT, "aside", "scope_1"),
               entry(m.Role.ASSISTANT, "too")]
    shown = session_names(m.SessionView(session_id="ses_1", entries=entries), [])
    assert shown["text"] == "two, too"
    assert [message["text"] for message in shown["messages"]] == ["1", "one", "2", "two, ", "too"]


def test_a_turn_that_waits_has_a_reason() -> None:
    view = m.SessionView(session_id="ses_1", status=m.SessionStatus.SUSPENDED)
    assert session_names(view, [])["stop_reason"] is m.StopReason.NEEDS_INPUT
    assert session_names(m.SessionView(session_id="ses_1"), [])["stop_reason"] is None
