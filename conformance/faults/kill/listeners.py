"""What is done to the order of a stream: events lost, doubled, swapped, late, after the end, or cut off."""

from collections.abc import Sequence

from conformance.faults.kill.flaw import Flaw
from conformance.faults.proxy.passing import Cut, Told


class Disorder:
    """One flaw in the order of one stream; every end of a turn makes it ready to strike again."""

    def __init__(self, flaw: Flaw, last: tuple[str, ...]) -> None:
        self.flaw = flaw
        self.event = flaw.event
        self.strikes = 0
        self._last = last
        self._struck = False
        self._held: Told | None = None
        self._before: str | None = None

    def pass_on(self, name: str, told: Told) -> Sequence[Told]:
        """What is passed on for this message, which goes by this name."""
        passed = self.disturb(name, told)
        self._before = name
        if name not in self._last:
            return passed
        late = self.flush()
        self._struck = False
        return (*passed, *late)

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        raise NotImplementedError

    def flush(self) -> Sequence[Told]:
        """What was held back."""
        held, self._held = self._held, None
        return () if held is None else (held,)

    def strikes_now(self, name: str) -> bool:
        """Whether this is the first such event of the turn."""
        if name != self.event or self._struck:
            return False
        self._struck = True
        self.strikes += 1
        return True


class Lose(Disorder):
    """No event of this name comes."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        if name != self.event:
            return (told,)
        self.strikes += 1
        return ()


class FirstLost(Disorder):
    """The first of a run of events of this name is lost, when more follow another kind of event."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        if name == self.event and self._before != name:
            self.strikes += 1
            return ()
        return (told,)


class Double(Disorder):
    """The first event of this name comes twice."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        return (told, told) if self.strikes_now(name) else (told,)


class Swap(Disorder):
    """The first time the event is followed by its neighbour, they change places."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        held, self._held = self._held, None
        if held is not None and name == self.flaw.path:
            self._struck = True
            self.strikes += 1
            return (told, held)
        before = () if held is None else (held,)
        if name == self.event and not self._struck:
            self._held = told
            return before
        return (*before, told)


class Late(Disorder):
    """The first event of this name comes when the turn is over."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        if self.strikes_now(name):
            self._held = told
            return ()
        return (told,)


class After(Disorder):
    """The first event of this name comes again when the turn is over."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        if self.strikes_now(name):
            self._held = told
        return (told,)


class CutOff(Disorder):
    """The connection breaks before this event."""

    def disturb(self, name: str, told: Told) -> Sequence[Told]:
        if self.strikes_now(name):
            raise Cut
        return (told,)


DISORDERS: dict[str, type[Disorder]] = {
    "lose": Lose,
    "first-lost": FirstLost,
    "double": Double,
    "swap": Swap,
    "late": Late,
    "after": After,
    "cut": CutOff,
}
