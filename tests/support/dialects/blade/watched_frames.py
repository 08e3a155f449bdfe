"""What a Blade client that watches a whole session gets of it."""

from gateway.ports import Frame
from tests.support.dialects.blade.reader import Page


def spoken(frames: list[Frame]) -> tuple[str, list[str]]:
    """The words of the agent, and the names of the tools it used."""
    page = Page().read(frames)
    own = [turn for turn in page.turns.values()
           if turn["role"] == "assistant" and turn["parent_fork_tool_call_id"] is None and turn["kind"] == "message"]
    words = "".join(block["content"] for turn in own for block in turn["blocks"] if block["type"] == "text")
    return (words, [call["tool_name"] for turn in own for call in turn["tool_calls"]])
