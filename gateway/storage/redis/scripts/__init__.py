"""The scripts that run in Redis, each of them a file; a script is called by its digest."""

from functools import cache
from hashlib import sha1
from pathlib import Path


@cache
def scripts() -> dict[str, tuple[str, str]]:
    """Name → (digest, text)."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.lua")):
        text = path.read_text()
        found[path.stem] = sha1(text.encode()).hexdigest(), text  # noqa: S324  # the name Redis gives it, no secret
    return found
