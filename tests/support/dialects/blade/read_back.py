"""What a Blade client reads of a conversation, and what an import of it loses."""

from typing import Any

import orjson

PATHS = ("/api/sessions", "/api/sessions/{}", "/api/sessions/{}/messages")
QUESTION = "AskUserQuestion"


def comparable(bodies: list[Any]) -> list[Any]:
    """Without what the import declares as lost: answers beside results, the places of results, the names of loops."""
    listed, session, turns = bodies
    kept = [turn for turn in turns if [block["type"] for block in turn["blocks"]] != ["ask_user_answer"]]
    for number, turn in enumerate(kept):
        turn["sequence"] = number
        del turn["archived_count"]  # answers are counted
        if turn["parent_fork_tool_call_id"]:
            del turn["loop_id"]
        if len(turn["tool_calls"]) > 1:
            turn["blocks"].sort(key=orjson.dumps)
        if any(call["tool_name"] == QUESTION for call in turn["tool_calls"]):
            turn["usage"] = turn["usage"] or {"input_tokens": 0, "output_tokens": 0}
    return [listed, session, kept]
