"""State that changes bit by bit: what the operations do, and that nothing is done where one does not fit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.agui.state_events import PatchError, apply_patch

DOCUMENT = {"a": 1, "list": [1, 2], "": "empty", "x/y": 3, "m~n": 4, "deep": {"er": {}}}


@pytest.mark.parametrize(("operation", "path", "found"), [
    ({"op": "add", "path": "/b", "value": 2}, "b", 2),
    ({"op": "add", "path": "/list/1", "value": 9}, "list", [1, 9, 2]),
    ({"op": "add", "path": "/list/-", "value": 9}, "list", [1, 2, 9]),
    ({"op": "remove", "path": "/list/0"}, "list", [2]),
    ({"op": "replace", "path": "/x~1y", "value": 5}, "x/y", 5),
    ({"op": "replace", "path": "/m~0n", "value": 5}, "m~n", 5),
    ({"op": "replace", "path": "/", "value": 5}, "", 5),
    ({"op": "replace", "path": "/list/1", "value": 5}, "list", [1, 5]),
    ({"op": "move", "from": "/a", "path": "/deep/er/a"}, "deep", {"er": {"a": 1}}),
    ({"op": "copy", "from": "/list", "path": "/b"}, "b", [1, 2]),
    ({"op": "test", "path": "/a", "value": 1}, "a", 1),
])
def test_operations(operation: dict[str, Any], path: str, found: Any) -> None:
    assert apply_patch(DOCUMENT, [operation])[path] == found


@pytest.mark.parametrize("operation", [
    {"op": "remove", "path": "/nothing"},
    {"op": "remove", "path": "/list/2"},
    {"op": "remove", "path": "/list/-"},
    {"op": "replace", "path": "/nothing", "value": 1},
    {"op": "add", "path": "/nothing/deep", "value": 1},
    {"op": "add", "path": "/list/3", "value": 1},
    {"op": "add", "path": "/list/01", "value": 1},
    {"op": "add", "path": "/a/b", "value": 1},
    {"op": "add", "path": "a", "value": 1},
    {"op": "add", "path": 7, "value": 1},
    {"op": "add", "path": "/b"},
    {"op": "test", "path": "/a", "value": 2},
    {"op": "move", "from": "/deep", "path": "/deep/er"},
    {"op": "dance", "path": "/a"},
    {},
])
def test_what_does_not_fit_changes_nothing(operation: dict[str, Any]) -> None:
    document = {"a": 1, "list": [1, 2], "deep": {"er": {}}}
    with pytest.raises(PatchError):
        apply_patch(document, [{"op": "add", "path": "/c", "value": 2}, operation])
    assert document == {"a": 1, "list": [1, 2], "deep": {"er": {}}}


def test_the_whole_document() -> None:
    steps = [{"op": "replace", "path": "", "value": {"a": []}}, {"op": "add", "path": "/a/-", "value": 1}]
    assert apply_patch(None, steps) == {"a": [1]}


json = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)), max_leaves=8)


@given(json, json)
def test_a_document_becomes_another(old: Any, new: Any) -> None:
    assert apply_patch(old, [{"op": "replace", "path": "", "value": new}]) == new
    if isinstance(old, dict) and isinstance(new, dict):
        steps = [{"op": "remove", "path": f"/{_escaped(key)}"} for key in old]
        steps += [{"op": "add", "path": f"/{_escaped(key)}", "value": value} for key, value in new.items()]
        assert apply_patch(old, steps) == new


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
