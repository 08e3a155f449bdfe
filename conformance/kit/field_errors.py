"""Errors of pydantic in the words of the document. The examiners share no code with the gateway."""

import re
from typing import Any

_MUST = {
    "model_type": "be a mapping, as `{{name: value}}`", "dict_type": "be a mapping, as `{{name: value}}`",
    "list_type": "be a list, as `[one, two]`", "tuple_type": "be a list, as `[one, two]`",
    "set_type": "be a list, as `[one, two]`", "frozen_set_type": "be a list, as `[one, two]`",
    "string_type": "be a string", "int_type": "be a whole number", "int_parsing": "be a whole number",
    "int_from_float": "be a whole number", "float_type": "be a number", "float_parsing": "be a number",
    "bool_type": "be true or false", "bool_parsing": "be true or false",
    "literal_error": "be {expected}", "enum": "be {expected}",
    "greater_than": "be greater than {gt}", "greater_than_equal": "be at least {ge}",
    "less_than": "be less than {lt}", "less_than_equal": "be at most {le}",
    "string_too_short": "have at least {min_length} characters",
    "string_too_long": "have at most {max_length} characters",
    "too_short": "have at least {min_length} items", "too_long": "have at most {max_length} items",
    "string_pattern_mismatch": "fit the pattern {pattern}",
    "date_type": "be a date, as 2031-01-31", "date_parsing": "be a date, as 2031-01-31",
    "date_from_datetime_parsing": "be a date, as 2031-01-31",
    "url_parsing": "be a URL", "url_type": "be a URL", "url_scheme": "be a URL that begins with {expected_schemes}",
    "pattern_regex": "be a regular expression", "path_type": "be a path",
}
_SECRET = re.compile(r"key|token|secret|passw|authorization|cookie|credential|header", re.IGNORECASE)
_SHOWN = 40


def words_of(found: Any) -> str:
    """One error of pydantic's `errors()`: what is expected, and what is there unless it may be a secret."""
    kind, given = found["type"], found.get("input")
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not known here"
    if kind in _MUST:
        expected = _MUST[kind].format(**found.get("ctx") or {})
        return f"must {expected}, not {_shown(given, '.'.join(map(str, found['loc'])))}"
    return re.sub(r"^(Value error|Assertion failed), ", "", found["msg"])


def _shown(value: Any, field: str) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = " ".join(str(value).split())
    if _SECRET.search(field):
        return "what is written there"
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN - 1]}…"
    return f"'{short}'" if isinstance(value, str) else short
