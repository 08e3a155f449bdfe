"""Records what each dialect's server says to a fixed set of conversations and requests, and what its decoder reads.

The clients know the documents of their dialects alone. `dragoman record`'s relay stands between them and a gateway
with the demo agent. Ids and times are masked: the first session of a transcript is `<sess 1>` wherever it is named.
"""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

from conformance.kit.secrets import Redactor
from conformance.recording.recorder import Recorder
from conformance.recording.relay import relaying
from tests.support.dialect_tables import DIALECTS
from tests.support.directives import REFUSED, STOPPED, directives
from tests.support.gateway_server import Served, serving
from tests.support.pairs.pair import pair_client
from tests.support.pairs.two_gateways import TOOLS
from tests.support.translate.conversations import translated

HEADERS = ("content-type", "cache-control", "location", "retry-after", "allow")
"""The headers that belong to a dialect; the others are the server's."""
LISTENING = 3.0
"""So many simulated seconds a stream without end is listened to."""


async def recorded(served: Served, dialect: str, say: Callable[[Served], Awaitable[object]]) -> bytes:
    """What the relay writes while this is said."""
    target, file = URL(served.address), io.BytesIO()
    recorder = Recorder(file, dialect, target, Redactor([]), clock=lambda: 0.0)
    async with relaying(target, recorder, "127.0.0.1", 0) as address:
        await say(Served(served.gateway, str(address).rstrip("/"), served.http))
        await asyncio.sleep(1.0)  # what a server says after its client has left is recorded as well
    recorder.stopped()
    return file.getvalue()


@asynccontextmanager
async def demo(folder: Path) -> AsyncIterator[Served]:
    """A gateway that serves every dialect."""
    agents = {"demo": {"backend": "demo", "tools": TOOLS}}
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    (folder / "documents" / "one.md").write_text("# One\n", encoding="utf-8")
    management = {"docs": "documents"}
    async with serving(
        folder, dialects={name: {} for name in DIALECTS}, log="memory", agents=agents, management=management,
    ) as served:
        yield served


async def conversations(folder: Path, dialect: str) -> dict[str, tuple[str, str]]:
    """By title: what the server says, and what the dialect's decoder makes of it; one conversation each."""
    def saying(text: str, **options: Any) -> Callable[[Served], Awaitable[object]]:
        return lambda served: pair_client(dialect, served).converse(text, **options)

    cases = {text: saying(text) for text in directives(burst=20)}
    cases |= {f"{text}, not granted": saying(text, kindly=False) for text in REFUSED}
    cases |= {f"{STOPPED}, stopped": saying(STOPPED, stop_at=1)}
    found = {}
    async with demo(folder) as served:
        for title, say in cases.items():
            recording = await recorded(served, dialect, say)
            records, _, _ = translated(recording, dialect, None)
            found[title] = Transcript().read(recording), Masked()(records.decode())
    return found


async def requests(folder: Path, dialect: str) -> dict[str, str]:
    """By title: the answer to every request of the dialect's routes, right and wrong ones."""
    async with demo(folder) as served:
        listed = routes(served, dialect)
        mine = await session_of(served, dialect)
        async def ask(through: Served) -> None:
            for method, path in listed:
                for url, options in variants(method, path, mine):
                    await fetch(through, method, url, options)
        return {"requests": Transcript(is_asked=True).read(await recorded(served, dialect, ask))}


async def session_of(served: Served, dialect: str) -> str:
    """A session in which a little was said."""
    await pair_client(dialect, served).converse("/think well /tool clock")
    [head] = await served.gateway.sessions.heads("", limit=2)
    return str(head.session_id)


def routes(served: Served, dialect: str) -> list[tuple[str, str]]:
    """Methods and paths below the mount of the dialect."""
    assert served.runner
    app: Any = served.runner.app
    mount = served.gateway.contexts[dialect].mount
    found = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource}
    return sorted((method, path) for method, path in found
                  if method not in ("HEAD", "*") and path.startswith(f"{mount}/") and belongs(path, mount, served))


def belongs(path: str, mount: str, served: Served) -> bool:
    """No other dialect has a longer mount that the path is below."""
    mounts = [context.mount for context in served.gateway.contexts.values()]
    return all(len(other) <= len(mount) or not path.startswith(f"{other}/") for other in mounts)


def variants(method: str, path: str, mine: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """The path with ids of nobody and, if it names a session, with one that is there; bodies that are wrong."""
    has_session = re.search(r"\{(session|conversation)[^}]*\}", path)
    nobody = re.sub(r"\{[^}]*\}", "nobody", path)
    somebody = re.sub(r"\{[^}]*\}", "nobody", re.sub(r"\{(session|conversation)[^}]*\}", mine, path))
    if method == "GET":
        yield somebody, {}
        if has_session:
            yield nobody, {}
    elif method == "DELETE":
        yield nobody, {}
    else:
        yield nobody, {"data": b"{"}
        yield nobody, {"json": {}}
        yield nobody, {"json": []}


async def fetch(served: Served, method: str, path: str, options: dict[str, Any]) -> None:
    """Ask, and read the answer; a stream is left after a while."""
    try:
        async with asyncio.timeout(LISTENING), served.http.request(
                method, served.url(path), headers={"Content-Type": "application/json"}, **options) as answer:
            await answer.read()
    except (TimeoutError, aiohttp.ClientError, web.HTTPException):
        return


class Masked:
    """Replaces ids and times; the same id gets the same mask."""

    ID = re.compile(r"""
        \b(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b
      | \b(?P<prefix>[a-z]+)_[0-9a-f]{12}[0-9a-z]*
      | (?P<hex>\b[0-9a-f]{24}\b)
      | (?P<agent>(?<=agent:)[0-9a-f]{8}\b)
      | (?P<sid>(?<="sid":")[\w-]{20}(?="))
      | (?P<time>\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)
      | (?P<epoch>\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b)
      | ,?"(?P<duration>duration_ms)":[\d.]+
      | (?P<elapsed>"duration_seconds":[\d.]+(?=,"results"))
      | (?P<address>(?:127\.0\.0\.1|localhost):\d+)
    """, re.VERBOSE)

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        return self.ID.sub(self._mask, text)

    def _mask(self, match: re.Match[str]) -> str:
        kind, word = str(match.lastgroup), match.group()
        if kind == "duration":
            return ""
        if kind in ("time", "epoch", "address", "elapsed"):
            return f"<{kind}>"
        if word not in self._known:
            name = match["prefix"] or kind
            self._counts[name] = self._counts.get(name, 0) + 1
            self._known[word] = f"<{name} {self._counts[name]}>"
        return self._known[word]


GOODBYES = ("41", "1")
"""How a client of Socket.IO disconnects: whether these packets are still sent depends on the version of Python."""


class Transcript:
    """A recording as lines that people can read and compare."""

    def __init__(self, is_asked: bool = False) -> None:
        self._is_asked, self._mask = is_asked, Masked()

    def read(self, recording: bytes) -> str:
        """Exchanges one after the other, each with all that belongs to it: their order among each other may vary."""
        exchanges: dict[int, list[str]] = {}
        for line in recording.splitlines():
            entry = orjson.loads(line)
            if told := self._line(entry):
                exchanges.setdefault(entry["exchange"], []).append(self._mask(told))
        return "\n\n".join("\n".join(lines) for lines in exchanges.values()) + "\n"

    def _line(self, entry: dict[str, Any]) -> str:
        text = str(entry.get("text", entry.get("base64", ""))).strip("\n").replace("\n", "\n  ")
        match entry["type"]:
            case "request":
                return f"{entry['method']} {entry['path']}"
            case "request.body":
                return f"> {text}"
            case "response":
                headers = [f"{name}: {value}" for name, value in entry["headers"] if name.lower() in HEADERS]
                return " | ".join([str(entry["status"]), *headers])
            case "frame" if entry["from"] == "client":
                return "" if text in GOODBYES else f"> {text}"
            case "frame":
                return f"< {text}"
            case "event" | "body":
                return f"< {text}"
            case "end":
                return "" if entry["ending"] == "whole" else f"({entry['ending']})"
        return ""


def together(found: dict[str, str]) -> str:
    """All transcripts of one file, each below its title."""
    return "\n".join(f"### {title}\n\n{text}" for title, text in found.items())


async def golden(folder: Path, dialect: str) -> dict[str, str]:
    """The files of one dialect, by name."""
    both = await conversations(folder, dialect)
    return {
        f"{dialect}.conversations.txt": together({title: said for title, (said, _) in both.items()}),
        f"{dialect}.decoded.txt": together({title: read for title, (_, read) in both.items()}),
        f"{dialect}.requests.txt": together(await requests(folder, dialect)),
    }
