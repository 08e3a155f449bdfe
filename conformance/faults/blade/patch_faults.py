"""Servers that are wrong about patches, and about what tools hand over."""

from typing import Any

from conformance.faults.blade.bending import bending, changing, setting, where, without
from conformance.faults.blade.ledger import Body, Session, mint
from conformance.faults.blade.script import BRIDGE, CARD, Use
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault

DELTAS = "patch.deltas_add_up"


@fault("BL-PATCH-01", cases="patch.envelopes_are_complete")
class PatchWithoutSession(BladeServer):
    """Patches do not name their session."""

    bends = bending({"turn:patch": without("session_id")})


@fault("BL-PATCH-01", cases="patch.envelopes_are_complete")
class PatchInOtherLoop(BladeServer):
    """Patches name another loop than their turn."""

    bends = bending({"turn:patch": setting(loop_id="agent:none")})


@fault("BL-PATCH-02", cases="patch.patches_are_of_five_kinds")
class InventedPatch(BladeServer):
    """Text comes as patches of the type append."""

    bends = bending({"turn:patch": where(setting(patch_type="append"), patch_type="add_content")})


@fault("BL-PATCH-03", cases="patch.added_content_is_a_block")
class DeltaWithoutContent(BladeServer):
    """add_content has only the delta."""

    bends = bending({"patch.add_content": without("content")})


@fault("BL-PATCH-03", cases="patch.added_content_is_a_block")
class ContentWithoutDelta(BladeServer):
    """add_content has only the content."""

    bends = bending({"patch.add_content": without("text_delta")})


def _cumulative(data: Body) -> Body:
    return {**data, "text_delta": data["content"]} if "text_delta" in data else data


@fault("BL-PATCH-04", "BL-FLOW-05", cases=f"{DELTAS} flow.deltas_are_the_final_text")
class DeltasRepeat(BladeServer):
    """text_delta is the whole text each time."""

    bends = bending({"patch.add_content": _cumulative})


def _incremental(data: Body) -> Body:
    return {**data, "content": data["text_delta"]} if "text_delta" in data else data


@fault("BL-PATCH-05", cases="patch.content_is_the_whole_so_far")
class ContentIsTheDelta(BladeServer):
    """content is the delta, not the whole."""

    bends = bending({"patch.add_content": _incremental})


@fault("BL-PATCH-05", cases="patch.content_is_the_whole_so_far")
class ContentIsEmpty(BladeServer):
    """content is always empty."""

    bends = bending({"patch.add_content": setting(content="")})


@fault("BL-PATCH-07", "BL-FLOW-06", cases="patch.results_are_complete flow.a_tool_is_announced_and_answered")
class ResultWithoutDuration(BladeServer):
    """tool_result has no duration."""

    bends = bending({"patch.tool_result": without("duration_ms")})


@fault("BL-PATCH-07", "BL-FLOW-07", cases="patch.results_are_complete flow.results_belong_to_calls")
class ResultOfNoCall(BladeServer):
    """tool_result names a call nobody made."""

    bends = bending({"patch.tool_result": setting(tool_call_id="tc_unknown")})


@fault("BL-PATCH-08", cases="patch.status_changes_are_true")
class FalseStatus(BladeServer):
    """set_status says interrupted before every end."""

    async def finish(self, session: Session, turn: Body, status: str) -> None:
        await self.patch(session, turn, "set_status", {"status": "interrupted"})
        await super().finish(session, turn, status)


@fault("BL-PATCH-09", cases="patch.call_status_changes_are_true")
class StatusOfNoCall(BladeServer):
    """set_tool_status names a call nobody made."""

    async def give(self, session: Session, turn: Body, call: Body, result: Any) -> None:
        await super().give(session, turn, call, result)
        await self.patch(session, turn, "set_tool_status", {"tool_call_id": mint("tc"), "status": "done"})


@fault("BL-PATCH-09", cases="patch.call_status_changes_are_true")
class FalseCallStatus(BladeServer):
    """set_tool_status says error where all went well."""

    async def give(self, session: Session, turn: Body, call: Body, result: Any) -> None:
        await super().give(session, turn, call, result)
        await self.patch(session, turn, "set_tool_status", {"tool_call_id": call["id"], "status": "error"})


# -- what tools hand over ----------------------------------------------------------------------------------------------


class _Handing(BladeServer):
    """Hands over something else than the tool did."""

    def handed(self, result: Any) -> Any:
        return result

    async def use(self, session: Session, turn: Body, move: Use) -> None:
        await super().use(session, turn, Use(move.name, move.given, self.handed(move.result)))


@fault("BL-META-01", cases="meta.what_a_tool_hands_over_arrives")
class MetaSwallowed(_Handing):
    """_meta does not reach the client."""

    def handed(self, result: Any) -> Any:
        return "ok"


@fault("BL-META-02", cases="meta.a_bridge_is_an_action")
class BridgeWithoutPayload(_Handing):
    """A bridge has no payload."""

    def handed(self, result: Any) -> Any:
        return {"_meta": {"bridge": {"action": BRIDGE["action"]}}}


@fault("BL-META-04", "BL-META-06", cases="meta.a_card_has_a_place")
class CardWithoutTarget(_Handing):
    """A card has no target."""

    def handed(self, result: Any) -> Any:
        return {"_meta": {"ui": {name: CARD[name] for name in ("resourceHTML", "height")}}}


@fault("BL-META-04", "BL-META-06", cases="meta.a_card_has_a_place")
class CardHeightWithUnit(_Handing):
    """The height of a card is text."""

    def handed(self, result: Any) -> Any:
        return {"_meta": {"ui": {**CARD, "height": "320px"}}}


@fault("BL-META-05", cases="meta.a_card_has_one_resource")
class CardWithBoth(_Handing):
    """A card has HTML and an address."""

    def handed(self, result: Any) -> Any:
        return {"_meta": {"ui": {**CARD, "resourceUri": "https://example.com/card"}}}


@fault("BL-META-05", cases="meta.a_card_has_one_resource")
class CardWithNeither(_Handing):
    """A card has nothing to show."""

    def handed(self, result: Any) -> Any:
        return {"_meta": {"ui": {**CARD, "resourceHTML": None}}}


@fault("BL-BR-02", cases="bridge.a_bridge_action_is_delivered_once")
class BridgeTwice(BladeServer):
    """A bridge action is delivered twice."""

    async def show(self, session: Session, turn: Body, shown: Body) -> None:
        for _ in range(2 if shown["type"] == "tool_bridge" else 1):
            await super().show(session, turn, shown)


@fault("BL-PATCH-06", cases="patch.announced_calls_are_complete")
class CallStatusUnknown(BladeServer):
    """A call is announced as running."""

    bends = bending({"patch.add_tool_call": changing("status", lambda status: "running")})
