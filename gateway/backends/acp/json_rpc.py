"""A JSON-RPC peer over the pipes of a child process: requests in both directions, until the process ends."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.json_values import JsonValue

from .process import EXIT_REASON_SECONDS, ChildProcess
from .wire import LineSplitter, RpcError, RpcId, RpcMessage, decode_line, encode_line

log = structlog.get_logger("dragoman.acp")

WRITE_SECONDS = 30.0
"""If the agent does not read its standard input for so long, it counts as failed."""
MAX_INVALID_LINES = 1000
"""So many lines in a row that are no messages are ignored."""


class RequestRefused(BackendFailed):
    """The agent refused a request."""

    def __init__(self, method: str, error: RpcError) -> None:
        super().__init__(f"the agent refused {method}: {error.message[:300] or error.code}")
        self.rpc_code = error.code


ResponseCallback = Callable[[RpcMessage | GatewayError], None]
"""Receives the response to a request, or the reason why there is none; called once."""
MessageHandler = Callable[[RpcMessage], Awaitable[None]]


class JsonRpcPeer:
    """Sends requests and notifications to the agent; those of the agent go to `on_message`, one after the other."""

    def __init__(self, child: ChildProcess, longest: int, on_message: MessageHandler) -> None:
        self._child, self._on_message = child, on_message
        self._lines = LineSplitter(longest)
        self._waiting: dict[RpcId, ResponseCallback] = {}
        self._number = 0
        self._writing = asyncio.Lock()
        self._garbage = 0
        """The number of lines in a row that were no messages."""
        self.broken: GatewayError | None = None
        """Why no more messages will arrive."""
        self._reading = asyncio.create_task(self._read(), name=f"reading from {child.pid}")

    async def close(self) -> None:
        self._break(BackendFailed("the agent was ended"))
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._child.end()

    # -- telling --------------------------------------------------------------------------------------------------

    async def request(self, method: str, params: object, seconds: float) -> msgspec.Raw:
        """The result of a request; raises `RequestRefused`, `TimedOut`, or the failure of the agent."""
        answer: asyncio.Future[RpcMessage | GatewayError] = asyncio.get_running_loop().create_future()
        number = self._register(lambda response: None if answer.done() else answer.set_result(response))
        try:
            async with asyncio.timeout(seconds):
                await self._write(encode_line(id=number, method=method, params=params))
                return result_or_raise(method, await answer)
        except TimeoutError:
            raise TimedOut(f"the agent did not answer {method} within {seconds:g} seconds{self._odd()}") from None
        finally:
            self._waiting.pop(number, None)

    async def begin(self, method: str, params: object, answered: ResponseCallback) -> None:
        """Send a request; its response is passed on in order with the other messages."""
        number = self._register(answered)
        await self._write(encode_line(id=number, method=method, params=params))

    async def notify(self, method: str, params: object) -> None:
        await self._write(encode_line(method=method, params=params))

    async def answer(self, id: RpcId, result: JsonValue) -> None:
        await self._write(encode_line(id=id, result=result))

    async def refuse(self, id: RpcId, code: int, message: str) -> None:
        await self._write(encode_line(id=id, error={"code": code, "message": message}))

    def _register(self, answered: ResponseCallback) -> int:
        if self.broken is not None:
            raise self.broken
        self._number += 1
        self._waiting[self._number] = answered
        return self._number

    async def _write(self, line: bytes) -> None:
        if self.broken is not None:
            raise self.broken
        try:
            async with self._writing, asyncio.timeout(WRITE_SECONDS):
                self._child.stdin.write(line)
                await self._child.stdin.drain()
        except TimeoutError:
            self._break(TimedOut("the agent does not read its standard input"))
        except (ConnectionError, RuntimeError):  # probably the process has ended; the reader finds out why
            await asyncio.wait([self._reading], timeout=2 * EXIT_REASON_SECONDS)
            self._break(BackendFailed("the agent closed its standard input"))
        if self.broken is not None:
            raise self.broken

    # -- reading --------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while chunk := await self._child.stdout.read(65536):
                for line in self._lines.feed(chunk):
                    message = decode_line(line)
                    self._garbage = 0 if message is not None else self._garbage + 1
                    if message is not None:
                        await self._take(message)
                    elif self._garbage > MAX_INVALID_LINES:
                        raise BackendFailed("the agent writes nothing but garbage to its standard output")
                    else:
                        log.debug("acp_line_ignored", process=self._child.pid, size=len(line))
            self._break(BackendFailed(f"the agent ended unexpectedly{await self._child.exit_reason()}"))
        except OverflowError as error:
            self._break(BackendFailed(f"the agent sent {error}"))
        except GatewayError as error:
            self._break(error)
        finally:
            self._break(BackendFailed("the gateway stopped reading the messages of the agent; start a new turn"))
        await self._child.end()

    def _odd(self) -> str:
        """The error message for a program that speaks another protocol, or logs to standard output."""
        return ", but wrote lines that are no messages; is it an agent of the protocol?" if self._garbage else ""

    async def _take(self, message: RpcMessage) -> None:
        if message.method is not None:
            await self._on_message(message)
        elif message.id is not None and (answered := self._waiting.pop(message.id, None)) is not None:
            answered(message)

    def _break(self, error: GatewayError) -> None:
        if self.broken is not None:
            return
        self.broken = error
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            answered(error)


def result_or_raise(method: str, response: RpcMessage | GatewayError) -> msgspec.Raw:
    """The result in a response; raises if there is none."""
    if isinstance(response, GatewayError):
        raise response
    if response.error is not None:
        raise RequestRefused(method, response.error)
    return response.result
