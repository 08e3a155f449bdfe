"""Modules of users that import old names go on working, and are warned."""

import importlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

import gateway.model as m
from gateway.backends import EventWriter, ToolExecutor

OLD = {
    "gateway.backends": ["Pen", "Round", "Result", "enabled", "builtin", "Replays", "Kind", "Factory"],
    "gateway.model": ["Capabilities", "Topic", "Trigger", "Level", "Entry", "in_words", "in_markdown", "encode",
                      "decode", "read_json"],
    "gateway.ports": ["Confined", "Forgetting", "Resuming", "Scoped"],
}


@pytest.mark.parametrize(("package", "name"), [(package, name) for package, names in OLD.items() for name in names])
def test_an_old_name_gives_what_has_a_new_one(package: str, name: str) -> None:
    with pytest.warns(FutureWarning, match=rf"{package}\.{name} is called .* now"):
        assert getattr(importlib.import_module(package), name) is not None


def test_a_name_that_never_was_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        importlib.import_module("gateway.model").Nonsense  # noqa: B018


def test_old_names_of_methods_work() -> None:
    writer = EventWriter(cast(Any, SimpleNamespace()))
    event = m.NoticePosted(topic="t", title="T")
    with pytest.warns(FutureWarning, match="emit"):
        assert writer.say(event) is event
    executor = ToolExecutor(cast(Any, SimpleNamespace()), writer, {})
    with pytest.warns(FutureWarning, match="results"):
        assert executor.returned is executor.results
