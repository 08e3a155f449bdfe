"""The name of a client: the program that a request says it comes from, with its version."""

import re
from collections.abc import Mapping
from functools import lru_cache

UNNAMED = "(unnamed)"
LONGEST_NAME = 64
_PRODUCT = re.compile(r"([A-Za-z0-9][\w.@-]*)(?:/([\w.+-]+))?")
_COMMENT = re.compile(r"\([^()]*\)")
_ENGINES = frozenset(("mozilla", "applewebkit", "khtml", "gecko", "version", "mobile", "electron", "like"))
"""Products that many programs name beside themselves."""
_BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
"""Browsers, each before those whose names it sends as well."""


def client_name(headers: Mapping[str, str]) -> str:
    """The program of `User-Agent`, with the version of its SDK if a header has it; a browser with its main version."""
    return _name(headers.get("User-Agent", "")[:512], headers.get("X-Stainless-Package-Version", "")[:64])


@lru_cache(1024)
def _name(user_agent: str, sdk_version: str) -> str:
    products = _PRODUCT.findall(_COMMENT.sub(" ", user_agent))
    if not products:
        return UNNAMED
    browsers = {name: version for name, version in products if name in _BROWSERS}
    own = next(((name, version) for name, version in products
                if name.lower() not in _ENGINES and name not in _BROWSERS), None)
    if own is not None:
        name, version = own
    elif browsers:
        name = next(name for name in _BROWSERS if name in browsers)
        version = browsers[name].partition(".")[0]
    else:
        name, version = products[0]
    known = _PRODUCT.fullmatch(sdk_version)
    whole = f"{name}/{version}" if version else name
    return (f"{whole} {known[0]}" if known else whole)[:LONGEST_NAME]
