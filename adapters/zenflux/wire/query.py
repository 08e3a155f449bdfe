"""The parameters of a query: numbers, words, titles and switches."""

import re

from aiohttp import web

from gateway.errors import Invalid
from gateway.field_errors import quote_value

MAX_TITLE = 500
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


def whole_number_param(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    """A number of the query between two bounds; another value is refused."""
    value = request.query.get(name)
    if value is None or value == "":
        return default
    number = int(value) if WHOLE_NUMBER.fullmatch(value) else None
    if number is None or not least <= number <= most:
        raise Invalid(f"{name}: must be a whole number from {least} to {most}, not {quote_value(value)}", param=name)
    return number


def page_params(request: web.Request, default: int, most: int) -> tuple[int, int]:
    """Limit and offset."""
    return whole_number_param(request, "limit", default, 1, most), whole_number_param(request, "offset", 0, 0, 10**9)


def choice_param(request: web.Request, name: str, *words: str) -> str:
    """One of these words; by default the first."""
    value = request.query.get(name) or words[0]
    if value not in words:
        raise Invalid(f"{name}: must be {' or '.join(words)}, not {quote_value(value)}", param=name)
    return value


def title_param(request: web.Request) -> str | None:
    value = request.query.get("title")
    if value is not None and len(value) > MAX_TITLE:
        raise Invalid(f"title: must have at most {MAX_TITLE} characters, not {len(value)}", param="title")
    return value.strip() or None if value else None


BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def bool_param(request: web.Request, name: str, *, default: bool) -> bool:
    """A switch of the query; another word is refused."""
    value = request.query.get(name)
    if value is None or value == "":
        return default
    if value.lower() not in BOOLEANS:
        raise Invalid(f"{name}: must be true or false, not {quote_value(value)}", param=name)
    return BOOLEANS[value.lower()]
