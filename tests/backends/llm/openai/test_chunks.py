"""What a chunk adds to the words, and what it says of the cost."""

import pytest

import gateway.model as m
from gateway.backends.llm.openai.chunks import MAX_COUNT, chunk_usage, decode_chunk, text_only_delta


@pytest.mark.parametrize(("chunk", "voice", "words"), [
    ('{"choices": [{"delta": {"content": "a"}}]}', "text", "a"),
    ('{"choices": [{"delta": {"content": "a"}}]}', "thinking", None),
    ('{"choices": [{"delta": {"reasoning": "hm", "content": ""}}]}', "thinking", "hm"),
    ('{"choices": [{"delta": {"reasoning_content": "hm", "content": "a"}}]}', "text", None),
    ('{"choices": [{"delta": {"content": ["a"]}}]}', "text", None),
    ('{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}', "text", None),
    ('{"choices": [{"delta": {"content": "a"}, "index": 1}]}', "text", None),
    ('{"choices": [{"delta": {"content": "a", "refusal": "no"}}]}', "text", None),
    ('{"choices": [{"delta": {"content": "a"}}], "usage": {}}', "text", None),
    ('{"choices": []}', "text", None), ("{}", "text", None), ('{"choices": [{}]}', "text", None),
])
def test_a_chunk_of_nothing_but_words(chunk: str, voice: str, words: str | None) -> None:
    assert text_only_delta(decode_chunk(chunk), voice) == words


def test_what_it_has_cost() -> None:
    cost = decode_chunk("""{"usage": {"prompt_tokens": 10, "completion_tokens": "3.7", "completion_tokens_details":
        {"reasoning_tokens": 2}, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": null}}}""").usage
    assert cost is not None
    assert chunk_usage(cost) == m.Usage(input_tokens=6, output_tokens=3, cache_read_tokens=4, thinking_tokens=2)


@pytest.mark.parametrize(("told", "count"), [('"many"', 0), ("-3", 0), ("1e300", MAX_COUNT), ("[]", 0), ("null", 0)])
def test_what_is_no_number_counts_nothing(told: str, count: int) -> None:
    cost = decode_chunk(f'{{"usage": {{"completion_tokens": {told}}}}}').usage
    assert cost is not None and chunk_usage(cost).output_tokens == count
