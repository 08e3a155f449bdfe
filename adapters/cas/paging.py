"""CAS's lists: what a client may ask of one, and the envelope that every one of them comes in."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from aiohttp import web

from gateway.errors import Invalid, NotFound
from gateway.field_errors import shown
from gateway.time_slices import turn
from gateway.web import encoded, reply
from mappings.language import Table

LIMIT, MOST = 20, 100
LOOKED_AT = 2000
"""How many things are looked at for one page."""
CURSORS = ("after_id", "before_id", "page")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Fetch(Protocol[T_co]):
    """Up to `limit` things whose place lies between `after` and `before`, in ascending or descending order of place."""

    def __call__(
        self, *, after: int | None, before: int | None, limit: int, oldest_first: bool,
    ) -> Awaitable[Sequence[T_co]]: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One page of a list, as a client asks for it; at most one of the three cursors is there."""

    limit: int = LIMIT
    ascending: bool = False
    after_id: str | None = None
    before_id: str | None = None
    page: str | None = None


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """One page of a list, in the order of the list."""

    items: list[T]
    has_more: bool
    next_page: str | None


def asked_of(query: Mapping[str, str], *, ascending: bool = False) -> Asked:
    """The page a query string asks for; `ascending` is the order of the list where the client says none."""
    given = {name: query[name] for name in CURSORS if query.get(name)}
    if len(given) > 1:
        raise Invalid(f"{' and '.join(given)} exclude each other: send one of them", param=[*given][-1])
    return Asked(limit=_limit(query), ascending=_ascending(query, ascending), **given)


async def listed(
    asked: Asked, fetch: Fetch[T], *, place_of: Callable[[T], int], find: Callable[[str], Awaitable[T]],
    keep: Callable[[T], bool] = lambda item: True,
) -> Listed[T]:
    """The page asked for. `find` finds what a cursor names; things that `keep` refuses are passed over.

    Where few things are kept, the page may be short: after so many things the client is given the token to go on.
    """
    backward, place = await _cursor(asked, place_of, find)
    oldest_first = asked.ascending is not backward
    items: list[T] = []
    seen, wanted = 0, asked.limit + 1
    while len(items) <= asked.limit:
        if seen >= LOOKED_AT and place is not None:
            return Listed(items[::-1] if backward else items, True, _token(backward, place))
        await turn()
        after, before = (place, None) if oldest_first else (None, place)
        some = await fetch(after=after, before=before, limit=wanted, oldest_first=oldest_first)
        items += [item for item in some if keep(item)]
        seen += wanted
        if len(some) < wanted:
            break
        place = place_of(some[-1])
    page, has_more = items[:asked.limit], len(items) > asked.limit
    token = _token(backward, place_of(page[-1])) if has_more else None
    return Listed(page[::-1] if backward else page, has_more, token)


async def page_reply(table: Table, page: Listed[Any], shown: Sequence[Mapping[str, Any]]) -> web.Response:
    """The list as the table spells it; `shown` are the bodies of the page's items."""
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return reply(table.object(
        "page", items=await encoded(shown), first_id=first, last_id=last, has_more=page.has_more,
        next_page=page.next_page,
    ))


def flag(query: Mapping[str, str], name: str) -> bool:
    """A yes or no of the query string; absent is no."""
    said = query.get(name, "").lower()
    if said not in ("", "true", "false", "1", "0"):
        raise Invalid(f"{name}: must be true or false, not {shown(said)}", param=name)
    return said in ("true", "1")


# -- what the query says ----------------------------------------------------------------------------------------------

def _limit(query: Mapping[str, str]) -> int:
    said = query.get("limit") or str(LIMIT)
    digits = said.lstrip("0")
    if not (digits.isascii() and digits.isdigit()):
        words = f"limit: must be a whole number from 1 to {MOST}, not {shown(said)}; more is taken as {MOST}"
        raise Invalid(words, param="limit")
    return min(int(digits[:9]), MOST)


def _ascending(query: Mapping[str, str], otherwise: bool) -> bool:
    said = query.get("order") or ("asc" if otherwise else "desc")
    if said not in ("asc", "desc"):
        raise Invalid(f"order: must be 'asc' or 'desc', not {shown(said)}", param="order")
    return said == "asc"


async def _cursor(
    asked: Asked, place_of: Callable[[T], int], find: Callable[[str], Awaitable[T]],
) -> tuple[bool, int | None]:
    """Whether the page lies before its cursor in the list, and the cursor's place."""
    if asked.page is not None:
        return _place(asked.page)
    param, named = ("before_id", asked.before_id) if asked.before_id else ("after_id", asked.after_id)
    if named is None:
        return False, None
    try:
        return param == "before_id", place_of(await find(named))
    except NotFound:
        raise Invalid(f"{param}: '{named}' is not in this list", param=param) from None


def _token(backward: bool, place: int) -> str:
    return urlsafe_b64encode(f"{'b' if backward else 'a'}{place}".encode()).decode().rstrip("=")


def _place(token: str) -> tuple[bool, int]:
    try:
        text = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        if text[:1] not in ("a", "b") or len(text) > 19:
            raise ValueError(text)
        return text[0] == "b", int(text[1:])
    except ValueError:
        raise Invalid(f"page: '{token[:64]}' is not a page of this list", param="page") from None
