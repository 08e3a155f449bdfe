"""Query parameters, read within their bounds."""

import re

from aiohttp import web

from gateway.errors import Invalid
from gateway.field_errors import shown

MAX_TITLE = 500
NUMBER = re.compile(r"-?[0-9]{1,18}")


def whole(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    """A number between two others, or a refusal that says which."""
    said = request.query.get(name)
    if said is None or said == "":
        return default
    number = int(said) if NUMBER.fullmatch(said) else None
    if number is None or not least <= number <= most:
        raise Invalid(f"{name}: must be a whole number from {least} to {most}, not {shown(said)}", param=name)
    return number


def page(request: web.Request, default: int, most: int) -> tuple[int, int]:
    """Limit and offset."""
    return whole(request, "limit", default, 1, most), whole(request, "offset", 0, 0, 10**9)


def one_of(request: web.Request, name: str, *words: str) -> str:
    """One of these words; the first unless said."""
    said = request.query.get(name) or words[0]
    if said not in words:
        raise Invalid(f"{name}: must be {' or '.join(words)}, not {shown(said)}", param=name)
    return said


def title(request: web.Request) -> str | None:
    said = request.query.get("title")
    if said is not None and len(said) > MAX_TITLE:
        raise Invalid(f"title: must have at most {MAX_TITLE} characters, not {len(said)}", param="title")
    return said.strip() or None if said else None
