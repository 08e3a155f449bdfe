"""Damaged members: what stands in a body where a member is missing or of a wrong shape.

A reader notes whose sentence is broken and puts a `Damaged` in the member's place. A judgement that never looks at the
member goes on as if nothing had been; one that does look cannot be made, because the owner of the sentence failed.
"""

from typing import Any, NoReturn

from conformance.kit.expect import Failed

Path = tuple[str | int, ...]


class Damaged:
    """A member that is not of its shape; whatever is done with it raises the failure of the requirement it breaks."""

    def __init__(self, owner: str, expected: str, seen: str) -> None:
        self.failure = (expected, seen, owner)

    def look(self, *given: Any) -> NoReturn:
        """Fail as the requirement that owns the member."""
        raise Failed(*self.failure)

    def __repr__(self) -> str:
        return "(damaged)"

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = look
    __hash__ = __bool__ = __len__ = __iter__ = __str__ = __format__ = look
    __getitem__ = __contains__ = __add__ = __radd__ = __sub__ = __rsub__ = __call__ = look

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.look()


def is_damaged(value: Any) -> bool:
    """Whether a reader found the value to be of a wrong shape."""
    return isinstance(value, Damaged)


def sound(value: Any) -> Any:
    """The value; if it is damaged, fail as the requirement that owns it."""
    if isinstance(value, Damaged):
        value.look()
    return value


def whole(body: Any) -> Any:
    """The body; if anything in it is damaged, fail as the requirement that owns it."""
    for item in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        whole(item)
    return sound(body)


def replaced(body: Any, path: Path, damaged: Damaged) -> Any:
    """A copy of the body with something damaged at this path; what lies within something damaged is part of it."""
    if not path or isinstance(body, Damaged):
        return damaged if not isinstance(body, Damaged) else body
    if isinstance(body, dict):
        key = str(path[0])
        return {**body, key: replaced(body.get(key), path[1:], damaged)}
    if isinstance(body, list) and isinstance(path[0], int):
        return [replaced(item, path[1:], damaged) if place == path[0] else item for place, item in enumerate(body)]
    return body
