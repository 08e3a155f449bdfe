"""Words made fit to be shown: nothing moves the cursor, long things are folded."""

from typing import Any

import orjson

from gateway.model import AnyPart, Content, DataPart, FilePart, ImagePart, TextPart, ThinkingPart, ToolUsePart, parts_of

FOLDED_LINES = 4
"""So many lines of a result are shown."""
WHOLE = 20_000
"""So many characters of something that must be seen whole."""
LONGEST = 200
"""So many characters of one line, of an input or an address."""


def clean(text: str) -> str:
    """Line ends and tabs stay; whatever else could move the reader's cursor or colour their terminal is spelled out."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def short(text: str, longest: int = LONGEST) -> str:
    """One line, and not a long one."""
    line = clean(text).replace("\n", " ").strip()
    return line if len(line) <= longest else f"{line[:longest - 1]}…"


def as_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


def in_lines(value: Any, longest: int = WHOLE) -> list[str]:
    """All of it, as JSON that can be read; if it is very long, its beginning, and how much is not shown."""
    try:
        text = clean(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    except TypeError:
        text = clean(str(value))
    left = len(text) - longest
    return [*text[:longest].split("\n"), *([f"… {left:,} more characters"] if left > 0 else [])]


def folded(content: Content, lines: int = FOLDED_LINES) -> list[str]:
    """The first lines of some content, and how many there are beside them."""
    every = clean("\n".join(map(_in_words, parts_of(content)))).rstrip("\n").split("\n")
    shown = [short(line) for line in every[:lines]]
    left = len(every) - lines
    return [*shown, f"… {many(left, 'more line')}"] if left > 0 else shown


def many(number: int, thing: str) -> str:
    """`1 token`, `2 tokens`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _in_words(part: AnyPart) -> str:
    if isinstance(part, TextPart | ThinkingPart):
        return part.text
    if isinstance(part, ImagePart):
        return f"[image] {short(part.url, 80)}"
    if isinstance(part, FilePart):
        return f"[file] {part.name}"
    if isinstance(part, DataPart):
        return f"[{part.type}] {as_json(part.content)}"
    assert isinstance(part, ToolUsePart), "there are no other parts"
    return f"[call] {part.call.name}"
