"""Servers that stop wrongly, or tell more in one mode than in another."""

from asyncio import BaseTransport
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.ledger import Session
from conformance.faults.performer import Performer
from conformance.faults.reference import ReferenceServer
from conformance.faults.telling import Happening

Events = AsyncIterator[tuple[str, Any]]
SAME = "modes.every_mode_tells_the_same"
RESUMED = "modes.a_resumed_turn_tells_what_the_history_keeps"
KEPT = "modes.a_stream_tells_what_the_history_keeps"
FAILING = "streaming.a_failure_ends_the_stream_in_good_order"
STARTING = "streaming.a_failure_at_the_start_is_told_too"
NONE = "modes.none_is_one_json_body"
CONNECTION: ContextVar[BaseTransport | None] = ContextVar("connection")


class _Renaming(Performer):
    """Gives other reasons for stopping."""

    reasons: dict[str, str]

    def stop_reason(self, session: Session, reason: str) -> str:
        return self.reasons.get(reason, reason)


class _Satisfied(_Renaming):
    reasons = {"max_tokens": "end_turn", "refusal": "end_turn"}  # noqa: RUF012 - a constant


@fault("AAP-SSE-06", cases="streaming.a_cut_reply_stops_with_max_tokens streaming.a_refusal_stops_with_refusal")
class AlwaysEndTurn(ReferenceServer):
    """Cut and refused replies stop with end_turn."""

    performer_type = _Satisfied


class _Inventive(_Renaming):
    reasons = {"end_turn": "stop"}  # noqa: RUF012 - a constant


@fault("AAP-SSE-06", cases="streaming.a_plain_reply_stops_with_end_turn")
class InventedReason(ReferenceServer):
    """A plain reply stops with a reason the protocol does not have."""

    performer_type = _Inventive


class _Needy(_Renaming):
    reasons = {"end_turn": "tool_use"}  # noqa: RUF012 - a constant


@fault("AAP-SSE-07", "AAP-TOOL-03", cases="""
    streaming.a_tool_use_stop_waits_for_the_client tools.a_trusted_tool_runs_inline""")
class ToolUseForNothing(ReferenceServer):
    """Turns stop with tool_use though nothing awaits the client."""

    performer_type = _Needy


@fault("AAP-SSE-08", cases=f"{SAME} {KEPT}")
class NoneDropsThinking(ReferenceServer):
    """Thoughts are left out in the mode none."""

    async def in_one_body(self, happenings: AsyncIterator[Happening]) -> dict[str, Any]:
        body = await super().in_one_body(happenings)
        for message in body["messages"]:
            if message["role"] == "assistant":
                kept = [block for block in message["content"] if block["type"] != "thinking"]
                body["messages"][body["messages"].index(message)] = message | {"content": kept}
        return body


@fault("AAP-SSE-08", cases=f"{SAME} {KEPT}")
class DeltaDropsBlanks(ReferenceServer):
    """In delta mode blanks between words are lost."""

    async def in_deltas(self, happenings: AsyncIterator[Happening]) -> Events:
        async for name, body in super().in_deltas(happenings):
            yield name, {"delta": body["delta"].strip()} if "delta" in body else body


@fault("AAP-SSE-08", cases=RESUMED)
class NoneForgetsGrantedResults(ReferenceServer):
    """In the mode none a result that needed permission is left out."""

    async def in_one_body(self, happenings: AsyncIterator[Happening]) -> dict[str, Any]:
        body = await super().in_one_body(happenings)
        first = body["messages"][0]["role"] if body["messages"] else ""
        return body | {"messages": body["messages"][1:]} if first == "tool" else body


@fault("AAP-SSE-09", cases=FAILING)
class CutOnFailure(ReferenceServer):
    """A failing turn cuts the connection."""

    async def tell(self, request: web.Request, mode: str, happenings: AsyncIterator[Happening]) -> web.StreamResponse:
        CONNECTION.set(request.transport)
        return await super().tell(request, mode, happenings)

    async def framed(self, events: Events) -> Events:
        async for name, body in super().framed(events):
            connection = CONNECTION.get()
            if body.get("stopReason") == "error" and connection is not None:
                connection.close()
            yield name, body


@fault("AAP-SSE-09", cases=f"{FAILING} {STARTING}")
class EndsWithoutStop(ReferenceServer):
    """A failing turn ends in good order, but without turn_stop."""

    async def framed(self, events: Events) -> Events:
        async for name, body in super().framed(events):
            if body.get("stopReason") != "error":
                yield name, body


class _Content(_Renaming):
    reasons = {"error": "end_turn"}  # noqa: RUF012 - a constant


@fault("AAP-SSE-09", cases=f"{FAILING} {STARTING}")
class FailureAsSuccess(ReferenceServer):
    """A failing turn stops with end_turn."""

    performer_type = _Content


@fault("AAP-NONE-01", cases=NONE)
class NoneAsText(ReferenceServer):
    """The answer of the mode none says it is plain text."""

    async def tell(self, request: web.Request, mode: str, happenings: AsyncIterator[Happening]) -> web.StreamResponse:
        response = await super().tell(request, mode, happenings)
        if mode == "none":
            response.content_type = "text/plain"
        return response


@fault("AAP-NONE-01", cases=NONE)
class NoneWithoutResults(ReferenceServer):
    """The mode none leaves out the results of inline tools."""

    async def in_one_body(self, happenings: AsyncIterator[Happening]) -> dict[str, Any]:
        body = await super().in_one_body(happenings)
        return body | {"messages": [item for item in body["messages"] if item["role"] == "assistant"]}


@fault("AAP-NONE-01", cases=NONE)
class LastMessageOnly(ReferenceServer):
    """The mode none gives the last message only."""

    async def in_one_body(self, happenings: AsyncIterator[Happening]) -> dict[str, Any]:
        body = await super().in_one_body(happenings)
        return body | {"messages": body["messages"][-1:]}
