"""Decides which agent runs a turn: that of its session, or that of a rule; a rule that often fails is withdrawn."""

import asyncio
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from hashlib import sha256

import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.config import RouteSettings, WayBackSettings
from gateway.errors import Conflict, GatewayError
from gateway.json_values import JsonObject
from gateway.ports import Caller, ChosenRoute, Clock, Resources
from gateway.quotas import SYSTEM_OWNER

log = structlog.get_logger("dragoman.routes")

KIND = "withdrawn_route"
MAX_TURNS = 10_000
"""How many turns of a rule are looked at, at most."""
CLIENT_FAULTS = frozenset((m.FaultCode.INVALID, m.FaultCode.TOO_LARGE, m.FaultCode.UNSUPPORTED))
"""Faults that the client has brought about, and not the agent."""


class RouteRule:
    """One rule of the settings, and how its last turns have ended."""

    def __init__(self, settings: RouteSettings) -> None:
        self.settings = settings
        self.name = f"{settings.to}-{_digest(settings.model_dump_json(include={'to', 'agents', 'keys', 'header'}))}"
        """Equal for rules that look at the same requests, whatever their share."""
        self.id = f"{settings.to}-{_digest(settings.model_dump_json())}"
        """Changes with every field, so that a rule that was edited is tried again."""
        self._ends: deque[tuple[float, bool]] = deque(maxlen=MAX_TURNS)

    @property
    def looks_at_requests(self) -> bool:
        return bool(self.settings.keys or self.settings.header)

    def fits_request(self, caller: Caller) -> bool:
        """Whether the key and the headers of the caller are those of the rule."""
        keys, headers = self.settings.keys, self.settings.header
        has_key = not keys or bool(caller.credential and caller.key in keys)
        return has_key and all(caller.tags.get(name.lower()) == value for name, value in headers.items())

    def fits(self, view: m.SessionView, via: Sequence[str]) -> bool:
        """Whether the rule is for this session; the same session always gets the same answer to a share."""
        settings = self.settings
        if view.agent == settings.to or (settings.agents is not None and view.agent not in settings.agents):
            return False
        return place_of(view.session_id) < settings.share and (not self.looks_at_requests or self.name in via)

    def turn_ended(self, at: float, failed: bool) -> tuple[int, int] | None:
        """Take the end of a turn in; the failures and the turns, if they are too many failures."""
        limit = self.settings.unless
        if limit is None:
            return None
        self._ends.append((at, failed))
        while self._ends[0][0] < at - limit.over:
            self._ends.popleft()
        failures = sum(failed for _, failed in self._ends)
        return (failures, len(self._ends)) if _is_too_much(limit, failures, len(self._ends)) else None


class TurnRoutes:
    """The rules in the order of the settings; the first that fits a session decides."""

    def __init__(self, rules: Sequence[RouteSettings], resources: Resources, clock: Clock) -> None:
        self._resources, self._clock = resources, clock
        self._rules = [RouteRule(one) for one in rules]
        self.headers = _headers_of(rules)
        """The headers, in lower case, that rules look at."""
        self._withdrawn: set[str] = set()
        self._storing: set[asyncio.Task[None]] = set()

    async def restore(self) -> None:
        """Withdraw the rules again that were withdrawn before the server stopped."""
        for one in await self._resources.list(KIND, SYSTEM_OWNER, limit=MAX_TURNS):
            self._withdrawn.add(one.resource_id)

    def reload(self, rules: Sequence[RouteSettings]) -> None:
        """Use other rules for turns that start from now on; a rule that has not changed keeps its counts."""
        old = {rule.id: rule for rule in self._rules}
        new = [RouteRule(one) for one in rules]
        if [rule.id for rule in new] != [rule.id for rule in self._rules]:
            log.info("routes_changed", routes=[shown(rule.settings) for rule in new])
        self._rules = [old.get(rule.id, rule) for rule in new]
        self.headers = _headers_of(rules)

    def marked(self, caller: Caller, commands: Sequence[m.AnyCommand]) -> Sequence[m.AnyCommand]:
        """The commands of this caller, with the names of the rules that its request fits."""
        via = tuple([rule.name for rule in self._rules if rule.looks_at_requests and rule.fits_request(caller)])
        if not via:
            return commands
        return [replace(one, via=via) if isinstance(one, m.SendMessage | m.Compact) else one for one in commands]

    def choose(self, view: m.SessionView, via: Sequence[str]) -> ChosenRoute | None:
        for rule in self._rules:
            if rule.id not in self._withdrawn and rule.fits(view, via):
                return ChosenRoute(agent=rule.settings.to, rule=rule.id)
        return None

    def turn_ended(self, rule_id: str, ended: m.TurnEnded) -> None:
        """Count the end of a turn that a rule has moved."""
        rule = next((one for one in self._rules if one.id == rule_id), None)
        if rule is None or rule_id in self._withdrawn or ended.outcome is m.Outcome.INTERRUPTED:
            return
        fault = ended.fault
        failed = fault is not None and fault.code not in CLIENT_FAULTS
        if (counted := rule.turn_ended(self._clock(), failed)) is not None:
            self._withdrawn.add(rule_id)
            failures, turns = counted
            log.warning("route_withdrawn", route=shown(rule.settings), failures=failures, turns=turns)
            task = asyncio.get_running_loop().create_task(self._store(rule_id, failures, turns), name="withdrawn route")
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    async def _store(self, rule_id: str, failures: int, turns: int) -> None:
        """Remember the withdrawal over a restart."""
        body: JsonObject = {"at": self._clock(), "failures": failures, "turns": turns}
        try:
            await self._resources.create(KIND, SYSTEM_OWNER, body, resource_id=rule_id)
        except Conflict:
            return  # another server has withdrawn it as well
        except GatewayError as error:
            log.warning("route_withdrawal_not_stored", route=rule_id, error=error.message)

    async def close(self) -> None:
        """Wait until withdrawals are stored."""
        await asyncio.gather(*self._storing)


def _headers_of(rules: Sequence[RouteSettings]) -> frozenset[str]:
    return frozenset(name.lower() for rule in rules for name in rule.header)


def place_of(session_id: str) -> float:
    """A number from 0 to 1 that belongs to the session for ever: a larger share has all sessions of a smaller one."""
    return zlib.crc32(session_id.encode(errors="surrogatepass")) / 2**32


def shown(rule: RouteSettings) -> str:
    """A rule in one line, without values of headers."""
    words: Mapping[str, object] = {
        "agents": ",".join(rule.agents or ()), "keys": ",".join(rule.keys), "header": ",".join(rule.header),
        "share": f"{rule.share:.4%}".rstrip("0%").rstrip(".") + "%" if rule.share else "0%",
    }
    return " ".join([f"to={rule.to}", *(f"{name}={value}" for name, value in words.items() if value)])


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _is_too_much(limit: WayBackSettings, failures: int, turns: int) -> bool:
    return turns >= limit.turns and failures > limit.failures * turns
