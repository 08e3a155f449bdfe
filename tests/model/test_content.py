"""Parts of messages, and what settings hide."""

import gateway.model as m


def test_a_bare_string_is_one_text_part() -> None:
    assert m.parts_of("hi") == (m.TextPart(text="hi"),)
    assert m.text_of("hi") == "hi"


def test_text_leaves_thinking_and_pictures_out() -> None:
    content = (
        m.TextPart(text="a"),
        m.ThinkingPart(text="hm"),
        m.ImagePart(url="https://x.test/p.png"),
        m.TextPart(text="b"),
    )
    assert m.text_of(content) == "ab"
    assert m.parts_of(content) == content


def test_usage_adds_up() -> None:
    total = m.Usage(input_tokens=1, output_tokens=2, thinking_tokens=3) + m.Usage(input_tokens=10, cache_read_tokens=5)
    assert total == m.Usage(input_tokens=11, output_tokens=2, thinking_tokens=3, cache_read_tokens=5)
