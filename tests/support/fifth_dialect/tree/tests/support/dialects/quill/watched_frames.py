"""What a Quill client that watches a whole talk gets of it."""

import orjson

from gateway.ports import Frame


def spoken(frames: list[Frame]) -> tuple[str, list[str]]:
    """The words of the agent, and the names of the tools it used, of which Quill tells nothing."""
    words = [frame.body.split(b"data: ", 1)[1] for frame in frames if frame.name == "words"]
    return "".join(orjson.loads(word)["text"] for word in words), []
