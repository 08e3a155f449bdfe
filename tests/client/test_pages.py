"""Lists that come a page at a time are read as far as they are wanted."""

import pytest

from gateway.client import PAGE, read_offsets, read_pages

PAGES: dict[str | None, tuple[list[int], str | None]] = {None: ([1, 2], "b"), "b": ([3, 4], "c"), "c": ([5], None)}


class Server:
    """Gives pages, and notes which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    async def page(self, name: str | None) -> tuple[list[int], str | None]:
        self.asked.append(name)
        return PAGES[name]


@pytest.mark.parametrize(("most", "found", "asked"), [
    (None, [1, 2, 3, 4, 5], [None, "b", "c"]),
    (3, [1, 2, 3], [None, "b"]),
    (2, [1, 2], [None]),
    (9, [1, 2, 3, 4, 5], [None, "b", "c"]),
])
async def test_no_page_is_read_that_is_not_wanted(most: int | None, found: list[int], asked: list[str | None]) -> None:
    server = Server()
    assert await read_pages(server.page, most=most) == found
    assert server.asked == asked


async def test_the_last_item_that_is_wanted_ends_the_list() -> None:
    assert await read_pages(Server().page, is_last=lambda item: item == 4) == [1, 2, 3, 4]


async def test_a_server_that_always_has_another_page_is_not_read_for_ever() -> None:
    async def same(name: str | None) -> tuple[list[int], str | None]:
        return [1], "again"

    async def empty(name: str | None) -> tuple[list[int], str | None]:
        return [], "again"

    assert await read_pages(same, max_pages=7) == [1] * 7
    assert await read_pages(empty, max_pages=10**9) == []


@pytest.mark.parametrize(("most", "kept", "asked"), [
    (250, 1000, [(PAGE, 0), (PAGE, 100), (50, 200)]),
    (250, 120, [(PAGE, 0), (PAGE, 100)]),
    (0, 9, []),
])
async def test_offsets_go_on_while_pages_are_full(most: int, kept: int, asked: list[tuple[int, int]]) -> None:
    wanted: list[tuple[int, int]] = []

    async def page(limit: int, offset: int) -> list[int]:
        wanted.append((limit, offset))
        return list(range(kept))[offset:offset + limit]

    assert await read_offsets(page, most) == list(range(min(most, kept)))
    assert wanted == asked
