"""Suites: a dialect's catalogue and cases together, found by the dialect's name."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import BaseModel

import conformance
from conformance.kit.budget import Budget
from conformance.kit.case import Case
from conformance.kit.documents import DocumentError, line_of, nearest, read_document
from conformance.kit.http import HttpClient, Reply
from conformance.kit.observations import Observations
from conformance.kit.proxy import proxy_for
from conformance.kit.requirement import Catalogue, Level, Requirement
from conformance.kit.transcript import Transcript
from conformance.kit.wait_limits import WaitLimits

HOME = Path(__file__).parent.parent


@dataclass(frozen=True)
class Target:
    """The server under examination."""

    url: str
    key: str | None = None
    timeout: float = 10.0
    allow_destructive: bool = False
    """Whether cases may be put that can change more than the suite has made."""
    is_disposable: bool = False
    """Whether nobody minds what is left on it: then nothing is cleared away."""
    moved: tuple[str, str] | None = None
    """The dialect's own path and where the server has it instead."""
    budget: Budget | None = None
    """What the examination may spend."""


@dataclass(frozen=True)
class Probe:
    """A GET that every server of the dialect answers, and how its answer is told from those of other servers."""

    path: str
    is_answer: Callable[[Reply], bool]
    query: Mapping[str, str] | None = None
    needs_key: bool = True


Opening = Callable[[HttpClient, Any], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True)
class Suite:
    """Everything needed to examine servers of one dialect; `opening` sets up one case and clears away after it."""

    catalogue: Catalogue
    cases: tuple[Case, ...]
    profile_model: type[BaseModel]
    default_profile: Path
    opening: Opening
    probes: tuple[Probe, ...] = ()
    """How to see whether a server of the dialect is there."""
    own_path: str = ""
    """What the protocol itself has before its paths, where others stand beside it."""
    usual_path: str = ""
    """Where Dragoman has the dialect."""
    turn: re.Pattern[str] = re.compile(r"\A(POST|WebSocket) ")
    """What is sent to let the agent work; every POST, unless the dialect says it more closely."""

    def read_profile(self, path: Path | None = None) -> BaseModel:
        """The profile at the path, or the one that comes with the dialect."""
        place = path or self.default_profile
        found = read_document(place, self.profile_model)
        known = self.catalogue.features
        if unknown := [name for name in getattr(found, "without", ()) if name not in known]:
            line = line_of(place.read_text(encoding="utf-8"), ("without",))
            told = [f"without: there is no feature {name!r}; {nearest(name, known)}" for name in unknown]
            raise DocumentError(place, told, [line] * len(told))
        return found

    @asynccontextmanager
    async def examination(
        self,
        target: Target,
        profile: BaseModel,
        transcript: Transcript,
        waits: WaitLimits | None = None,
        observations: Observations | None = None,
    ) -> AsyncIterator[Any]:
        """What a case is given: fresh connections, the profile, and the dialect's own verbs."""
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        proxy = proxy_for(target.url)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, proxy=proxy) as session:
            client = HttpClient(session, target.url.rstrip("/"), transcript, target.key, target.timeout)
            client.is_disposable, client.moved = target.is_disposable, target.moved
            client.waits, client.shared = waits or client.waits, observations
            async with self.opening(client, profile) as examination:
                yield examination


def add_folder(folder: Path) -> None:
    """From now on, suites are also found in this folder, in `conformance/NAME`, and faults in `conformance/faults`."""
    for package in (conformance, import_module("conformance.faults")):
        inside = str(folder.joinpath(*package.__name__.split(".")))
        if inside not in package.__path__:
            package.__path__.append(inside)


def dialects() -> tuple[str, ...]:
    """The dialects there is a suite for."""
    return tuple(sorted(_homes()))


def home_of(dialect: str) -> Path:
    """The folder with the requirements, the schemas and the other documents of a dialect; KeyError if there is none."""
    return _homes()[dialect]


def _homes() -> dict[str, Path]:
    """The folders of this package that have requirements, wherever its path leads."""
    found = (path for folder in conformance.__path__ for path in Path(folder).glob("*/requirements.yaml"))
    return {path.parent.name: path.parent for path in found}


@cache
def load_suite(dialect: str) -> Suite:
    """The suite of this dialect; KeyError if there is none."""
    if dialect not in dialects():
        raise KeyError(dialect)
    suite: Suite = import_module(f"conformance.{dialect}").suite()
    return suite


def find_suite(dialect: str) -> Suite:
    """The suite of this dialect; ValueError tells a person which there are."""
    try:
        return load_suite(dialect)
    except KeyError:
        raise ValueError(f"there is no suite for {dialect!r}; there is one for: {', '.join(dialects())}") from None


def choose(requirements: Sequence[Requirement], only: Iterable[str], level: str) -> tuple[Requirement, ...]:
    """Those asked for by id, by pattern (AAP-SSE-*) or by comma list, down to a level, in the catalogue's order."""
    if level not in list(Level):
        raise ValueError(f"there is no level {level!r}; say must, should or may")
    patterns = [name.strip() for text in only for name in text.split(",") if name.strip()]
    unknown = [name for name in patterns if not any(fnmatchcase(item.id, name) for item in requirements)]
    if unknown:
        raise ValueError(f"no such requirement: {', '.join(unknown)}")
    asked = (item for item in requirements if not patterns or any(fnmatchcase(item.id, name) for name in patterns))
    return tuple(item for item in asked if Level(level).includes(item.level))
