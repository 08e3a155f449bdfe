"""The agent and its sub-agents: who speaks, who began by whom, and who ends when."""

import gateway.model as m
from gateway.backends.agui.scope_writers import ScopeWriters
from gateway.backends.agui.wire import AguiEvent
from gateway.ids import make_mint
from gateway.ports import BackendEvent, ScopedEvent


def by(name: str, parent: str | None = None) -> AguiEvent:
    return AguiEvent(type="TEXT_MESSAGE_START", subagent_run_id=name, parent_subagent_run_id=parent)


def ended(said: list[BackendEvent]) -> list[tuple[str, m.StopReason | None]]:
    return [(one.scope_id, one.event.stop_reason) for one in said
            if isinstance(one, ScopedEvent) and isinstance(one.event, m.ScopeStatusChanged)]


def test_a_sub_agent_begins_with_its_first_word_and_once() -> None:
    voices = ScopeWriters(make_mint(""), frozenset())
    assert voices.of(AguiEvent(type="TEXT_MESSAGE_START")) == (voices.root, [])
    outer, began = voices.of(by("outer"))
    assert [one.event for one in began if isinstance(one, ScopedEvent)] == [m.ScopeOpened(parent="root")]
    assert voices.of(by("outer")) == (outer, [])
    assert voices.started(voices.root, by("outer")) == []
    inner, began = voices.of(by("inner", "outer"))
    assert [one.event for one in began if isinstance(one, ScopedEvent)] == [m.ScopeOpened(parent=outer.scope_id)]
    assert voices.inner_first == (inner, outer, voices.root)


def test_sub_agents_end_by_their_names_or_with_the_turn() -> None:
    voices = ScopeWriters(make_mint(""), frozenset())
    scopes = {name: voices.of(by(name))[0].scope_id for name in ("a", "b", "c", "d")}
    assert ended(voices.finished(voices.root, by("a"))) == [(scopes["a"], m.StopReason.END_TURN)]
    assert voices.finished(voices.root, by("a")) == []
    failed = voices.failed(voices.root, by("b"))
    assert isinstance(failed[0], m.NoticePosted) and ended(failed) == [(scopes["b"], m.StopReason.ERROR)]
    assert [scope for scope, _ in ended(voices.end_subagents())] == [scopes["d"], scopes["c"]]
    assert voices.inner_first == (voices.root,)


def test_a_call_that_a_sub_agent_left_open_comes_back_when_it_ends() -> None:
    voices = ScopeWriters(make_mint(""), frozenset())
    voice, _ = voices.of(by("a"))
    voice.call("c", "search")
    voice.end("call", "c")
    assert voices.open_calls["c"][0] is voice
    voices.end_subagents()
    assert voices.open_calls == {}
