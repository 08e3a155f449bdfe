"""CAS servers whose sessions are not made of the agent and the environment that were asked for."""

from conformance.faults.cas.memory import Body, Talk
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal

TWO_WAYS, VERSION = "snapshots.an_agent_is_named_in_two_ways", "snapshots.a_version_can_be_chosen"
INLINE, CONFIG = "snapshots.an_environment_can_be_given_inline", "snapshots.an_environment_needs_a_config"


@fault("CAS-SESS-04", cases=f"{TWO_WAYS} {VERSION}")
class AgentsByIdOnly(CasServer):
    """An agent can only be named by its id."""

    def agent_of(self, body: Body) -> Body:
        if not isinstance(body.get("agent"), str):
            raise Refusal(400, "agent must be a string.")
        return super().agent_of(body)


@fault("CAS-SESS-04", cases=VERSION)
class VersionsIgnored(CasServer):
    """The latest version is caught whatever is asked for."""

    def version_of(self, reference: Body) -> int:
        return 0


@fault("CAS-SESS-04", cases=f"{TWO_WAYS} {VERSION}")
class ZeroIsNoVersion(CasServer):
    """Version 0 is refused."""

    def version_of(self, reference: Body) -> int:
        if reference.get("version") == 0:
            raise Refusal(400, "There is no version 0.")
        return super().version_of(reference)


@fault("CAS-SESS-04", cases="snapshots.an_unknown_agent_is_refused")
class AnyAgentTaken(CasServer):
    """Instead of an unknown agent another is taken."""

    def agent_of(self, body: Body) -> Body:
        try:
            return super().agent_of(body)
        except Refusal:
            return next(iter(self.agents.values()))[-1]


@fault("CAS-SESS-04", cases="snapshots.the_snapshot_does_not_change")
class LiveAgents(CasServer):
    """A session shows its agent as it is now."""

    def shown(self, talk: Talk) -> Body:
        return super().shown(talk) | {"agent": self.version(talk.view["agent_id"])}


@fault("CAS-SESS-05", cases="snapshots.an_environment_is_named_in_two_ways")
class OneWayToNameEnvironments(CasServer):
    """environment must be an object."""

    def environment_of(self, body: Body) -> Body:
        if isinstance(body.get("environment"), str):
            raise Refusal(400, "environment must be an object.")
        return super().environment_of(body)


@fault("CAS-SESS-05", cases=INLINE)
class BlankNamesKept(CasServer):
    """A blank name is kept."""

    def environment_name(self, given: Body) -> str:
        return str(given.get("name") or "Session Environment")


@fault("CAS-SESS-05", cases=INLINE)
class NamesNeeded(CasServer):
    """An inline environment must have a name."""

    def environment_name(self, given: Body) -> str:
        if not given.get("name"):
            raise Refusal(400, "environment.name is required.")
        return super().environment_name(given)


@fault("CAS-SESS-05", cases=CONFIG)
class ConfigOptional(CasServer):
    """An inline environment needs no config."""

    def inline(self, given: Body) -> Body:
        return super().inline({"config": {}} | given)


@fault("CAS-SESS-05", cases=CONFIG)
class AnyEnvironmentTaken(CasServer):
    """Instead of an unknown environment a new one is taken."""

    def environment_of(self, body: Body) -> Body:
        try:
            return super().environment_of(body)
        except Refusal as refusal:
            if refusal.status == 404:
                return self.inline({"config": {"type": "cloud"}})
            raise
