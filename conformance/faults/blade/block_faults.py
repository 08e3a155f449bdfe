"""Servers that are wrong about blocks and tool calls."""

from typing import Any

from conformance.faults.blade.bending import all_of, bending, changing, setting, where, without
from conformance.faults.blade.ledger import Bend
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault


def _of(kind: str, content: Any) -> dict[str, Bend]:
    return {"block": where(setting(content=content), type=kind)}


@fault("BL-BLK-01", "BL-BLK-02", cases="block.blocks_have_a_known_type")
class MarkdownBlocks(BladeServer):
    """Text comes in blocks of the type markdown."""

    bends = bending({"block": where(setting(type="markdown"), type="text")})


@fault("BL-BLK-01", "BL-BLK-02", cases="block.blocks_have_a_known_type")
class ToolNamesAsLists(BladeServer):
    """tool_name is a list."""

    bends = bending({"block": where(setting(tool_name=["clock"]), type="tool_use")})


@fault("BL-BLK-03", cases="block.text_blocks_have_their_content")
class TextAsObject(BladeServer):
    """The content of text is an object."""

    bends = _of("text", {"text": "Hello"})


@fault("BL-BLK-04", cases="block.thinking_blocks_have_their_content")
class ThinkingAsList(BladeServer):
    """The content of thinking is a list."""

    bends = _of("thinking", ["Hm."])


@fault("BL-BLK-05", cases="block.tool_use_blocks_have_their_content")
class ToolUseAsText(BladeServer):
    """The content of tool_use is text."""

    bends = _of("tool_use", "clock()")


@fault("BL-BLK-06", cases="block.tool_result_blocks_have_their_content")
class ToolResultWithoutContent(BladeServer):
    """A tool_result has no content."""

    bends = bending({"block": where(without("content"), type="tool_result")})


@fault("BL-BLK-07", cases="block.tool_ui_blocks_have_their_content")
class CardAsText(BladeServer):
    """The content of tool_ui is HTML."""

    bends = _of("tool_ui", "<p>A card</p>")


@fault("BL-BLK-08", cases="block.tool_bridge_blocks_have_their_content")
class BridgeAsText(BladeServer):
    """The content of tool_bridge is the name of an action."""

    bends = _of("tool_bridge", "map.highlight")


@fault("BL-BLK-09", cases="block.system_notification_blocks_have_their_content")
class NotificationAsObject(BladeServer):
    """The content of a notification is an object."""

    bends = _of("system_notification", {"title": "Hello"})


@fault("BL-BLK-10", cases="block.mode_change_blocks_have_their_content")
class ModeAsText(BladeServer):
    """The content of mode_change is the mode."""

    bends = _of("mode_change", "planning")


@fault("BL-BLK-11", cases="block.planning_enter_blocks_have_their_content")
class PlanningWithWords(BladeServer):
    """planning_enter has words."""

    bends = _of("planning_enter", "Now I plan.")


@fault("BL-BLK-11", cases="block.planning_exit_blocks_have_their_content")
class PlanningEndsWithWords(BladeServer):
    """planning_exit has words."""

    bends = _of("planning_exit", "Now I do it.")


@fault("BL-BLK-12", cases="block.plan_status_blocks_have_their_content")
class PlanAsList(BladeServer):
    """The content of plan_status is a list."""

    bends = _of("plan_status", ["look", "do"])


@fault("BL-BLK-13", cases="block.ask_user_answer_blocks_have_their_content")
class AnswerAsText(BladeServer):
    """The content of ask_user_answer is text."""

    bends = _of("ask_user_answer", "staging")


def _loud(blocks: Any) -> Any:
    return [{**it, "content": it["content"].upper()} if it["type"] in ("text", "thinking") else it for it in blocks]


@fault("BL-BLK-14", "BL-BLK-15", cases="block.text_blocks_are_the_text block.thinking_blocks_are_the_thought")
class LoudHistory(BladeServer):
    """The history shouts."""

    bends = bending({"messages": all_of(changing("blocks", _loud))})


@fault("BL-BLK-15", cases="block.thinking_blocks_are_the_thought")
class ThoughtsCut(BladeServer):
    """turn:end has less of the thought than was streamed."""

    bends = bending({"block": where(changing("content", lambda text: text[:5]), type="thinking")})


# -- tool calls --------------------------------------------------------------------------------------------------------


@fault("BL-TC-01", "BL-PATCH-06", cases="tool_call.a_call_is_complete patch.announced_calls_are_complete")
class CallWithoutName(BladeServer):
    """Calls have no display_name."""

    bends = bending({"call": without("display_name"), "patch.add_tool_call": without("display_name")})


@fault("BL-TC-01", cases="tool_call.a_call_is_complete")
class CallsOnlyInPatches(BladeServer):
    """turn:end does not show the calls."""

    bends = bending({"turn:end": setting(tool_calls=[])})


@fault("BL-TC-02", cases="tool_call.calls_have_ids_of_their_own")
class OneCallForAll(BladeServer):
    """Every call has the same id."""

    bends = bending(
        {
            "call": setting(id="tc_same"),
            "patch.add_tool_call": setting(id="tc_same"),
            "patch.tool_result": setting(tool_call_id="tc_same"),
        }
    )


@fault("BL-TC-03", cases="tool_call.calls_can_be_shown")
class BlankName(BladeServer):
    """display_name is blank."""

    bends = bending({"call": setting(display_name=" "), "patch.add_tool_call": setting(display_name=" ")})


@fault("BL-TC-03", cases="tool_call.calls_can_be_shown")
class NameChanges(BladeServer):
    """A call is shown under another name in turn:end."""

    bends = bending({"call": setting(display_name="A tool")})


@fault("BL-TC-04", "BL-PATCH-06", cases="tool_call.arguments_are_json_in_a_string patch.announced_calls_are_complete")
class ArgumentsInPython(BladeServer):
    """arguments hold Python, not JSON."""

    bends = bending({"call": setting(arguments="{'a': None}"), "patch.add_tool_call": setting(arguments="{'a': None}")})


@fault("BL-TC-05", cases="tool_call.a_status_is_one_of_five")
class StatusFinished(BladeServer):
    """A finished call has the status finished."""

    bends = bending({"call": where(setting(status="finished"), status="done")})


@fault("BL-TC-06", cases="tool_call.a_status_says_what_a_call_is_doing")
class PendingForever(BladeServer):
    """The history shows every call as pending."""

    bends = bending({"messages": all_of(changing("tool_calls", all_of(setting(status="pending"))))})


@fault("BL-TC-06", cases="tool_call.a_status_says_what_a_call_is_doing")
class DoneAtOnce(BladeServer):
    """A call is announced as done."""

    bends = bending({"patch.add_tool_call": where(setting(status="done"), status="pending")})


@fault("BL-TC-07", cases="tool_call.results_are_kept")
class ResultForgotten(BladeServer):
    """Calls in turns have no result."""

    bends = bending({"call": setting(result=None)})


@fault("BL-TC-08", cases="tool_call.a_waiting_fork_names_the_question")
class WrongReference(BladeServer):
    """pending_question_ref names another call."""

    bends = bending(
        {"call": changing("pending_question_ref", lambda ref: ref and {**ref, "child_tool_call_id": "tc_other"})}
    )


@fault("BL-BLK-14", cases="block.a_users_words_are_its_text")
class WordsOfTheUserTrimmed(BladeServer):
    """Blanks at the ends of what the user says are lost."""

    def text(self, message: Any) -> str:
        return super().text(message).strip()
