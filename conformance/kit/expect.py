"""Expectations: an error says what was expected and what was seen."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import orjson

if TYPE_CHECKING:
    from conformance.kit.http import Reply

LONGEST = 600
T = TypeVar("T")
OWNER: ContextVar[str | None] = ContextVar("owner", default=None)
"""The requirement that what is expected now belongs to, where that is said around it."""
TOO_QUICK = "the turn was over before it could be caught running; a slower prompt `slow` in the profile would show it"


class Failed(Exception):
    """The server broke a requirement: the owner, or, without an owner, the requirements of the case."""

    def __init__(self, expected: str, seen: str, owner: str | None = None) -> None:
        self.expected = expected
        self.seen = seen
        self.owner = owner
        super().__init__(f"expected {expected}; seen: {seen}")

    def again(self) -> "Failed":
        """A copy of the failure for another case, which may name another owner."""
        return type(self)(self.expected, self.seen, self.owner)


class Unanswered(Failed):
    """The server gave no answer: it is silent, gone, speaks something other than HTTP, or sends no body."""


class NotTestable(Exception):
    """The situation a requirement speaks of cannot be brought about here."""


def show(value: Any) -> str:
    """A value as a person reads it: JSON where possible, and not too long."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:
        text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST} more characters)"


def fail(expected: str, seen: Any, owner: str | None = None) -> NoReturn:
    raise Failed(expected, show(seen) or "nothing", owner)


def that(holds: bool, expected: str, seen: Any, owner: str | None = None) -> None:
    """Fail with both sides unless `holds`."""
    if not holds:
        fail(expected, seen, owner)


@contextmanager
def owned(owner: str) -> Iterator[None]:
    """A failure in this context that has no owner yet gets this requirement as its owner."""
    token = OWNER.set(owner)
    try:
        yield
    except Failed as failure:
        failure.owner = failure.owner or owner
        raise
    finally:
        OWNER.reset(token)


def equal(what: str, expected: Any, seen: Any) -> None:
    if expected != seen:
        fail(f"{what}: {show(expected)}", seen)


def keyed(what: str, seen: Any, *names: str) -> dict[str, Any]:
    """An object that has at least these members."""
    having = f" with {list(names)}" if names else ""
    that(isinstance(seen, dict) and all(name in seen for name in names), f"{what}, an object{having}", seen)
    found: dict[str, Any] = seen
    return found


def first(what: str, found: Iterable[T], seen: Any) -> T:
    """The first of what was found; there must be one."""
    for item in found:
        return item
    fail(what, seen)


def member(what: str, allowed: Collection[str], seen: Any) -> None:
    if not isinstance(seen, str) or seen not in allowed:
        fail(f"{what} to be one of {', '.join(sorted(allowed))}", seen)


def subset(what: str, expected: Collection[str], seen: Collection[str]) -> None:
    """Expect all of these members; others may be there, too."""
    that(isinstance(seen, Collection) and not isinstance(seen, str), f"{what}, a list or an object", seen)
    known = list(seen)
    missing = sorted({show(item) for item in expected if item not in known})
    if missing:
        fail(f"{what} to include {', '.join(missing)}", sorted(known, key=show))


def status(reply: "Reply", *wanted: int) -> "Reply":
    if reply.status not in wanted:
        fail(f"{reply.asked} to be answered with {' or '.join(map(str, wanted))}", reply.told)
    return reply


def refused(reply: "Reply", why: str) -> "Reply":
    """Any 4xx will do."""
    if not 400 <= reply.status < 500:
        fail(f"{reply.asked} to be refused with a 4xx, because {why}", reply.told)
    return reply


def parsed(text: str | bytes, what: str) -> Any:
    """The JSON value in the text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        shown = text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")
        raise Failed(f"{what} to be JSON ({error})", show(shown) or "nothing") from None


@asynccontextmanager
async def while_it_runs(is_over: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
    """A failure in this context does not count if the turn is over by now: a slow answer may have come too late."""
    try:
        yield
    except Unanswered:
        raise
    except Failed as failure:
        if await is_over():
            raise NotTestable(f"{TOO_QUICK} ({failure})") from failure
        raise


@contextmanager
def preparing(what: str) -> Iterator[None]:
    """A failure in this context means that the case cannot be tested, not that its requirement failed.

    Silence stays a failure, and so does what has an owner: the case is not testable because of it.
    """
    try:
        yield
    except Unanswered:
        raise
    except Failed as failure:
        if failure.owner is not None:
            raise
        raise NotTestable(f"could not prepare {what}: {failure}") from failure
