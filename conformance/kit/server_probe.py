"""The probe before an examination: finds out whether a server of the dialect answers at an address.

The path that a protocol itself has before its paths (`/api/v1` of ZenFlux) may be part of the address or not, and a
server may have moved it: the places are tried in turn.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import aiohttp
from yarl import URL

from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient, Reply
from conformance.kit.proxy import proxy_for
from conformance.kit.suite import Suite, Target, dialects, load_suite
from conformance.kit.transcript import Transcript
from conformance.kit.wait_limits import ANSWER, WaitLimits

ABSENT = (404, 405, 410, 501)
LOCKED = (401, 403)
SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


class NoServer(Exception):
    """There is no server to examine; the message says what answered instead, and what to do."""


@dataclass(frozen=True)
class ProbeResult:
    """The answers of one address to the probes of a dialect."""

    place: Target
    answers: Sequence[Reply]
    is_there: bool
    is_locked: bool

    @property
    def is_absent(self) -> bool:
        return bool(self.answers) and all(map(_is_absent, self.answers))

    def __str__(self) -> str:
        return ", ".join(f"{reply.asked}: {_status(reply)}" for reply in self.answers)


def plain(url: str) -> str:
    """The address as an http or https address, without a query; ValueError if it is none."""
    place = URL(url)
    if place.scheme not in SCHEMES or not place.host:
        raise ValueError(f"{url!r} is not an http or https address")
    return str(place.with_scheme(SCHEMES[place.scheme]).with_query(None).with_fragment(None)).rstrip("/")


def public(url: str) -> str:
    """The address without user name and password, as it may be shown."""
    return str(URL(url).with_user(None)) if URL(url).user or URL(url).password else url


def places(suite: Suite, target: Target) -> list[Target]:
    """Where the paths of the dialect may begin if this address was given for its server, the likeliest first."""
    address = plain(target.url)
    path = URL(address).path.rstrip("/")
    found = [replace(target, url=address)]
    if suite.own_path and path:
        if path.endswith(suite.own_path):
            found.insert(0, replace(target, url=address.removesuffix(suite.own_path)))
        found.append(replace(target, url=_origin(address), moved=(suite.own_path, path)))
    return found


async def locate(suite: Suite, target: Target) -> Target:
    """The target with the base that its server has; NoServer if no server of this dialect answers there."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, proxy=proxy_for(target.url)) as session:
        try:
            return await _Probe(session, WaitLimits()).located(suite, target)
        except Unanswered:
            return places(suite, target)[0]  # a server that does not answer is examined, and the report says so


@dataclass(frozen=True)
class _Probe:
    """Asks one server where the dialects are; after one wait in vain the next are short."""

    session: aiohttp.ClientSession
    waits: WaitLimits

    async def located(self, suite: Suite, target: Target) -> Target:
        results = [await self._look(suite, place) for place in places(suite, target)]
        there = [result for result in results if result.is_there or result.is_locked]
        if not there:
            await self._make_sure(suite, target, results)
        best = [*there, *(result for result in results if not result.is_absent)][0]
        if best.is_locked:
            hint = "is it the right key?" if target.key else "give its key with --key or in CONFORM_KEY"
            raise NoServer(f"the server at {public(target.url)} refuses every request ({best}); {hint}")
        return best.place

    async def _make_sure(self, suite: Suite, target: Target, results: Sequence[ProbeResult]) -> None:
        """NoServer, unless what answers may be a server of the dialect that answers wrongly."""
        dialect, suites = suite.catalogue.dialect, map(load_suite, dialects())
        others = [it for it in suites if it is not suite and await self._is_at(it, places(it, target))]
        if not others and not all(result.is_absent for result in results):
            return
        told = f"no server of {dialect} answers at {public(target.url)} ({results[0]})"
        usual = replace(target, url=_origin(target.url) + suite.usual_path)
        if usual.url != plain(target.url) and await self._is_at(suite, places(suite, usual)[:1]):
            raise NoServer(f"{told}; one answers at {public(usual.url)}: give that address")
        if others:
            other = others[0].catalogue.dialect
            raise NoServer(f"{told}; a server of {other} does: dragoman conform {other} {public(target.url)}")
        raise NoServer(f"{told}; is that its address? Dragoman has {dialect} at {suite.usual_path}")

    async def _is_at(self, suite: Suite, wanted: Iterable[Target]) -> bool:
        return any([(await self._look(suite, place)).is_there for place in wanted])

    async def _look(self, suite: Suite, place: Target) -> ProbeResult:
        """Put the probes of the dialect to a place; where its own path was moved, only those below it tell anything."""
        client = HttpClient(self.session, place.url, Transcript(), place.key, place.timeout, moved=place.moved)
        client.waits = self.waits
        probes = [it for it in suite.probes if place.moved is None or it.path.startswith(suite.own_path)]
        answers, is_there, locked = [], False, []
        for probe in probes:
            try:
                with self.waits.goal(ANSWER):
                    reply = await client.ask("GET", probe.path, query=probe.query)
            except Unanswered:
                raise
            except Failed:
                continue
            answers.append(reply)
            is_there = is_there or (not _is_absent(reply) and probe.is_answer(reply))
            locked += [reply.status in LOCKED] if probe.needs_key else []
        return ProbeResult(place, answers, is_there or not probes, bool(locked) and all(locked))


def _origin(url: str) -> str:
    return str(URL(plain(url)).with_path("/")).rstrip("/")


def _is_absent(reply: Reply) -> bool:
    return reply.status in ABSENT or 300 <= reply.status < 400 or reply.content_type == "text/html"


def _status(reply: Reply) -> str:
    location = reply.headers.get("Location")
    kind = " text/html" if reply.content_type == "text/html" and reply.status < 300 else ""
    return f"{reply.status}{kind}" + (f" to {location}" if location else "")
