"""Parts of messages, and what settings hide."""

from gateway.model import ImagePart, TextPart, ThinkingPart, Usage, parts_of, text_of


def test_a_bare_string_is_one_text_part() -> None:
    assert parts_of("hi") == (TextPart(text="hi"),)
    assert text_of("hi") == "hi"


def test_text_leaves_thinking_and_pictures_out() -> None:
    content = (TextPart(text="a"), ThinkingPart(text="hm"), ImagePart(url="https://x.test/p.png"), TextPart(text="b"))
    assert text_of(content) == "ab"
    assert parts_of(content) == content


def test_usage_adds_up() -> None:
    total = Usage(input_tokens=1, output_tokens=2, thinking_tokens=3) + Usage(input_tokens=10, cache_read_tokens=5)
    assert total == Usage(input_tokens=11, output_tokens=2, thinking_tokens=3, cache_read_tokens=5)
