"""CAS's lists: their query parameters, their filters and their envelope."""

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from aiohttp import web
from multidict import MultiMapping

from gateway.client import parse_timestamp
from gateway.errors import Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.http import Answers, Row, Shape, encode_array, json_response
from gateway.json_values import EncodedArray
from gateway.ports import DialectTable
from gateway.time_slices import next_slice

DEFAULT_LIMIT, MAX_LIMIT = 20, 100
MAX_SCANNED = 2000
"""How many items are examined for one page."""
CURSORS = ("after_id", "before_id", "page")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class FetchRows(Protocol[T_co]):
    """Up to `limit` items whose place lies between `after` and `before`, in ascending or descending order of place."""

    def __call__(
        self, *, after: int | None, before: int | None, limit: int, oldest_first: bool,
    ) -> Awaitable[Sequence[T_co]]: ...


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One page of a list, as a client asks for it; at most one of the three cursors is there."""

    limit: int = DEFAULT_LIMIT
    ascending: bool = False
    after_id: str | None = None
    before_id: str | None = None
    page: str | None = None


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list, in the order of the list."""

    items: list[T]
    has_more: bool
    next_page: str | None


def page_request(query: Mapping[str, str], *, ascending: bool = False) -> PageRequest:
    """The page that a query string asks for; `ascending` is the order if the client names none."""
    given = {name: query[name] for name in CURSORS if query.get(name)}
    if len(given) > 1:
        raise Invalid(f"{' and '.join(given)} exclude each other: send one of them", param=[*given][-1])
    return PageRequest(limit=_limit(query), ascending=_ascending(query, ascending), **given)


async def fetch_page(
    asked: PageRequest, fetch: FetchRows[T], *, place_of: Callable[[T], int], find: Callable[[str], Awaitable[T]],
    keep: Callable[[T], bool] = lambda item: True,
) -> ListPage[T]:
    """The page. `find` finds the item of a cursor; items that `keep` refuses are left out.

    If few items are kept, the page may be short: after so many items the client gets the token of the next page.
    """
    backward, place = await _cursor(asked, place_of, find)
    oldest_first = asked.ascending is not backward
    items: list[T] = []
    seen, wanted = 0, asked.limit + 1
    while len(items) <= asked.limit:
        if seen >= MAX_SCANNED and place is not None:
            return ListPage(items[::-1] if backward else items, True, _encode_token(backward, place))
        await next_slice()
        after, before = (place, None) if oldest_first else (None, place)
        some = await fetch(after=after, before=before, limit=wanted, oldest_first=oldest_first)
        items += [item for item in some if keep(item)]
        seen += wanted
        if len(some) < wanted:
            break
        place = place_of(some[-1])
    page, has_more = items[:asked.limit], len(items) > asked.limit
    token = _encode_token(backward, place_of(page[-1])) if has_more else None
    return ListPage(page[::-1] if backward else page, has_more, token)


async def page_of_rows(
    query: Mapping[str, str], rows: Sequence[T], *, id_of: Callable[[T], str],
    place_of: Callable[[T], int] | None = None, ascending: bool = False,
) -> ListPage[T]:
    """A page of a list in memory, which has the oldest row first; the place of a row is its number by default."""
    places = {id_of(row): number for number, row in enumerate(rows, 1)}
    place = place_of or (lambda row: places[id_of(row)])

    async def fetch(*, after: int | None, before: int | None, limit: int, oldest_first: bool) -> Sequence[T]:
        some = [row for row in rows if (after is None or place(row) > after)
                and (before is None or place(row) < before)]
        return (some if oldest_first else some[::-1])[:limit]

    async def find(name: str) -> T:
        for row in rows:
            if id_of(row) == name:
                return row
        raise NotFound(name)

    return await fetch_page(page_request(query, ascending=ascending), fetch, place_of=place, find=find)


PAGE_QUERY: Mapping[str, Shape] = {"limit": int, "order": {"asc", "desc"}, **dict.fromkeys(CURSORS, str)}


def listed_answers(item: Shape, query: Mapping[str, Shape] | None = None) -> Answers:
    """The declaration of a handler that answers with a page of such items."""
    return Answers(Row("page", items=[item]), query={**PAGE_QUERY, **(query or {})})


async def page_reply(table: DialectTable, page: ListPage[Any], shown: Sequence[Mapping[str, Any]]) -> web.Response:
    """The list as the table spells it; `shown` are the bodies of the page's items."""
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return encoded_page_reply(table, page, await encode_array(shown), first, last)


def encoded_page_reply(
    table: DialectTable, page: ListPage[Any], items: EncodedArray, first_id: str | None, last_id: str | None
) -> web.Response:
    """The list as the table spells it; its items are encoded already."""
    return json_response(table.object(
        "page", items=items, first_id=first_id, last_id=last_id, has_more=page.has_more, next_page=page.next_page,
    ))


def bool_param(query: Mapping[str, str], name: str) -> bool:
    """A yes or no of the query string; absent is no."""
    value = query.get(name, "").lower()
    if value not in ("", "true", "false", "1", "0"):
        raise Invalid(f"{name}: must be true or false, not {quote_value(value)}", param=name)
    return value in ("true", "1")


# -- what the query says ----------------------------------------------------------------------------------------------
def _limit(query: Mapping[str, str]) -> int:
    value = query.get("limit") or str(DEFAULT_LIMIT)
    digits = value.lstrip("0")
    if not (digits.isascii() and digits.isdigit()):
        expected = f"limit: must be a whole number from 1 to {MAX_LIMIT}, not {quote_value(value)}"
        raise Invalid(f"{expected}; more is taken as {MAX_LIMIT}", param="limit")
    return min(int(digits[:9]), MAX_LIMIT)


def _ascending(query: Mapping[str, str], otherwise: bool) -> bool:
    value = query.get("order") or ("asc" if otherwise else "desc")
    if value not in ("asc", "desc"):
        raise Invalid(f"order: must be 'asc' or 'desc', not {quote_value(value)}", param="order")
    return value == "asc"


async def _cursor(
    asked: PageRequest, place_of: Callable[[T], int], find: Callable[[str], Awaitable[T]],
) -> tuple[bool, int | None]:
    """Whether the page lies before its cursor in the list, and the cursor's place."""
    if asked.page is not None:
        return _decode_token(asked.page)
    param, named = ("before_id", asked.before_id) if asked.before_id else ("after_id", asked.after_id)
    if named is None:
        return False, None
    try:
        return param == "before_id", place_of(await find(named))
    except NotFound:
        raise Invalid(f"{param}: '{named}' is not in this list", param=param) from None


def _encode_token(backward: bool, place: int) -> str:
    return urlsafe_b64encode(f"{'b' if backward else 'a'}{place}".encode()).decode().rstrip("=")


def _decode_token(token: str) -> tuple[bool, int]:
    try:
        text = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        if text[:1] not in ("a", "b") or len(text) > 19:
            raise ValueError(text)
        return text[0] == "b", int(text[1:])
    except ValueError:
        raise Invalid(f"page: '{token[:64]}' is not a page of this list", param="page") from None


Query = MultiMapping[str]
TIME_BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda at, bound: at > bound,
    "gte": lambda at, bound: at >= bound,
    "lt": lambda at, bound: at < bound,
    "lte": lambda at, bound: at <= bound,
}


CREATED_QUERY: Mapping[str, Shape] = {f"created_at[{word}]": str for word in TIME_BOUNDS}


def words_query(*names: str) -> Mapping[str, Shape]:
    """The parameters that `query_words` reads."""
    return dict.fromkeys((key for name in names for key in (name, f"{name}[]")), str)


def query_words(query: Query, *names: str) -> frozenset[str]:
    """All values of these names, as `name=a&name=b`, `name[]=a` or `name=a,b`."""
    spelled = [value for name in names for key in (name, f"{name}[]") for value in query.getall(key, [])]
    return frozenset(word for value in spelled for word in value.split(",") if word)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The moments that `created_at[gt]` and its like allow, by word."""

    bounds: Mapping[str, float]

    def __contains__(self, at: float) -> bool:
        return all(TIME_BOUNDS[word](at, bound) for word, bound in self.bounds.items())

    @property
    def first(self) -> float:
        """No earlier moment is allowed."""
        return max([bound for word, bound in self.bounds.items() if word.startswith("g")], default=-math.inf)

    @property
    def last(self) -> float:
        """No later moment is allowed."""
        return min([bound for word, bound in self.bounds.items() if word.startswith("l")], default=math.inf)


def created_within(query: Query) -> TimeRange:
    """When the items of a list may have been created."""
    asked = {word: f"created_at[{word}]" for word in TIME_BOUNDS}
    return TimeRange({word: read_time(query[key], key) for word, key in asked.items() if query.get(key)})


def read_time(text: str, param: str) -> float:
    """A time as RFC 3339 has it, in seconds since the epoch; without a zone it is UTC."""
    at = parse_timestamp(text.replace(" ", "+"))
    if at is None:
        raise Invalid(f"{param}: '{text[:64]}' is not a time", param=param)
    return at


class FilteredEvent(Protocol):
    """What events of a list are filtered by."""

    @property
    def type(self) -> str: ...
    @property
    def at(self) -> float: ...


def event_filter(query: Query) -> Callable[[FilteredEvent], bool]:
    """Whether an event belongs to the list of this query; times are compared as events show them, in milliseconds."""
    types, in_time = query_words(query, "type", "types"), created_within(query)
    return lambda event: (not types or event.type in types) and round(event.at, 3) in in_time
