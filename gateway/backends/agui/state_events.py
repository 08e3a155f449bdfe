"""AG-UI events beside text and calls: state and its patches, activities, steps, custom events, snapshots."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import BackendEvent

from .messages import tool_content
from .scope_writers import CALL, TEXT, ScopeWriter
from .wire import AguiEvent


class PatchError(Exception):
    """An operation that does not fit the document."""


def apply_patch(document: JsonValue, operations: Iterable[Mapping[str, object]]) -> object:
    """Raises `PatchError` if an operation fails; then none was applied."""
    holder = {"": deepcopy(document)}
    for operation in operations:
        try:
            _apply(holder, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(f"{operation.get('op')} at '{operation.get('path')}': {error}") from None
    return holder[""]


def _apply(holder: Any, operation: Mapping[str, Any]) -> None:
    path = _steps(operation["path"])
    match operation["op"]:
        case "add":
            _add(holder, path, deepcopy(operation["value"]))
        case "remove":
            _remove(holder, path)
        case "replace":
            _remove(holder, path)
            _add(holder, path, deepcopy(operation["value"]))
        case "move":
            source = _steps(operation["from"])
            if path[:len(source)] == source and path != source:
                raise ValueError("nothing is moved into itself")
            _add(holder, path, _remove(holder, source))
        case "copy":
            _add(holder, path, deepcopy(_at(holder, _steps(operation["from"]))))
        case "test":
            if _at(holder, path) != operation["value"]:
                raise ValueError("another value is there")
        case other:
            raise ValueError(f"there is no operation {other}")


def _steps(pointer: str) -> list[str]:
    """The path of the whole document is empty; `~1` is a slash in a name, `~0` a tilde."""
    if pointer and not pointer.startswith("/"):
        raise ValueError("a path begins with a slash")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _at(place: Any, steps: list[str]) -> Any:
    for step in steps:
        place = place[_index(step, len(place) - 1) if isinstance(place, list) else step]
    return place


def _add(holder: object, steps: list[str], value: JsonValue) -> None:
    place, last = _at(holder, steps[:-1]), steps[-1]
    if isinstance(place, list):
        place.insert(len(place) if last == "-" else _index(last, len(place)), value)
    else:
        place[last] = value


def _remove(holder: object, steps: list[str]) -> Any:
    place, last = _at(holder, steps[:-1]), steps[-1]
    return place.pop(_index(last, len(place) - 1)) if isinstance(place, list) else place.pop(last)


def _index(step: str, most: int) -> int:
    if not (step.isascii() and step.isdigit()) or (step != "0" and step.startswith("0")) or int(step) > most:
        raise IndexError(f"there is no place {step}")
    return int(step)


class SharedState:
    """The state and the activities, which the agent changes step by step."""

    def __init__(self, state: object) -> None:
        self.state = state
        self._activities: dict[str, Any] = {}

    def snapshot(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        self.state = event.snapshot
        return [m.CustomEvent(topic="agui.state", payload={"snapshot": event.snapshot})]

    def change(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        operations = event.delta if isinstance(event.delta, list) else []
        self.state = _apply_patch("its state", self.state, operations)
        return [m.CustomEvent(topic="agui.state", payload={"delta": operations})]

    def activity(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        """An activity is a data block of the message, emitted again after every change."""
        key = event.message_id or ""
        if event.type == "ACTIVITY_DELTA":
            self._activities[key] = _apply_patch("an activity", self._activities.get(key, {}), event.patch or [])
        else:
            self._activities[key] = event.content
        return scope.data(m.DataPart(type=(event.activity_type or "activity").lower(), content=self._activities[key]))


def _apply_patch(what: str, document: Any, operations: list[Any]) -> Any:
    try:
        return apply_patch(document, [one for one in operations if isinstance(one, dict)])
    except PatchError as error:
        raise BackendFailed(f"the agent changed {what} in a way that does not fit: {error}") from None


# -- a whole conversation ---------------------------------------------------------------------------------------------

def new_messages(scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
    """Emit the messages after the last user message that were not received before."""
    messages = event.messages or []
    last = max((at for at, one in enumerate(messages) if one.get("role") == "user"), default=-1)
    return [events for one in messages[last + 1:] for events in _message(scope, one)]


def _message(scope: ScopeWriter, message: dict[str, Any]) -> list[BackendEvent]:
    known, text, events = str(message.get("id") or ""), message.get("content"), list[BackendEvent]()
    if message.get("role") == "tool":
        return scope.returned(str(message.get("toolCallId")), tool_content(text))
    if message.get("role") != "assistant":
        return []
    if isinstance(text, str) and text and known not in scope.ids.values() and text not in scope.texts:
        events += [*scope.say(known, text), *scope.end(TEXT, known)]
    for call in message.get("toolCalls") or ():
        events += _whole_call(scope, known, call)
    return events


def _whole_call(scope: ScopeWriter, known: str, call: Any) -> list[BackendEvent]:
    made = call.get("function") if isinstance(call, dict) else None
    if not isinstance(made, dict) or not call.get("id") or call["id"] in scope.called:
        return []
    call_id = str(call["id"])
    return [*scope.call(call_id, str(made.get("name")), known),
            *scope.arguments(call_id, str(made.get("arguments") or "")), *scope.end(CALL, call_id)]


# -- events of its own ------------------------------------------------------------------------------------------------

def step_event(scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
    status = "started" if event.type == "STEP_STARTED" else "finished"
    return [m.CustomEvent(topic="agui.step", payload={"name": event.step_name, "status": status})]


def custom_event(scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
    payload: JsonObject = event.value if isinstance(event.value, dict) else {"value": event.value}
    return [m.CustomEvent(topic=event.name or "agui.custom", payload=payload)]


def raw_event(scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
    return [m.CustomEvent(topic="agui.raw", payload={"event": event.event, "source": event.source})]
