"""Servers whose streams are out of order, out of step, or cut."""

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.reference import ReferenceServer
from conformance.faults.telling import Happening, Part, Piece

Events = AsyncIterator[tuple[str, Any]]
ENDS = "streaming.a_stream_opens_and_closes_once"
DELTA = "streaming.delta_mode_speaks_in_deltas"
CALLS = "streaming.calls_are_announced"
RESULTS = "streaming.results_follow_their_calls"
POSTED: ContextVar[list[Any]] = ContextVar("posted")


@fault("AAP-SSE-01", cases=ENDS)
class NoStart(ReferenceServer):
    """The stream does not open with turn_start."""

    async def framed(self, events: Events) -> Events:
        async for event in events:
            yield event


@fault("AAP-SSE-01", cases="streaming.a_turn_that_waits_and_goes_on_is_two_streams")
class ResumedWithoutStart(ReferenceServer):
    """A turn that goes on from an answer does not open again."""

    async def tell(self, request: web.Request, mode: str, happenings: AsyncIterator[Happening]) -> web.StreamResponse:
        POSTED.set((await request.json())["messages"])
        return await super().tell(request, mode, happenings)

    async def framed(self, events: Events) -> Events:
        answers = any(message["role"] != "user" for message in POSTED.get())
        async for event in super().framed(events):
            if event[0] != "turn_start" or not answers:
                yield event


@fault("AAP-SSE-01", cases=ENDS)
class TwoStops(ReferenceServer):
    """turn_stop comes twice."""

    async def framed(self, events: Events) -> Events:
        async for name, body in super().framed(events):
            yield name, body
            if name == "turn_stop":
                yield name, body


@fault("AAP-SSE-01", cases=ENDS)
class WordsAfterTheStop(ReferenceServer):
    """Something follows turn_stop."""

    async def framed(self, events: Events) -> Events:
        async for event in super().framed(events):
            yield event
        yield "tool_result", {"toolCallId": "late", "content": "Sorry!"}


@fault("AAP-SSE-01", cases=ENDS)
class StartForEveryMessage(ReferenceServer):
    """turn_start comes again after an inline result."""

    async def framed(self, events: Events) -> Events:
        async for name, body in super().framed(events):
            yield name, body
            if name == "tool_result":
                yield "turn_start", {}


@fault("AAP-SSE-01", cases=ENDS)
class StreamAsText(ReferenceServer):
    """The stream says it is plain text."""

    async def tell(self, request: web.Request, mode: str, happenings: AsyncIterator[Happening]) -> web.StreamResponse:
        if mode == "none":
            return await super().tell(request, mode, happenings)
        events = self.in_deltas(happenings) if mode == "delta" else self.in_messages(happenings)
        frames = [self.frame(name, body) async for name, body in self.framed(events)]
        return web.Response(body=b"".join(frames), content_type="text/plain")


@fault("AAP-SSE-01", cases=ENDS)
class LastFrameUnfinished(ReferenceServer):
    """The blank line after turn_stop is missing, so that no reader dispatches it."""

    def frame(self, name: str, body: Any) -> bytes:
        frame = super().frame(name, body)
        return frame.rstrip(b"\n") if name == "turn_stop" else frame


@fault("AAP-SSE-02", cases=DELTA)
class DeltasAndWholes(ReferenceServer):
    """In delta mode the whole text follows its deltas."""

    async def in_deltas(self, happenings: AsyncIterator[Happening]) -> Events:
        whole = ""
        async for name, body in super().in_deltas(happenings):
            if name == "turn_stop":
                yield "text", {"text": whole}
            whole += body.get("delta", "")
            yield name, body


@fault("AAP-SSE-02", cases=DELTA)
class ThinkingAsText(ReferenceServer):
    """In delta mode thoughts come as text."""

    async def in_deltas(self, happenings: AsyncIterator[Happening]) -> Events:
        async for name, body in super().in_deltas(happenings):
            yield name.replace("thinking", "text"), body


@fault("AAP-SSE-03", cases="streaming.message_mode_speaks_in_wholes")
class DeltasInMessageMode(ReferenceServer):
    """Message mode is delta mode."""

    def in_messages(self, happenings: AsyncIterator[Happening]) -> Events:
        return super().in_deltas(happenings)


async def _as_parts(happenings: AsyncIterator[Happening]) -> AsyncIterator[Happening]:
    async for happening in happenings:
        if isinstance(happening, Piece):
            yield Part(happening.kind, happening.text)
        elif not isinstance(happening, Part):
            yield happening


@fault("AAP-SSE-03", cases="streaming.every_part_is_one_event")
class PartsInPieces(ReferenceServer):
    """In message mode a text comes in several text events."""

    def in_messages(self, happenings: AsyncIterator[Happening]) -> Events:
        return super().in_messages(_as_parts(happenings))


class _Framed(ReferenceServer):
    """Changes the body of one kind of event."""

    def changed(self, name: str, body: Any) -> Any:
        return body

    def frame(self, name: str, body: Any) -> bytes:
        return super().frame(name, self.changed(name, body))


@fault("AAP-SSE-04", cases=CALLS)
class InputAsText(_Framed):
    """A call's input is JSON in a string."""

    def changed(self, name: str, body: Any) -> Any:
        return body | {"input": orjson.dumps(body["input"]).decode()} if name == "tool_call" else body


@fault("AAP-SSE-04", cases=CALLS)
class OtherCallIds(_Framed):
    """The stream gives calls other ids than the history."""

    def changed(self, name: str, body: Any) -> Any:
        return body | {"toolCallId": f"x{body['toolCallId']}"} if "toolCallId" in body else body


@fault("AAP-SSE-04", cases="streaming.several_calls_come_before_the_stop")
class OneCallAnnounced(ReferenceServer):
    """Of parallel calls only the first is announced."""

    async def framed(self, events: Events) -> Events:
        announced = False
        async for name, body in super().framed(events):
            if name != "tool_call" or not announced:
                yield name, body
            announced = announced or name == "tool_call"


@fault("AAP-SSE-05", cases=RESULTS)
class ResultBeforeCall(ReferenceServer):
    """A result is told before its call."""

    async def framed(self, events: Events) -> Events:
        held: list[tuple[str, Any]] = []
        async for event in super().framed(events):
            if event[0] == "tool_call":
                held.append(event)
                continue
            yield event
            if event[0] == "tool_result":
                for call in held:
                    yield call
                held.clear()
            if event[0] == "turn_start":
                held.clear()


@fault("AAP-SSE-05", cases=RESULTS)
class ResultsNotTold(ReferenceServer):
    """Results of server tools are not told."""

    async def framed(self, events: Events) -> Events:
        async for event in super().framed(events):
            if event[0] != "tool_result":
                yield event


@fault("AAP-SSE-05", cases="streaming.client_tools_have_no_result_event")
class ClientResultsEchoed(ReferenceServer):
    """A client's own result is told back to it."""

    async def tell(self, request: web.Request, mode: str, happenings: AsyncIterator[Happening]) -> web.StreamResponse:
        POSTED.set((await request.json())["messages"])
        return await super().tell(request, mode, happenings)

    async def framed(self, events: Events) -> Events:
        echoes = [message for message in POSTED.get() if message["role"] == "tool"]
        async for event in super().framed(events):
            yield event
            for message in echoes if event[0] == "turn_start" else []:
                yield "tool_result", {"toolCallId": message["toolCallId"], "content": message["content"]}
