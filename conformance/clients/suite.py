"""The client suite of a dialect: its catalogue, situations, judgements and scripted server, found by its name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol

from aiohttp import web

import conformance.clients as clients
from conformance.clients.judgement import Judgement
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.situation import Situation
from conformance.kit.case import Case
from conformance.kit.requirement import Catalogue, Requirement


class ScriptedServer(Protocol):
    """A server of a dialect that plays situations."""

    mount: str
    reply_queue: ReplyQueue
    cancels_requests: bool
    """Whether a request is cancelled when its client hangs up."""

    def app(self) -> web.Application: ...


@dataclass(frozen=True)
class ClientSuite:
    """Everything needed to examine clients of one dialect."""

    catalogue: Catalogue
    situations: tuple[Situation, ...]
    judgements: tuple[Judgement, ...]
    server: Callable[[], ScriptedServer]

    def chosen(self, requirements: Iterable[Requirement]) -> tuple[Situation, ...]:
        """The situations that decide something about these requirements."""
        wanted = {item.id for item in requirements}
        needed = [item for item in self.judgements if item.requirement in wanted]
        named = {name for item in needed for name in item.situations}
        everywhere = any(not item.situations for item in needed)
        found = tuple(item for item in self.situations if item.name in named)
        return found or (self.situations if everywhere else ())

    @property
    def cases(self) -> tuple[Case, ...]:
        """The judgements by the names that a report gives them, for baselines."""
        return tuple(
            Case(name, (item.requirement,), item.sentence, _unasked) for item in self.judgements for name in names(item)
        )


async def _unasked(examination: object) -> None:
    """A judgement is not put to a server."""


def names(judgement: Judgement) -> tuple[str, ...]:
    """What the results of a judgement are called: one for each situation it names, or one for all."""
    return tuple(f"{place}.{judgement.name}" for place in judgement.situations or ("everywhere",))


def client_dialects() -> tuple[str, ...]:
    """The dialects whose clients can be examined."""
    found = (path for folder in clients.__path__ for path in Path(folder).glob("*/requirements.yaml"))
    return tuple(sorted(path.parent.name for path in found))


@cache
def load_client_suite(dialect: str) -> ClientSuite:
    """The suite of this dialect; ValueError tells a person which there are."""
    if dialect not in client_dialects():
        there = ", ".join(client_dialects())
        raise ValueError(f"clients of {dialect!r} cannot be examined; those of these dialects can: {there}")
    suite: ClientSuite = import_module(f"conformance.clients.{dialect}").suite()
    return suite
