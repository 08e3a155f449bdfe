"""Judgements that the dialects share: all they need is the messages that the client sent, in whichever protocol."""

from collections.abc import Callable, Sequence

from conformance.clients import evidence
from conformance.clients.client_traffic import ClientTraffic
from conformance.clients.evidence import Message
from conformance.clients.judgement import Judgement, judges
from conformance.clients.situations import CUTS, RETRY_AFTER

Messages = Callable[[ClientTraffic], Sequence[Message]]
SharedCheck = Callable[[ClientTraffic, Sequence[Message]], None]


def waits_for_the_end(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """A further message is sent when the turn before is over."""
    evidence.sent_in_turn(messages)


def stays_in_the_session(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """The messages of a conversation go to one session."""
    evidence.kept_session(messages)


def takes_every_event(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """The client takes every kind of event, and goes on."""
    evidence.came_through(messages)


def takes_every_ending(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """A turn is over for whatever reason it stops."""
    evidence.came_through(messages, len(traffic.meta["replies"]))


def reads_the_format(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """The stream is read as the standard of server-sent events has it."""
    evidence.echoed_reply(traffic, messages)


def ignores_events(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """Unknown events are ignored."""
    evidence.came_through(messages)


def ignores_members(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """Unknown members of events and bodies are ignored."""
    evidence.came_through(messages)


def ignores_heartbeats(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """What only keeps the connection alive is no part of the answer."""
    evidence.came_through(messages)


def does_not_repeat(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """A message whose turn has begun is not sent again when the connection breaks."""
    evidence.sent_once(traffic, messages)


def goes_on_after_a_cut(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """After a connection that broke, the conversation goes on in the same session."""
    evidence.kept_session(messages)


def gives_up_on_refusals(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """A message that is refused as invalid is not sent again as it was."""
    evidence.not_tried_again(traffic, messages)


def waits_as_told(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """A message that is refused with 429 is not sent again before Retry-After has passed."""
    evidence.respects_wait(traffic, [message.at for message in messages], RETRY_AFTER)


def tries_seldom(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """A server that fails is tried again a few times at most."""
    evidence.is_calm([message.at for message in messages])


SITUATIONS: dict[SharedCheck, tuple[str, ...]] = {
    waits_for_the_end: ("plain",),
    stays_in_the_session: ("plain",),
    takes_every_event: ("every_event",),
    takes_every_ending: ("endings",),
    reads_the_format: ("odd_framing",),
    ignores_events: ("unknown_events",),
    ignores_members: ("unknown_members",),
    ignores_heartbeats: ("heartbeats",),
    does_not_repeat: CUTS,
    goes_on_after_a_cut: CUTS,
    gives_up_on_refusals: ("refused_400",),
    waits_as_told: ("limited",),
    tries_seldom: ("refused_500",),
}
"""The situations in which each is judged."""


def shared_judgements(messages: Messages, **requirements: str) -> tuple[Judgement, ...]:
    """The judgements of these names, each with the requirement of the dialect that it decides."""
    checks = {check.__name__: check for check in SITUATIONS}
    return tuple(_bound(checks[name], messages, requirement) for name, requirement in requirements.items())


def _bound(check: SharedCheck, messages: Messages, requirement: str) -> Judgement:
    def judge(traffic: ClientTraffic) -> None:
        check(traffic, messages(traffic))

    judge.__name__, judge.__doc__ = check.__name__, check.__doc__
    return judges(requirement, *SITUATIONS[check])(judge)
