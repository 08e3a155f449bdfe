"""Counts the turns of each agent since the server started, for each user apart."""

from collections import OrderedDict

from msgspec.structs import replace

import gateway.model as m
from gateway.ports import AgentCalls

MAX_COUNTED = 10_000
"""How many pairs of user and agent are counted; those that were used longest ago are dropped."""


class AgentUsage:
    """The calls of agents by their users; an agent that was made is counted under its own id."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], AgentCalls] = OrderedDict()

    def turn_ended(self, view: m.SessionView, ended: m.TurnEnded) -> None:
        key = view.owner, view.settings.agent_id or view.agent
        before = self._calls.pop(key, AgentCalls())
        failed = ended.outcome is m.Outcome.FAILED
        self._calls[key] = replace(
            before, total=before.total + 1, failed=before.failed + failed, last_used_at=view.at)
        if len(self._calls) > MAX_COUNTED:
            self._calls.popitem(last=False)

    def calls(self, owner: str, agent_id: str) -> AgentCalls:
        return self._calls.get((owner, agent_id), AgentCalls())
