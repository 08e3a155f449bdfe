"""From settings to parts: every mistake of dialects, tables and agents at once, each at its line."""

from pathlib import Path

import pytest

from gateway.backends.acp import AcpBackend
from gateway.composition import Components, load_components
from gateway.config import load_config
from gateway.yaml_positions import Problems

GOOD = """\
dialects:
  aap: {mount: /x, page_size: 7}
agents:
  one: {backend: demo}
  two: {backend: demo, title: Two}
"""


def loaded(folder: Path, text: str, old: Components | None = None) -> Components:
    file = folder / "config.yaml"
    file.write_text(text)
    return load_components(load_config(file), old)


def test_what_the_settings_name_is_loaded(tmp_path: Path) -> None:
    parts = loaded(tmp_path, GOOD)
    assert list(parts.dialects) == list(parts.tables) == ["aap"]
    assert parts.settings["aap"].page_size == 7
    assert [card.name for card in parts.cards.values()] == ["one", "two"]
    assert parts.cards["two"].title == "Two"
    assert set(parts.backends) == {"one", "two"}


def test_every_mistake_is_told_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "over.yaml").write_text("frames:\n  turn.startd: []\n")
    with pytest.raises(Problems) as caught:
        loaded(tmp_path, """\
dialects:
  aap: {page_sise: 7}
  apa: {}
agents:
  one: {backend: dmeo}
  two: {backend: demo, settings: {dealy: 1}}
  three: {backend: scripted, settings: {scenario: nowhere.yaml}}
mappings: {aap: over.yaml}
""")
    told = [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]
    assert told == [
        "config.yaml:2:9: there is no setting 'page_sise'; did you mean 'page_size'?",
        "config.yaml:3:3: there is no dialect 'apa'; did you mean 'aap'?",
        "config.yaml:5:18: there is no backend 'dmeo'; did you mean 'demo'?",
        "config.yaml:6:35: there is no setting 'dealy'; did you mean 'delay'?",
        "nowhere.yaml:1:1: there is no such file",
        "over.yaml:2:3: nobody raises a cue 'turn.startd'; did you mean 'turn.started'?",
    ]


def test_settings_of_the_wrong_kind_are_told_in_words_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not in those of the validator, and without the text that was written: it may be a key."""
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(Problems) as caught:
        loaded(tmp_path, """\
dialects: {aap: }
agents:
  one: {backend: demo, settings: {delay: soon}}
  two: {backend: openai, settings: {key: $NO_SUCH_KEY, headers: secret}}
  three: {backend: remote, settings: {dialect: aap}}
""")
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems] == [
        "config.yaml:3:42: delay: must be a number, not a string",
        "config.yaml:4:42: key: the environment has no variable NO_SUCH_KEY",
        "config.yaml:4:65: headers: must be a mapping, as `{name: value}`, not a string",
        "config.yaml:5:28: 'url' is missing",
    ]


def test_agents_that_did_not_change_are_kept(tmp_path: Path) -> None:
    old = loaded(tmp_path, GOOD)
    new = loaded(tmp_path, GOOD.replace("title: Two", "title: Zwei"), old)
    assert new.backends["one"] is old.backends["one"]
    assert new.backends["two"] is not old.backends["two"]
    assert new.cards["two"].title == "Zwei"


def test_an_agent_is_confined_as_the_settings_say_and_made_anew_when_they_change(tmp_path: Path) -> None:
    acp = GOOD + "  three: {backend: acp, settings: {command: sh}}\n"
    old = loaded(tmp_path, acp)
    assert loaded(tmp_path, acp, old).backends["three"] is old.backends["three"]
    new = loaded(tmp_path, acp + "outbound: {allow: [10.0.0.0/8]}\nworkspace: {trust: true}\n", old)
    made = new.backends["three"]
    assert isinstance(made, AcpBackend)
    assert made is not old.backends["three"]
    assert made._addresses.problem("http://10.0.0.1/") is None
    assert made._addresses.problem("http://192.168.0.1/") is not None
    assert made._trust_uploads
