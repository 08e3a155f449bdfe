"""The attack: workers that send the inputs of their numbers, and write down what should not have come back."""

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import aiohttp
from yarl import URL

from .frames import FrameMaker, raw
from .requests import Request, RequestMaker
from .values import KnownIds

HANG = 60.0
"""Seconds after which an answer does not come any more."""
TASTE = 0.2
"""Seconds for which a stream is read."""
INTERNAL_ERROR = 1011
ID = re.compile(rb'"\w*(?:id|Id|name|path|page|cursor|token)": ?"?([^",{}\[\]]{1,100})')
"""What an answer has that later inputs may name."""
SHARES = (("http", 86), ("raw", 4), ("json socket", 4), ("socket.io", 4), ("polling", 2))


class FuzzClient:
    """Everything that is sent to one server: input `n` of a seed is always made by the same chance."""

    def __init__(
        self, port: int, seed: int, requests: RequestMaker, chat: FrameMaker, events: FrameMaker, known: KnownIds,
    ) -> None:
        self._port, self._seed = port, seed
        self._requests, self._chat, self._events = requests, chat, events
        self._known = known
        self._kinds = [name for name, share in SHARES for _ in range(share)]
        self.statuses: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        """How often each route has done what it was asked for."""
        self.wrong: list[str] = []
        self.slowest: list[tuple[float, int]] = []
        self.sent = 0

    async def run(self, numbers: Sequence[int], workers: int, told: Callable[[], None]) -> None:
        """Send the inputs of these numbers; `told` is called after each."""
        waiting = deque(numbers)
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=HANG)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as http:
            await asyncio.gather(*(self._work(http, waiting, told) for _ in range(workers)))

    def shown(self, number: int) -> str:
        """Input `number` in words; the ids in it may be others by now."""
        chance = Random(f"{self._seed} {number}")
        kind = chance.choice(self._kinds)
        makers: dict[str, Callable[[Random], object]] = {
            "http": self._requests.make, "json socket": self._chat.request, "socket.io": self._events.packet,
            "raw": lambda chance: raw(chance, self._port), "polling": self._events.packet,
        }
        return f"{kind}: {str(makers[kind](chance))[:400]}"

    async def _work(self, http: aiohttp.ClientSession, waiting: "deque[int]", told: Callable[[], None]) -> None:
        sockets, loop = Sockets(http, self._port), asyncio.get_running_loop()
        ways: dict[str, Callable[[Random], Awaitable[str | None]]] = {
            "http": lambda chance: self._ask(http, self._requests.make(chance)),
            "raw": self._raw,
            "json socket": lambda chance: sockets.chat(self._chat.request(chance)),
            "socket.io": lambda chance: sockets.event(self._events.packet(chance)),
            "polling": lambda chance: self._poll(http, chance),
        }
        while waiting:
            number = waiting.popleft()
            chance = Random(f"{self._seed} {number}")
            kind = chance.choice(self._kinds)
            began = loop.time()
            try:
                wrong = await ways[kind](chance)
            except TimeoutError:
                wrong = f"no answer within {HANG:g} seconds"
            self.slowest = sorted([*self.slowest, (loop.time() - began, number)], reverse=True)[:5]
            if wrong is not None:
                self.wrong.append(f"input {number} ({kind}): {wrong}")
            self.sent += 1
            told()
        await sockets.close()

    async def _ask(self, http: aiohttp.ClientSession, request: Request) -> str | None:
        url = URL(f"http://127.0.0.1:{self._port}{request.path}", encoded=True)
        try:
            async with http.request(request.method, url, headers=request.headers, data=request.body) as response:
                self.statuses[str(response.status)] += 1
                body = await self._taste(response)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError) as error:
            return f"no answer ({error!r}) to {request}"
        except (aiohttp.ClientError, ValueError) as error:
            self.statuses[type(error).__name__] += 1  # the client's library does not send it, or does not like it
            return None
        if response.status < 300:
            self.reached[request.place] += 1
            self._remember(request.path, body)
        return f"500 to {request}" if response.status == 500 else None

    async def _taste(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            async with asyncio.timeout(TASTE if response.content_type == "text/event-stream" else HANG):
                return await response.content.read(16_384)
        except TimeoutError:
            if response.content_type != "text/event-stream":
                raise
            return b""

    async def _raw(self, chance: Random) -> str | None:
        """What comes back is read for a moment, and must not be a 500."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(raw(chance, self._port))
            async with asyncio.timeout(TASTE):
                head = await reader.read(200)
        except (TimeoutError, ConnectionError):
            return None
        finally:
            writer.close()
        self.statuses["raw " + head[9:12].decode(errors="replace")] += 1
        return f"500 to raw bytes: {head!r}" if head[9:12] == b"500" else None

    async def _poll(self, http: aiohttp.ClientSession, chance: Random) -> str | None:
        """A handshake and a body of packets; every other time with a CONNECT before them."""
        at = f"http://127.0.0.1:{self._port}/socket.io/?EIO=4&transport=polling"
        async with http.get(at) as response:
            sid = (await response.text()).partition('"sid":"')[2].partition('"')[0]
        packets = [packet if isinstance(packet, bytes) else packet.encode("utf-8", "surrogatepass")
                   for packet in (self._events.packet(chance) for _ in range(chance.randrange(20)))]
        body = b"\x1e".join([*([b"40"] if chance.random() < 0.5 else []), *packets])
        if chance.random() < 0.1:
            body = b"d=" + body
        return await self._ask(http, Request("POST", f"/socket.io/?EIO=4&transport=polling&sid={sid}", (), body))

    def _remember(self, path: str, body: bytes) -> None:
        """Keep the ids that the server has given, in JSON or in a stream: the inputs after this one name them."""
        self._known.add(path, (found.decode(errors="replace") for found in ID.findall(body)[:50]))


class Sockets:
    """A worker's sockets; one that the server closes is opened again."""

    def __init__(self, http: aiohttp.ClientSession, port: int) -> None:
        self._http = http
        self._port = port
        self._open: dict[str, aiohttp.ClientWebSocketResponse] = {}

    async def chat(self, frame: bytes) -> str | None:
        return await self._say("/api/v1/ws/chat", None, frame.decode(errors="replace"))

    async def event(self, packet: str | bytes) -> str | None:
        return await self._say("/socket.io/?EIO=4&transport=websocket", "40", packet)

    async def _say(self, path: str, hello: str | None, said: str | bytes) -> str | None:
        ws = await self._opened(path, hello)
        try:
            await (ws.send_bytes(said) if isinstance(said, bytes) else ws.send_str(said))
            return await self._drain(path)
        except ConnectionError:  # the server has closed it for the frame before
            self._open.pop(path, None)
            return None

    async def _opened(self, path: str, hello: str | None = None) -> aiohttp.ClientWebSocketResponse:
        ws = self._open.get(path)
        if ws is None or ws.closed:
            ws = self._open[path] = await self._http.ws_connect(f"http://127.0.0.1:{self._port}{path}", max_msg_size=0)
            if hello is not None:
                await ws.send_str(hello)
        return ws

    async def _drain(self, path: str) -> str | None:
        """Read what has come; a socket that is closed for a mistake of the server is one."""
        ws = self._open[path]
        try:
            async with asyncio.timeout(0.005):
                while not ws.closed:
                    message = await ws.receive()
                    if message.type is aiohttp.WSMsgType.TEXT and message.data == "2":
                        await ws.send_str("3")
        except TimeoutError:
            pass
        if ws.closed:
            self._open.pop(path, None)
        return f"closed with {INTERNAL_ERROR}" if ws.close_code == INTERNAL_ERROR else None

    async def close(self) -> None:
        for ws in self._open.values():
            await ws.close()
