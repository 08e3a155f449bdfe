"""CAS's pages: however a list is walked, everything is seen once and in order."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapters.cas.server.paging import ListPage, PageRequest, fetch_page, page_request
from gateway.errors import NotFound


class Shelf:
    """Things by their places; some of them are not wanted."""

    def __init__(self, places: list[int], unwanted: set[int]) -> None:
        self.places = sorted(places)
        self.unwanted = unwanted

    async def fetch(self, *, after: int | None, before: int | None, limit: int, oldest_first: bool) -> Sequence[int]:
        some = [p for p in self.places if (after is None or p > after) and (before is None or p < before)]
        return (some if oldest_first else some[::-1])[:limit]

    async def find(self, named: str) -> int:
        if int(named) not in self.places:
            raise NotFound(named)
        return int(named)

    async def page(self, asked: PageRequest) -> ListPage[int]:
        return await fetch_page(
            asked, self.fetch, place_of=lambda place: place, find=self.find, keep=lambda p: p not in self.unwanted,
        )

    async def walk(self, asked: PageRequest) -> list[list[int]]:
        pages = [await self.page(asked)]
        while (token := pages[-1].next_page) is not None:
            assert pages[-1].has_more
            pages.append(await self.page(PageRequest(limit=asked.limit, ascending=asked.ascending, page=token)))
        assert not pages[-1].has_more
        return [page.items for page in pages]


shelves = st.builds(
    Shelf, st.lists(st.integers(-50, 50), unique=True, max_size=30), st.sets(st.integers(-50, 50), max_size=40),
)


@given(shelves, st.integers(1, 7), st.booleans())
async def test_a_walk_sees_everything_once(shelf: Shelf, limit: int, ascending: bool) -> None:
    wanted = [place for place in shelf.places if place not in shelf.unwanted]
    pages = await shelf.walk(PageRequest(limit=limit, ascending=ascending))
    assert [place for page in pages for place in page] == (wanted if ascending else wanted[::-1])
    assert all(len(page) == limit for page in pages[:-1])


@given(shelves.filter(lambda shelf: bool(shelf.places)), st.integers(1, 7), st.booleans(), st.data())
async def test_a_cursor_parts_the_list(shelf: Shelf, limit: int, ascending: bool, data: st.DataObject) -> None:
    order = shelf.places if ascending else shelf.places[::-1]
    cursor = data.draw(st.sampled_from(order))
    at, keep = order.index(cursor), [place for place in order if place not in shelf.unwanted]
    after = await shelf.walk(PageRequest(limit=limit, ascending=ascending, after_id=str(cursor)))
    before = await shelf.walk(PageRequest(limit=limit, ascending=ascending, before_id=str(cursor)))
    assert [place for page in after for place in page] == [place for place in order[at + 1:] if place in keep]
    assert [place for page in reversed(before) for place in page] == [place for place in order[:at] if place in keep]


def test_what_a_query_may_say() -> None:
    assert page_request({}) == PageRequest(limit=20, ascending=False)
    assert page_request({"limit": "100", "order": "asc", "after_id": "x"}) == PageRequest(100, True, after_id="x")
    assert page_request({"order": "desc", "limit": "", "page": ""}, ascending=True) == PageRequest(20, False)
