"""Servers that take a wrong configuration, or refuse a right one."""

from typing import Any

from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, Session
from conformance.faults.reference import ReferenceServer
from conformance.faults.script import SERVER_TOOLS
from conformance.faults.wire import NewSession


@fault("AAP-SESS-03", cases="sessions.without_tools_none_is_enabled")
class EveryToolEnabled(ReferenceServer):
    """Without agent.tools all tools are enabled."""

    def seed_tools(self, new: NewSession) -> dict[str, bool]:
        return super().seed_tools(new) if new.agent.tools is not None else dict.fromkeys(SERVER_TOOLS, True)


@fault("AAP-SESS-03", cases="sessions.exactly_the_named_tools_are_enabled")
class OneToolEnablesAll(ReferenceServer):
    """Naming one tool enables the others too."""

    def seed_tools(self, new: NewSession) -> dict[str, bool]:
        named = super().seed_tools(new)
        return dict.fromkeys(SERVER_TOOLS, True) | named if named else {}


@fault("AAP-SESS-03", cases="sessions.an_undeclared_tool_cannot_be_enabled")
class UnknownToolsTaken(ReferenceServer):
    """A tool nobody declared can be enabled."""

    def check_tools(self, session: Session) -> None:
        return None


@fault("AAP-SESS-04", cases="sessions.options_have_defaults")
class OtherDefaults(ReferenceServer):
    """Options that are not given take values other than the declared defaults."""

    def defaults(self, agent: str) -> dict[str, str]:
        return super().defaults(agent) and super().defaults(agent) | {"language": "zh", "tone": "gruff"}


@fault("AAP-SESS-04", cases="sessions.options_have_defaults")
class AllOptionsNeeded(ReferenceServer):
    """A session without all its options is refused."""

    def seed_options(self, new: NewSession) -> dict[str, str]:
        if set(new.agent.options) < set(self.defaults(new.agent.name)):
            raise Refusal(400, "some options are missing")
        return new.agent.options


@fault("AAP-SESS-04", cases="sessions.an_unknown_option_is_refused")
class UnknownOptionsTaken(ReferenceServer):
    """Unknown options are dropped in silence."""

    def seed_options(self, new: NewSession) -> dict[str, str]:
        known = self.defaults(new.agent.name)
        return known | {name: value for name, value in new.agent.options.items() if name in known}


@fault("AAP-SESS-04", cases="sessions.a_select_takes_only_its_options")
class SelectTakesAnything(ReferenceServer):
    """A select takes any value."""

    def check_options(self, session: Session) -> None:
        if unknown := set(session.options) - set(self.defaults(session.agent)):
            raise Refusal(400, f"unknown: {unknown}")


@fault("AAP-SESS-05", cases="sessions.seed_messages_begin_the_history")
class SeedForgotten(ReferenceServer):
    """Seed messages are ignored."""

    def seed_history(self, new: NewSession) -> list[dict[str, Any]]:
        return []


@fault("AAP-SESS-05", cases="sessions.seed_messages_begin_the_history")
class SystemMessageDropped(ReferenceServer):
    """The system message of the seed is not in the history."""

    def seed_history(self, new: NewSession) -> list[dict[str, Any]]:
        return [message for message in super().seed_history(new) if message["role"] != "system"]


@fault("AAP-SESS-06", cases="sessions.tool_names_do_not_clash sessions.a_turn_cannot_bring_a_clash")
class ClashesTaken(ReferenceServer):
    """Two tools may have the same name."""

    def check_names(self, session: Session) -> None:
        return None


@fault("AAP-SESS-06", cases="sessions.tool_names_do_not_clash")
class DisabledToolsClash(ReferenceServer):
    """A client tool may not be named like a server tool that is not enabled."""

    def check_names(self, session: Session) -> None:
        super().check_names(session)
        if any(tool["name"] in SERVER_TOOLS for tool in session.client_tools):
            raise Refusal(400, "that name is taken")


@fault("AAP-SESS-06", cases="sessions.a_turn_cannot_bring_a_clash")
class ClashesTakenInTurns(ReferenceServer):
    """Names are checked when the session is created, and never again."""

    def check_names(self, session: Session) -> None:
        if session.id not in self.sessions:
            super().check_names(session)


@fault("AAP-SESS-05", cases="sessions.empty_messages_are_part_of_the_seed")
class EmptySeedsDropped(ReferenceServer):
    """Seed messages that say nothing are left out."""

    def seed_history(self, new: NewSession) -> list[dict[str, Any]]:
        return [message for message in super().seed_history(new) if message["content"]]
