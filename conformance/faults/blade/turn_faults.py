"""Servers that are wrong about turns."""

from typing import Any

from conformance.faults.blade.bending import all_of, bending, changing, setting, where, without
from conformance.faults.blade.ledger import Session
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault

FIGURES = "turn.figures_are_of_their_types"
FIVE = ("BL-TURN-10", "BL-TURN-11", "BL-TURN-12", "BL-TURN-13", "BL-TURN-14")
IDS = "turn.ids_are_unique_and_kept"


@fault("BL-TURN-01", "BL-FLOW-31", cases="turn.a_turn_is_a_complete_snapshot flow.the_history_is_what_was_streamed")
class HistoryWithoutText(BladeServer):
    """The history has turns without their blocks."""

    bends = bending({"messages": all_of(setting(blocks=[]))})


@fault("BL-TURN-02", "BL-TURN-04", cases=IDS)
class OneEntryForAll(BladeServer):
    """All turns are the same entry."""

    bends = bending({"turn": setting(id="entry_same")})


@fault("BL-TURN-02", "BL-TURN-04", cases=IDS)
class OtherTurnIdsInTheHistory(BladeServer):
    """The history knows the turns by other ids."""

    bends = bending({"messages": all_of(changing("turn_id", lambda name: f"{name}_kept"))})


@fault("BL-TURN-03", cases="turn.sequences_count_from_zero")
class CountingFromOne(BladeServer):
    """Sequences start at 1."""

    bends = bending({"turn": changing("sequence", lambda number: number + 1)})


@fault("BL-TURN-03", cases="turn.sequences_count_from_zero")
class NotCounting(BladeServer):
    """Every turn has the sequence 0."""

    bends = bending({"turn": setting(sequence=0)})


@fault("BL-TURN-05", cases="turn.the_root_loop_is_root")
class RootIsMain(BladeServer):
    """The root loop is called main."""

    bends = bending({"turn": where(setting(loop_id="main"), loop_id="root")})


@fault("BL-TURN-05", cases="turn.the_root_loop_is_root")
class EverybodyIsRoot(BladeServer):
    """Sub-agents have the loop_id root."""

    bends = bending({"turn": setting(loop_id="root"), "turn:patch": setting(loop_id="root")})


@fault("BL-TURN-06", cases="turn.turns_of_a_chat_are_messages")
class InventedKind(BladeServer):
    """Turns are of the kind chat."""

    bends = bending({"turn": where(setting(kind="chat"), kind="message")})


@fault("BL-TURN-06", cases="turn.summaries_are_compactions")
class KindSummary(BladeServer):
    """Compactions are of the kind summary."""

    bends = bending({"turn": where(setting(kind="summary"), kind="compaction")})


@fault("BL-TURN-07", cases="turn.roles_say_who_spoke")
class WordsForgotten(BladeServer):
    """The user's turn does not have the user's words."""

    bends = bending({"turn": where(setting(blocks=[]), role="user")})


@fault("BL-TURN-07", cases="turn.roles_say_who_spoke")
class RoleHuman(BladeServer):
    """The user has the role human."""

    bends = bending({"turn": where(setting(role="human"), role="user")})


@fault(
    "BL-TURN-08",
    "BL-FLOW-04",
    cases="""
    turn.statuses_say_what_became_of_a_turn flow.a_chat_without_tools_is_in_order""",
)
class NeverStreaming(BladeServer):
    """Turns start as completed."""

    bends = bending({"turn:start": setting(status="completed")})


@fault("BL-TURN-08", cases="turn.statuses_say_what_became_of_a_turn")
class FailedTurnsComplete(BladeServer):
    """A broken turn ends as completed."""

    bends = bending({"turn:end": where(setting(status="completed"), status="failed")})


@fault("BL-TURN-09", cases="turn.lists_are_always_there")
class NullForEmpty(BladeServer):
    """tool_calls is null where there are none."""

    bends = bending({"turn": changing("tool_calls", lambda calls: calls or None)})


@fault("BL-TURN-09", cases="turn.lists_are_always_there")
class CallsForgotten(BladeServer):
    """The history has no tool calls."""

    bends = bending({"messages": all_of(setting(tool_calls=[]))})


@fault(*FIVE, cases=FIGURES)
class ModelByNumber(BladeServer):
    """model is a number."""

    bends = bending({"turn": setting(model=4)})


@fault(*FIVE, cases=FIGURES)
class UsageByOtherNames(BladeServer):
    """usage counts prompt and completion."""

    bends = bending({"turn": setting(usage={"prompt": 1, "completion": 2})})


@fault(*FIVE, cases=FIGURES)
class DurationInSeconds(BladeServer):
    """duration_ms is a fraction."""

    bends = bending({"turn": setting(duration_ms=0.25)})


@fault(*FIVE, cases=FIGURES)
class StartedAtEpoch(BladeServer):
    """started_at is a number."""

    bends = bending({"turn": setting(started_at=1767225600)})


@fault(*FIVE, cases=FIGURES)
class WindowOfZero(BladeServer):
    """The context window has no size."""

    bends = bending({"turn": setting(context_window=0)})


def _as_text(refs: Any) -> Any:
    return refs and [{**ref, "id": str(ref["id"])} for ref in refs]


@fault("BL-TURN-15", "BL-MREF-01", cases="turn.memory_refs_are_references")
class MemoryRefsByText(BladeServer):
    """The ids in memory_refs are strings."""

    bends = bending({"turn": changing("memory_refs", _as_text)})


@fault("BL-TURN-15", "BL-MREF-01", cases="turn.memory_refs_are_references")
class MemoryRefsForgotten(BladeServer):
    """The history has no memory_refs."""

    bends = bending({"messages": all_of(without("memory_refs"))})


@fault("BL-TURN-16", cases="turn.parents_are_fork_calls")
class ParentsForgotten(BladeServer):
    """The history does not know whose sub-agent spoke."""

    bends = bending({"messages": all_of(setting(parent_fork_tool_call_id=None))})


@fault("BL-TURN-17", cases="turn.a_compaction_tells_what_it_did")
class RatioInPercent(BladeServer):
    """saved_ratio is a percentage."""

    bends = bending({"turn": where(setting(saved_ratio=75), kind="compaction")})


@fault("BL-TURN-17", cases="turn.a_compaction_tells_what_it_did")
class RatioTheOtherWay(BladeServer):
    """saved_ratio says what is left."""

    bends = bending({"turn": where(setting(saved_ratio=0.25), kind="compaction")})


@fault("BL-TURN-17", cases="turn.a_compaction_tells_what_it_did")
class ArchivedByTheDozen(BladeServer):
    """archived_count counts something else than turns."""

    bends = bending({"turn": where(setting(archived_count=24), kind="compaction")})


@fault("BL-TURN-18", cases="turn.a_compaction_tells_its_trigger")
class AlwaysAutomatic(BladeServer):
    """A compaction the client asked for is called automatic."""

    def compact(self, session: Session, trigger: str) -> None:
        super().compact(session, "auto")
