"""CAS servers that ask wrongly, or go on wrongly."""

from typing import Any

from conformance.faults.cas.freedoms import OtherEndings
from conformance.faults.cas.memory import Body, Talk
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, text_of

ALLOWED, LISTED, AT_ONCE = (
    "asks.an_allowed_call_is_run",
    "asks.every_pending_call_is_listed",
    "asks.all_can_be_answered_at_once",
)
ONE_BY_ONE, WHATEVER = "asks.all_can_be_answered_one_by_one", "asks.whatever_asks_can_be_answered"


@fault("CAS-EV-06", cases=ALLOWED)
class NeverAsks(CasServer):
    """Every tool is allowed."""

    def policies(self, agent: Body) -> dict[str, str]:
        return dict.fromkeys(super().policies(agent), "always_allow")


@fault("CAS-EV-06", cases=ALLOWED)
class AllowedNotRun(CasServer):
    """An allowed call is not run."""

    def hear_answer(self, talk: Talk, event: Body) -> Body:
        return super().hear_answer(talk, event | ({"result": "deny"} if "result" in event else {}))


@fault("CAS-EV-06", cases="asks.a_denied_call_is_not_run")
class DeniedRunsAnyway(CasServer):
    """A denied call is run."""

    def settle(self, talk: Talk, call: Body, is_allowed: bool, words: str = "") -> None:
        super().settle(talk, call, is_allowed=True)


@fault("CAS-EV-06", cases="asks.a_decision_is_allow_or_deny")
class AnyDecisionTaken(CasServer):
    """Any result of a confirmation is taken."""

    def check_confirmation(self, event: Body) -> None:
        event.setdefault("result", "allow")


@fault("CAS-EV-07", cases="asks.a_custom_tool_is_answered")
class ResultsAsStrings(CasServer):
    """The result of a custom tool is kept as it came."""

    def kept_result(self, content: Any) -> Any:
        return content


@fault("CAS-EV-07", cases="asks.a_result_may_be_empty")
class ResultsNeedContent(CasServer):
    """The result of a custom tool needs content."""

    def check_pending(self, talk: Talk, event: Body) -> None:
        super().check_pending(talk, event)
        if event["type"] == "user.custom_tool_result" and not event.get("content"):
            raise Refusal(400, "content is required.")


@fault("CAS-EV-16", cases=f"{LISTED} {AT_ONCE} {ONE_BY_ONE}")
class FirstPendingOnly(CasServer):
    """Only the first of the pending calls is listed."""

    def idle(self, talk: Talk, reason: Body) -> Body:
        names = reason.get("event_ids")
        return super().idle(talk, reason | ({"event_ids": names[:1]} if names else {}))


@fault("CAS-EV-16", cases=f"{LISTED} {ONE_BY_ONE}")
class RunningWhileWaiting(CasServer):
    """A session that waits says it runs."""

    def shown(self, talk: Talk) -> Body:
        return super().shown(talk) | ({"status": "running"} if talk.is_waiting else {})


@fault("CAS-EV-16", cases=AT_ONCE)
class GoesOnUntold(CasServer):
    """A turn goes on without status_running."""

    def go(self, talk: Talk) -> None:
        if not talk.is_waiting:
            super().go(talk)


@fault("CAS-EV-16", cases=ONE_BY_ONE)
class GoesOnTooSoon(CasServer):
    """The turn goes on with the first answer."""

    def is_settled(self, talk: Talk) -> bool:
        for name in talk.pending:
            talk.answers.setdefault(name, {"type": "none"})
        return True


@fault("CAS-EV-16", cases=ONE_BY_ONE)
class AllAtOnceOnly(CasServer):
    """All answers must come in one POST."""

    def take_all(self, talk: Talk, events: list[Body]) -> list[Body]:
        if len(events) < len(talk.pending):
            raise Refusal(400, "Some answers are missing.")
        return super().take_all(talk, events)


@fault("CAS-EV-16", cases=ONE_BY_ONE)
class SettledCallsListed(OtherEndings):
    """The idle after the first answer lists the call that was answered too."""

    def left(self, talk: Talk) -> list[str]:
        return list(talk.pending)


@fault("CAS-EV-16", cases=WHATEVER)
class OnlyOneToolAsks(CasServer):
    """Only one tool can be made to ask."""

    def policies(self, agent: Body) -> dict[str, str]:
        found = super().policies(agent)
        return {name: policy if name == "calc" else "always_allow" for name, policy in found.items()}


@fault("CAS-EV-07", cases="asks.a_result_is_kept_to_the_letter")
class BlocksOfResultsJoined(CasServer):
    """The blocks of a result are kept as one."""

    def kept_result(self, content: Any) -> Any:
        return [{"type": "text", "text": text_of(content)}] if content else []
