"""An agent as /meta describes it, read with tolerance: the cases on /meta are the strict ones."""

from collections.abc import Mapping
from typing import Any

from conformance.kit.expect import NotTestable

MODES = ("none", "message", "delta")
HISTORY_TYPES = ("full", "compacted")


class Agent:
    """What an agent says it can do."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.told = told
        self.name = str(told["name"])

    def _capability(self, name: str) -> Mapping[str, Any]:
        found = _mapping(_mapping(self.told.get("capabilities")).get(name))
        return {key: value for key, value in found.items() if value is not None}

    @property
    def modes(self) -> tuple[str, ...]:
        """The stream modes it declares; without a declaration, none."""
        declared = self._capability("stream")
        return tuple(mode for mode in MODES if mode in declared) or ("none",)

    @property
    def usual_mode(self) -> str:
        """The plainest mode it has."""
        return self.modes[0]

    @property
    def streamed_modes(self) -> tuple[str, ...]:
        found = tuple(mode for mode in self.modes if mode != "none")
        if not found:
            raise _lacks(self, "a streaming mode")
        return found

    @property
    def history_types(self) -> tuple[str, ...]:
        return tuple(name for name in HISTORY_TYPES if name in self._capability("history"))

    @property
    def takes_client_tools(self) -> bool:
        return "tools" in self._capability("application")

    @property
    def image_kinds(self) -> frozenset[str]:
        return frozenset(self._capability("image"))

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(str(tool["name"]) for tool in _mappings(self.told.get("tools")) if "name" in tool)

    def options(self, kind: str | None = None) -> list[Mapping[str, Any]]:
        """Its options, or those of one type."""
        found = [option for option in _mappings(self.told.get("options")) if _is_usable(option)]
        return [option for option in found if kind in (None, option["type"])]

    def option(self, kind: str, name: str | None = None) -> Mapping[str, Any]:
        """One option of this type: the named one, or the first."""
        for option in self.options(kind):
            if name is None or option["name"] == name:
                return option
        raise _lacks(self, f"a {kind} option" + (f" named {name!r}" if name else ""))

    def needs_mode(self, mode: str) -> None:
        if mode not in self.modes:
            raise _lacks(self, f"the stream mode {mode}")

    def needs_full_history(self) -> None:
        if "full" not in self.history_types:
            raise _lacks(self, "the full history")


def _lacks(agent: Agent, what: str) -> NotTestable:
    return NotTestable(f"the agent {agent.name!r} does not declare {what}")


def _is_usable(option: Mapping[str, Any]) -> bool:
    if not {"name", "type", "default"} <= set(option) or option["type"] not in ("text", "secret", "select"):
        return False
    return option["type"] != "select" or option["default"] in _strings(option.get("options"))


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
