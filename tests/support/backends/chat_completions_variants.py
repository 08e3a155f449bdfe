"""Chat completions as servers in the field tell them: what each leaves out, adds, or does in its own way.

Each tale says what an agent should be heard to say: its blocks, its calls, and why it ends.
"""

from dataclasses import dataclass, field
from typing import Any

import orjson

import gateway.model as m
from gateway.client import NO_USAGE
from tests.support.backends.model_services import DONE, call, chunk, usage

STOP, CALLED = chunk(finish="stop"), chunk(finish="tool_calls")
ARGUMENTS = '{"n": 1}'


@dataclass
class StreamCase:
    """A stream as it comes, and what it means."""

    stream: bytes
    words: str = ""
    thoughts: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    stop: m.StopReason = m.StopReason.END_TURN
    usage: m.Usage = NO_USAGE


def lean(*choices: dict[str, Any], **rest: Any) -> bytes:
    """A chunk with nothing but these choices."""
    return b"data: " + orjson.dumps({"choices": list(choices), **rest}) + b"\n\n"


def pieces(*calls: dict[str, Any]) -> bytes:
    """Pieces of calls as they are."""
    return chunk({"tool_calls": list(calls)})


def named(name: str, arguments: Any, **rest: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **rest}


def more(arguments: str, **rest: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments}, **rest}


def calling(stream: bytes, *calls: tuple[str, dict[str, Any]]) -> StreamCase:
    return StreamCase(stream + CALLED + DONE, calls=list(calls or [("look", {"n": 1})]), stop=m.StopReason.TOOL_USE)


FILTERS = {"content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}}
TWO = ("look", {"n": 1}), ("leap", {"n": 2})

WORDS: dict[str, StreamCase] = {
    "Azure: the prompt's filters first, filters in between, nothing in its fields": StreamCase(
        chunk(choices=[], id="", model="", created=0, prompt_filter_results=[{"prompt_index": 0, **FILTERS}])
        + lean({"index": 0, "finish_reason": None, "delta": {"role": "assistant", "content": ""}, **FILTERS})
        + lean({"index": 0, "finish_reason": None, "delta": {"content": "Good day."}, **FILTERS})
        + lean({"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 4}, **FILTERS})
        + lean({"index": 0, "finish_reason": "stop", "delta": {}, **FILTERS}) + DONE, words="Good day."),
    "Azure: words that were filtered": StreamCase(
        chunk({"content": "Well"}) + lean({"index": 0, "finish_reason": "content_filter", "delta": {}, **FILTERS})
        + DONE, words="Well", stop=m.StopReason.REFUSAL),
    "OpenRouter: comments before and in between": StreamCase(
        b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + chunk({"content": "Good "})
        + b": OPENROUTER PROCESSING\n\n" + chunk({"content": "day."}) + STOP + usage(3, 2) + DONE,
        words="Good day.", usage=m.Usage(input_tokens=3, output_tokens=2)),
    "OpenRouter: thoughts twice, in words and in details": StreamCase(
        chunk({"content": "", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]})
        + chunk({"content": "", "reasoning": None, "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]})
        + chunk({"content": "Yes."}) + STOP + DONE, words="Yes.", thoughts="hm"),
    "DeepSeek: thoughts with content null, then the other way round": StreamCase(
        chunk({"content": None, "reasoning_content": "h"}) + chunk({"content": None, "reasoning_content": "m"})
        + chunk({"content": "Yes.", "reasoning_content": None}) + STOP + DONE, words="Yes.", thoughts="hm"),
    "vLLM: thoughts under another name": StreamCase(
        chunk({"reasoning": "h"}) + chunk({"reasoning": "m"}) + chunk({"content": "Yes."}) + STOP + DONE,
        words="Yes.", thoughts="hm"),
    "a proxy: thoughts under both names": StreamCase(
        chunk({"reasoning": "hm", "reasoning_content": "hm"}) + chunk({"content": "Yes."}) + STOP + DONE,
        words="Yes.", thoughts="hm"),
    "Mistral: content in parts": StreamCase(
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})
        + chunk({"content": [{"type": "text", "text": "Yes."}]}) + STOP + DONE, words="Yes.", thoughts="hm"),
    "vLLM: the last word and the reason in one chunk": StreamCase(
        chunk({"content": "Good "}) + chunk({"content": "day."}, finish="stop") + DONE, words="Good day."),
    "vLLM: what it costs with every chunk": StreamCase(
        chunk({"content": "Good "}, usage={"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10})
        + chunk({"content": "day."}, usage={"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11})
        + STOP + usage(9, 3) + DONE, words="Good day.", usage=m.Usage(input_tokens=9, output_tokens=3)),
    "Moonshot: what it cost, inside the choice": StreamCase(
        chunk({"content": "Hi."}) + lean({"index": 0, "delta": {}, "finish_reason": "stop", "usage": {
            "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}) + DONE,
        words="Hi.", usage=m.Usage(input_tokens=9, output_tokens=2)),
    "Ollama and SGLang: empty reasons": StreamCase(
        chunk({"content": "Good "}, finish="") + chunk({"content": "day."}, finish="") + STOP + DONE,
        words="Good day."),
    "GenieX: no reason at the end either": StreamCase(
        chunk({"content": "Good day."}, finish="") + chunk(finish="") + DONE, words="Good day."),
    "llama.cpp: content null at first, and no empty line after the end": StreamCase(
        chunk({"role": "assistant", "content": None}) + chunk({"content": "Good day."}) + STOP + DONE.rstrip(b"\n"),
        words="Good day."),
    "no end but the reason": StreamCase(chunk({"content": "Good day."}) + STOP, words="Good day."),
    "no delta, no index": StreamCase(
        lean({"delta": {"content": "Hi."}}) + lean({}) + lean({"finish_reason": "stop"}) + DONE, words="Hi."),
    "a whole message in the place of a delta": StreamCase(
        lean({"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}) + DONE,
        words="Hi."),
    "lines that end as on other systems": StreamCase(
        (chunk({"content": "Good "}) + chunk({"content": "day."}) + STOP + DONE).replace(b"\n", b"\r\n"),
        words="Good day."),
    "events without words to keep the line open": StreamCase(
        b"data:\n\n: ping\n\n" + chunk({"content": "Good "}) + b"data: \n\nevent: ping\ndata:\n\n"
        + chunk({"content": "day."}) + STOP + b"data:\n\n" + DONE, words="Good day."),
    "no space after the colon": StreamCase(
        (chunk({"content": "Hi."}) + STOP + DONE).replace(b"data: ", b"data:"), words="Hi."),
}

CALLS: dict[str, StreamCase] = {
    "Ollama: no index, whole arguments": calling(
        pieces(named("look", ARGUMENTS, id="a", type="function"))),
    "Ollama: both calls have the index 0": calling(
        pieces(named("look", ARGUMENTS, id="a", index=0)) + pieces(named("leap", '{"n": 2}', id="b", index=0)), *TWO),
    "a native answer passed on: arguments that are an object": calling(
        pieces(named("look", {"n": 1}), named("leap", {"n": 2})), *TWO),
    "vLLM: no id at all": calling(
        pieces(named("look", "", index=0)) + pieces(more('{"n"', index=0)) + pieces(more(": 1}", index=0))),
    "vLLM: the id only first, then empty, the name null": calling(
        pieces(named("look", "", id="a", index=0, type="function"))
        + pieces({"index": 0, "id": "", "function": {"name": None, "arguments": ARGUMENTS}})),
    "vLLM: every piece has an id of its own": calling(
        pieces(named("look", "", id="a1", index=0)) + pieces(more('{"n"', id="a2", index=0))
        + pieces(more(": 1}", id="a3", index=0))),
    "SGLang: one index for all, the id with every piece": calling(
        pieces(named("look", "", id="0", index=0)) + pieces(more(ARGUMENTS, id="0", index=0))
        + pieces(named("leap", "", id="1", index=0)) + pieces(more('{"n": 2}', id="1", index=0)), *TWO),
    "Fireworks: id, type and name with every piece": calling(
        pieces(named("look", "", id="a", index=0)) + pieces(named("look", '{"n"', id="a", index=0))
        + pieces(named("look", ": 1}", id="a", index=0))),
    "no index, the pieces told apart by their ids": calling(
        pieces(named("look", '{"n"', id="a")) + pieces(named("leap", '{"n"', id="b")) + pieces(more(": 1}", id="a"))
        + pieces(more(": 2}", id="b")), *TWO),
    "a proxy: the whole call once more at its end": calling(
        pieces(named("look", "", id="a", index=0)) + pieces(more('{"n"', index=0)) + pieces(more(": 1}", index=0))
        + pieces(named("look", '{"n":1}', id="a", index=0))),
    "a proxy: the arguments once more at their end": calling(
        pieces(named("look", "", id="a", index=0)) + pieces(more('{"n"', index=0)) + pieces(more(": 1}", index=0))
        + pieces(more('{"n":1}', index=0))),
    "NVIDIA: an empty piece with the reason": calling(
        pieces(named("look", ARGUMENTS, id="a", index=0))
        + lean({"index": 0, "delta": {"tool_calls": [more("", index=0)]}, "finish_reason": "tool_calls"})),
    "Gemini: the reason says stop": StreamCase(
        pieces(named("look", ARGUMENTS, id="", index=0)) + STOP + DONE, calls=[("look", {"n": 1})]),
    "MLX: empty deltas while the call is being written": calling(
        chunk({}, tool_call_generating=True) * 3 + pieces(named("look", ARGUMENTS, id="a", index=0))),
    "no arguments": calling(pieces({"index": 0, "id": "a", "function": {"name": "look"}}), ("look", {})),
    "arguments that are null": calling(pieces(named("look", None, id="a", index=0)), ("look", {})),
    "one call begins where another has not ended": calling(
        chunk(call(0, "a", "look", '{"n"')) + chunk(call(1, "b", "leap", '{"n": 2}'))
        + chunk(call(0, None, None, ": 1}")), *TWO),
}
