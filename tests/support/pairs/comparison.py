"""What of a conversation did not arrive, feature by feature, and whether what was declared to arrive otherwise did.

Where a dialect has no words for an ask it tells it as something it has words for: a call, a question, a notice. Such a
stand-in is known by the words of what it stands for, and is no loss to the feature in whose clothes it comes.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import gateway.model as m
from mappings.language import SupportLevel, Table
from tests.support.pairs.facts import FactCounter, Facts
from tests.support.pairs.reader import at_once

BROUGHT = ("images_in", "files", "history_seed", "structured_output")
"""What goes the other way; tested by itself."""
NOT_TOLD = (*BROUGHT, *m.SESSION_FEATURES)
"""What no turn shows: what goes the other way, and what a session has beside its conversation."""
ASKS = ("client_tools", "permissions", "questions", "continuations", "rollbacks")
Groups = list[tuple[str, ...]]
"""Words to look for: one of each group."""


class ReceivedFacts(Protocol):
    """What came out at the other end: read from the wire, or from a log."""

    calls: dict[str, tuple[str, Any]]
    trace: list[tuple[str, bool]]

    def facts(self) -> Facts: ...


class Comparison:
    """One turn as it was, and as it arrived over dialects that carry each feature so well."""

    def __init__(
        self,
        original: FactCounter,
        arrived: ReceivedFacts,
        levels: Mapping[str, set[SupportLevel]],
        spelling: Table | None,
    ) -> None:
        self.original, self.was = original, original.facts()
        self.arrived, self.now = arrived, arrived.facts()
        self.levels, self.spelling = levels, spelling
        self.standing_for = [
            words_of(name, one) for name in (*ASKS, "faults") if not self._full(name) for one in self.was[name]]
        if not self._full("subagents"):
            self.standing_for += [words_of(name, one) for name, one in original.asked_below]
        self.extra_calls = self._extra_calls()

    def lost(self) -> Iterator[tuple[str, Any, Any]]:
        for name in self.was:
            if not self._kept(name):
                yield name, self.was[name], self.now[name]

    def _full(self, name: str) -> bool:
        return self.levels[name] == {SupportLevel.FULL}

    def _kept(self, name: str) -> bool:
        was, now = self.was[name], self.now[name]
        match name:
            case "text":
                return now in (was, *([] if self._full("images_out") else [self.original.words]))
            case "usage":
                return now in (was, *([self._own_usage()] if SupportLevel.DROPPED in self.levels["subagents"] else []))
            case "tool_calls":
                return [call for key, call in self.arrived.calls.items() if key not in self.extra_calls] == was
            case "parallel_tools":
                return at_once(self.arrived.trace, self.extra_calls) == was
            case "tool_results":
                return self._without_extra(was, now, [name for name, _ in self.extra_calls.values()])
            case "client_tools" | "permissions" | "questions" | "notices":
                return self._without_extra(was, now)
            case "faults":
                return len(now) == len(was) and now == [(self._spelled(code), words) for code, words in was]
        return bool(now == was)

    # -- stand-ins ------------------------------------------------------------------------------------------------

    def _stands_in(self, told: Any) -> bool:
        words = json.dumps(told)
        return any(all(any(word in words for word in group) for group in groups) for groups in self.standing_for)

    def _extra_calls(self) -> dict[str, tuple[str, Any]]:
        """Calls that the agent never made; what sub-agents ask, where nobody hears them, among them."""
        left, extra = [*self.was["tool_calls"]], {}
        for call_id, call in self.arrived.calls.items():
            if call in left:
                left.remove(call)
            elif self._stands_in(call):
                extra[call_id] = call
        return extra

    def _without_extra(self, was: list[Any], now: list[Any], names: list[str] | None = None) -> bool:
        left = [*was]
        for one in now:
            if one in left:
                left.remove(one)
            elif not (self._stands_in(one) or self._is_put_by_call(one) if names is None else one[0] in names):
                return False
        return not left

    def _is_put_by_call(self, told: Any) -> bool:
        """Whether this is the question that a stand-in puts."""
        calls = json.dumps([*self.extra_calls.values()])
        return isinstance(told, list) and all(question in calls for question, _, _ in told)

    # -- pieces ---------------------------------------------------------------------------------------------------

    def _own_usage(self) -> dict[str, int]:
        below = self.original.usage_below
        return {name: count - getattr(below, name) for name, count in self.was["usage"].items()}

    def _spelled(self, code: str) -> str:
        """The dialect's word for a fault; a log has the house's own."""
        return code if self.spelling is None else self.spelling.word("fault", code)

    # -- lesser forms ---------------------------------------------------------------------------------------------

    def untold(self, raw: str, name: str) -> bool:
        """Whether something that is to arrive in another form is nowhere to be found on the wire."""
        if name == "images_out":
            return any(url not in raw for url in self.was[name])
        groups = [group for one in self.was[name] for group in words_of(name, one)]
        return any(all(word not in raw for word in group) for group in groups)

    def leaked(self, name: str) -> bool:
        """Whether something of a feature arrived, of which clients are said to learn nothing."""
        told = self.now[name]
        return any(told.values()) if isinstance(told, dict) else bool(told)


def words_of(name: str, asked: Any) -> Groups:
    """What is to be found again in whatever stands for this."""
    match name:
        case "questions":
            return [(question,) for question, _, _ in asked]
        case "rollbacks":
            return [tuple(map(str, option.values())) for option in asked[1]]
        case "continuations" | "faults":
            return [(asked[1],)]
    return [(asked[0],)]
