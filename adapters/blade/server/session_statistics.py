"""What the turns of a session add up to: the tokens of its context, its plan, its sub-agents' work."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import gateway.model as m

from .turn_state import CONTEXT_WINDOW, TurnEntry

CHARACTERS_PER_TOKEN = 4
"""In texts of letters; of other scripts, such as Chinese, a character is counted as a token."""
PER_MESSAGE = 4
"""How many tokens separate one message from the next."""
ASCII = 128


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: the gateway has no tokenizer, because each model has its own."""
    plain = sum(ord(sign) < ASCII for sign in text)
    return len(text) - plain + -(-plain // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStatistics:
    """How full the context of a session is; `is_estimated` if the agent has told no tokens."""

    window: int
    used: int
    is_estimated: bool
    turns: int
    compactions: int
    input_tokens: int
    output_tokens: int

    @property
    def free(self) -> int:
        return max(0, self.window - self.used)

    @property
    def ratio(self) -> float:
        return min(1.0, round(self.used / self.window, 4)) if self.window else 1.0


def context_statistics(turns: Sequence[TurnEntry]) -> ContextStatistics:
    """Of the agent's own turns; the newest usage says how much the model was given."""
    own = [turn for turn in turns if turn.scope_id == m.ROOT]
    counted = [turn.usage for turn in own if turn.usage is not None and turn.usage.input_tokens]
    last = next((turn for turn in reversed(own) if turn.role is m.Role.ASSISTANT), None)
    used = counted[-1].input_tokens + counted[-1].output_tokens if counted else sum(
        PER_MESSAGE + estimate_tokens(turn.text) for turn in own)
    return ContextStatistics(
        window=last.context_window if last else CONTEXT_WINDOW, used=used, is_estimated=not counted, turns=len(own),
        compactions=sum(turn.compaction is not None for turn in own),
        input_tokens=sum(usage.input_tokens for usage in counted),
        output_tokens=sum(usage.output_tokens for usage in counted),
    )


def plan_steps(turns: Iterable[TurnEntry]) -> list[Mapping[str, object]]:
    """The steps of the newest plan that the agent has told."""
    steps: list[Mapping[str, object]] = []
    for turn in turns:
        for block in turn.blocks:
            if block.type == PLAN and isinstance(block.content, Mapping):
                told = block.content.get("steps")
                steps = [step for step in told if isinstance(step, Mapping)] if isinstance(told, list) else []
    return steps


PLAN = "plan_status"


def output_lines(turns: Iterable[TurnEntry], scope_id: str) -> list[str]:
    """The lines that a sub-agent has written."""
    return [line for turn in turns if turn.scope_id == scope_id for line in turn.text.splitlines()]
