"""What a well-made model service tells, tale by tale: read by the services' own clients, and by us."""

from typing import Any

from tests.support.backends import messages_api as told
from tests.support.backends.model_services import call, chunk, usage

ROLE = chunk({"role": "assistant", "content": "", "refusal": None})
STOP = chunk(finish="stop")
OFFICIAL: dict[str, Any] = {"service_tier": "default", "system_fingerprint": "fp_1", "obfuscation": "x1"}
CALLED = chunk(finish="tool_calls")

CHAT: dict[str, list[bytes]] = {
    "words": [ROLE, chunk({"content": "Good "}), chunk({"content": "day."}), STOP],
    "words with all that OpenAI sends beside them": [
        chunk({"role": "assistant", "content": "", "refusal": None}, **OFFICIAL, usage=None),
        chunk({"content": "Hi."}, **OFFICIAL, usage=None), chunk(finish="stop", **OFFICIAL, usage=None), usage(3, 1),
    ],
    "nothing": [ROLE, STOP],
    "no content before a call": [
        chunk({"role": "assistant", "content": None}), chunk(call(0, "call_a", "clock", "{}")), CALLED],
    "one call in fragments": [
        ROLE, chunk(call(0, "call_a", "calc", "")), chunk(call(0, None, None, '{"expression"')),
        chunk(call(0, None, None, ': "1+1"}')), CALLED,
    ],
    "calls side by side": [
        ROLE, chunk({"content": "Let me see."}), chunk(call(0, "call_a", "clock", "")),
        chunk(call(1, "call_b", "calc", '{"expr')), chunk(call(0, None, None, '{"zone": "U')),
        chunk(call(1, None, None, 'ession": "1"}')), chunk(call(0, None, None, 'TC"}')), CALLED,
    ],
    "a refusal": [ROLE, chunk({"refusal": "I can"}), chunk({"refusal": "not."}), STOP],
    "a length that was reached": [ROLE, chunk({"content": "On and"}), chunk(finish="length")],
    "words that were filtered": [ROLE, chunk({"content": "Well"}), chunk(finish="content_filter")],
    "what it cost": [ROLE, chunk({"content": "Hi."}), STOP, usage(20, 7, cached=5, reasoning=4, written=6)],
    "thoughts as DeepSeek has them": [
        ROLE, chunk({"reasoning_content": "Let me "}), chunk({"reasoning_content": "see."}), chunk({"content": "So."}),
        STOP,
    ],
    "thoughts as vLLM has them": [
        ROLE, chunk({"reasoning": "Let me "}), chunk({"reasoning": "see."}), chunk({"content": "So."}), STOP],
}
UNKNOWN = {
    "thoughts as DeepSeek has them": {"choices.delta.reasoning_content"},
    "thoughts as vLLM has them": {"choices.delta.reasoning"},
}
"""What is not OpenAI's, and known to be so."""

SEARCH = told.tool(0, "srvtoolu_1", "web_search", '{"query": ', '"x"}', kind="server_tool_use")
NO_SEARCH = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}


def _message(*blocks: list[bytes], reason: str = "end_turn", **cost: Any) -> bytes:
    pieces = (piece for block in blocks for piece in block)
    return b"".join([told.start(cache_read_input_tokens=3, cache_creation_input_tokens=4), told.PING, *pieces,
                     told.end(reason, **cost)])


MESSAGES: dict[str, bytes] = {
    "words": _message(told.text(0, "Good ", "day.")),
    "nothing": _message(),
    "thoughts, signed and redacted": _message(
        told.thinking(0, "Let me ", "see.", signature="c2ln"), told.redacted(1, "ZGF0YQ=="), told.text(2, "So.")),
    "a thought that is not shown": _message(told.thinking(0, signature="c2ln"), told.text(1, "So.")),
    "calls": _message(
        told.text(0, "One moment."), told.tool(1, "toolu_1", "calc", "", '{"expression":', ' "1+1"}'),
        told.tool(2, "toolu_2", "clock"), reason="tool_use",
    ),
    "a search": _message(SEARCH, told.found(1, "srvtoolu_1"), told.text(2, "Found.")),
    "a search that failed": _message(SEARCH, told.found(1, "srvtoolu_1", NO_SEARCH), told.text(2, "Pity.")),
    "a pause": _message(SEARCH, reason="pause_turn"),
    "what it cost": _message(
        told.text(0, "Hi."), input_tokens=10, output_tokens=40, cache_read_input_tokens=3,
        cache_creation_input_tokens=4, output_tokens_details={"thinking_tokens": 12},
    ),
    **{f"an end by {reason}": _message(told.text(0, "x"), reason=reason)
       for reason in ("max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded")},
}
