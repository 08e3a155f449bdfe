"""Whether what clients did to a session, and were told of it, can have happened one thing after the other.

A session is a list of what it has accepted (messages and answers, each by a name of its own), or is deleted. Every
operation takes effect at one moment between its beginning and its end, if its client was told that it was done; at
some moment after its beginning, or never, if its client was told nothing; and never if it was refused. A read shows
the whole list of its moment. The search goes through the orders that the times allow (Wing and Gong), and leaves out
what cannot lead to an answer: the same operations done with the same list, and lists that no later read goes on with.
"""

from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import Literal, NamedTuple

import gateway.model as m
from tests.prove.crash.history import History, Kind, SentMessage, Violation

State = tuple[str, ...] | None
"""What a session has accepted, in order; None: it is deleted."""
MOST_STATES = 50_000
"""How many states are looked at before a history counts as too wide to be judged."""


class Operation(NamedTuple):
    """Something that a client asked for."""

    kind: Literal["add", "delete", "read"]
    begin: float
    end: float = inf
    """When its client was told that it is done; for ever, if it never was."""
    name: str = ""
    """What is added."""
    seen: State = ()
    """What a read has shown."""

    def effect(self, state: State) -> State | Literal[False]:
        """The state afterwards; False if this cannot have been the answer in that state."""
        if self.kind == "read":
            return state if self.seen == state else False
        if state is None:
            return False
        return None if self.kind == "delete" else (*state, self.name)


def is_linearizable(operations: Sequence[Operation]) -> bool:
    """Whether there is an order of these operations that explains what every client was told."""
    shown = {name for one in operations for name in one.seen or ()}
    can_show = (one for one in operations if one.end < inf or one.kind != "add" or one.name in shown)
    left = sorted(can_show, key=lambda one: one.begin)
    told = sum(1 << place for place, one in enumerate(left) if one.end < inf)
    waiting: list[tuple[int, State]] = [(0, ())]
    looked_at = set(waiting)
    while waiting:
        done, state = waiting.pop()
        if done & told == told:
            return True
        for following in _steps(left, done, state):
            if following not in looked_at:
                looked_at.add(following)
                waiting.append(following)
        if len(looked_at) > MOST_STATES:
            raise ValueError(f"{len(left)} operations can have happened in too many orders")
    return False


def _steps(operations: Sequence[Operation], done: int, state: State) -> Iterator[tuple[int, State]]:
    """Every operation that can be next: none that was over before it began is still to come."""
    to_come = [(place, one) for place, one in enumerate(operations) if not done >> place & 1]
    first_end = min((one.end for _, one in to_come), default=inf)
    to_be_shown = [one.seen for _, one in to_come if one.kind == "read" and one.seen is not None]
    for place, one in to_come:
        if one.begin > first_end:
            return  # and so did all that follow
        after = one.effect(state)
        if after is not False and (after is None or all(shown[:len(after)] == after for shown in to_be_shown)):
            yield done | 1 << place, after


# -- from a history of clients -----------------------------------------------------------------------------------------

def of_commands(history: History) -> list[Violation]:
    """Every session whose commands and reads cannot have happened one after the other."""
    return [
        Violation(Kind.REORDERED, session, f"no order of its commands explains {_shown(_first_wrong(operations))}")
        for session, operations in operations_by_session(history).items() if not is_linearizable(operations)
    ]


def operations_by_session(history: History) -> dict[str, list[Operation]]:
    """What was done to each session; a request that was repeated under its key is one operation."""
    refused = {said.words for said in history.refused}
    began, ended = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    for one in (*history.said, *history.answered):
        name = one.words if isinstance(one, SentMessage) else one.request_id
        if name not in refused:
            (ended if one.taken else began).setdefault((one.session, name), one.at)
    made: dict[str, list[Operation]] = {}
    for (session, name), begin in began.items():
        made.setdefault(session, []).append(Operation("add", begin, ended.get((session, name), inf), name))
    for session, (begin, end) in history.deletions.items():
        made.setdefault(session, []).append(Operation("delete", begin, end))
    for session, begin, end, records in history.reads or ():
        names = {name for of, name in began if of == session}
        seen = None if records is None else accepted_names(records, names)
        made.setdefault(session, []).append(Operation("read", begin, end, seen=seen))
    return made


def accepted_names(records: Sequence[m.Record], names: Collection[str]) -> tuple[str, ...]:
    """Which of these messages and answers the log has, in its order."""
    found = list[str]()
    for record in records:
        if isinstance(record.event, m.InputAccepted):
            command = record.event.command
            words = m.text_of(command.content).split() if isinstance(command, m.SendMessage) else [
                getattr(command, "request_id", "")]
            found += [word for word in words if word in names]
    return tuple(found)


def _first_wrong(operations: Sequence[Operation]) -> Operation | None:
    """The first thing that a client was told and that nothing explains."""
    for end in sorted(one.end for one in operations if one.end < inf):
        until = [
            one if one.end <= end else one._replace(end=inf) for one in operations
            if one.begin <= end and (one.end <= end or one.kind != "read")
        ]
        if not is_linearizable(until):
            return next(one for one in until if one.end == end)
    return None


def _shown(operation: Operation | None) -> str:
    return "the whole" if operation is None else " ".join(map(str, operation))
