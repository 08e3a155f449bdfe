"""What a Quill client that watches a whole talk gets of it."""

import orjson

from gateway.ports import NO_OPTIONS, Frame

OPTIONS = NO_OPTIONS
"""The options of its stream."""


def spoken(frames: list[Frame]) -> tuple[str, list[str]]:
    """The words of the agent, and the names of the tools it used, of which Quill tells nothing."""
    words = [frame.body.split(b"data: ", 1)[1] for frame in frames if frame.body.startswith(b"event: words")]
    return "".join(orjson.loads(word)["text"] for word in words), []
