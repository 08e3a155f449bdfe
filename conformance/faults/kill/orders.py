"""The orders of a dialect, as data: what its specification says of its messages beyond their schemas.

A flaw is classed in this sequence; the first that speaks decides:

1. a line of `rules` whose glob matches the flaw's name, each with the reason;
2. for fields: the schemas the message is held to. If the damaged message no longer fits, the flaw `breaks`. An extra
   member that still fits is `tolerated`. A changed value `breaks` where `exact` names it: its very value is a MUST;
3. for events: `first`, `last` and `once` of their channel, and `exact`: events whose number and order is what was said;
4. for answers: a wrong status and a body that is not JSON break; `mime` says whether a content type of JSON is a MUST;
5. for framing: what the event-stream format allows is tolerated, what it does not allow breaks;
6. numbers (`sequences`), page cursors (`cursors`) and masks (`masks`) break where the file names them.

Whatever nothing speaks of is `free`. Which requirements a flaw breaks is known where `owners` names it, and else where
a schema that it breaches was fitted for an owner.
"""

from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from conformance.faults.kill.flaw import Expectation
from conformance.faults.kill.paths import Walk
from conformance.kit.documents import read_document
from conformance.kit.suite import home_of


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Order(_Part):
    """The order of the events of one channel: sse, ws or io."""

    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    """Events whose number and order is what was said: none may be missing, doubled, or out of order."""


class Sequence(_Part):
    """A running number in the messages of these places."""

    places: str
    paths: tuple[str, ...] = Field(min_length=1)


class Rule(_Part):
    """What is expected of the flaws of these names, and why."""

    flaws: str
    expect: Expectation
    why: str = Field(min_length=10)


class Orders(_Part):
    """Everything an orders.yaml may say."""

    discriminators: tuple[str, ...] = ("type",)
    opaque: tuple[str, ...] = ()
    """Paths (globs) of members whose insides belong to the agent or the user, not to the protocol."""
    streams: dict[str, Order] = {}
    exact: tuple[str, ...] = ()
    sequences: tuple[Sequence, ...] = ()
    cursors: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    mime: bool = True
    held: dict[str, str] = {}
    """Places (globs) and the schema they are held to, beside those the cases were seen to hold them to."""
    rules: tuple[Rule, ...] = ()
    owners: dict[str, tuple[str, ...]] = {}
    """Names of flaws (globs), and the requirements whose sentences they break, where no schema has an owner."""
    watchers: tuple[str, ...] = ()
    """Cases that look at the order of messages and at their values: they are the first to be put to such flaws."""

    @property
    def walk(self) -> Walk:
        return Walk(self.discriminators, self.opaque)

    def order(self, channel: str) -> Order:
        return self.streams.get(channel, Order())

    def ruling(self, name: str) -> tuple[Expectation, str] | None:
        """What the first matching rule says."""
        for rule in self.rules:
            if fnmatchcase(name, rule.flaws):
                return rule.expect, rule.why
        return None

    def owners_of(self, name: str) -> tuple[str, ...] | None:
        """The requirements that the first matching line names."""
        return next((ids for glob, ids in self.owners.items() if fnmatchcase(name, glob)), None)

    def idle_rules(self, names: list[str]) -> list[str]:
        """Rules and owners that match no flaw at all."""
        globs = [*(rule.flaws for rule in self.rules), *self.owners]
        return [glob for glob in globs if not any(fnmatchcase(name, glob) for name in names)]


def orders_path(dialect: str) -> Path:
    return home_of(dialect) / "orders.yaml"


def read_orders(dialect: str) -> Orders:
    """The orders of this dialect; without a file nothing is known but its schemas."""
    path = orders_path(dialect)
    return read_document(path, Orders) if path.exists() else Orders()


def among(globs: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
