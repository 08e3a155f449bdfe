"""What is done to the order of a stream: events lost, doubled, swapped, late, after the end, or cut off."""

from collections.abc import Callable, Sequence

from conformance.faults.kill.flaw import Flaw
from conformance.faults.proxy.interceptor import Cut, PassedMessage


class Disorder:
    """One flaw in the order of one stream; every end of a turn makes it ready to strike again."""

    def __init__(self, flaw: Flaw, last: tuple[str, ...]) -> None:
        self.flaw = flaw
        self.strikes = 0
        self.has_struck = False
        self.held: PassedMessage | None = None
        """An event that is kept back."""
        self.before: str | None = None
        """The name of the event before this one."""
        self._disturb = DISORDERS[flaw.kind]
        self._last = last

    def pass_on(self, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
        """What is passed on for this message, which goes by this name."""
        passed = self._disturb(self, name, message)
        self.before = name
        if name not in self._last:
            return passed
        late = self.flush()
        self.has_struck = False
        return (*passed, *late)

    def flush(self) -> Sequence[PassedMessage]:
        """What was kept back."""
        held, self.held = self.held, None
        return () if held is None else (held,)

    def strikes_now(self, name: str) -> bool:
        """Whether this is the first such event of the turn."""
        if name != self.flaw.event or self.has_struck:
            return False
        self.has_struck = True
        self.strikes += 1
        return True


Disturb = Callable[[Disorder, str, PassedMessage], Sequence[PassedMessage]]
"""(the disorder, the name of a message, the message) → what is passed on for it."""


def _lose(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """No event of this name comes."""
    if name != disorder.flaw.event:
        return (message,)
    disorder.strikes += 1
    return ()


def _lose_first(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """The first of a run of events of this name is lost, when more follow another kind of event."""
    if name == disorder.flaw.event and disorder.before != name:
        disorder.strikes += 1
        return ()
    return (message,)


def _double(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """The first event of this name comes twice."""
    return (message, message) if disorder.strikes_now(name) else (message,)


def _swap(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """The first time the event is followed by its neighbour, they change places."""
    before = disorder.flush()
    if before and name == disorder.flaw.path:
        disorder.has_struck = True
        disorder.strikes += 1
        return (message, *before)
    if name == disorder.flaw.event and not disorder.has_struck:
        disorder.held = message
        return before
    return (*before, message)


def _delay(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """The first event of this name comes when the turn is over."""
    if disorder.strikes_now(name):
        disorder.held = message
        return ()
    return (message,)


def _repeat_after(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """The first event of this name comes again when the turn is over."""
    if disorder.strikes_now(name):
        disorder.held = message
    return (message,)


def _cut(disorder: Disorder, name: str, message: PassedMessage) -> Sequence[PassedMessage]:
    """The connection breaks before this event."""
    if disorder.strikes_now(name):
        raise Cut
    return (message,)


DISORDERS: dict[str, Disturb] = {
    "lose": _lose,
    "first-lost": _lose_first,
    "double": _double,
    "swap": _swap,
    "late": _delay,
    "after": _repeat_after,
    "cut": _cut,
}
