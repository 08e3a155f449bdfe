"""Reads lists that a server gives a page at a time, by the name of the next page or by an offset."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

MAX_PAGES = 100
"""So many pages of a list are read, unless a client wants another number."""
PAGE = 100
"""So many items are asked for at once."""
Item = TypeVar("Item")


async def read_pages(
    fetch: Callable[[str | None], Awaitable[tuple[Sequence[Item], str | None]]], *, most: int | None = None,
    is_last: Callable[[Item], bool] | None = None, max_pages: int = MAX_PAGES,
) -> list[Item]:
    """The items up to so many, or up to the last one that is wanted; `fetch` gets the name of a page, first None."""
    found: list[Item] = []
    page: str | None = None
    for _ in range(max_pages):
        items, page = await fetch(page)
        for item in items:
            found.append(item)
            if (most is not None and len(found) >= most) or (is_last is not None and is_last(item)):
                return found[:most]
        if page is None or not items:
            break
    return found


async def read_offsets(fetch: Callable[[int, int], Awaitable[Sequence[Item]]], most: int) -> list[Item]:
    """The items up to so many; `fetch` gets how many are wanted, and how many come before them."""
    found: list[Item] = []
    while len(found) < most:
        wanted = min(PAGE, most - len(found))
        items = await fetch(wanted, len(found))
        found += items
        if len(items) < wanted:
            break
    return found
