"""Describes validation errors of pydantic and msgspec in plain words: the field, what was expected, and what came.

Every refusal of a wire model and every problem of a settings file gets its text here.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

MAX_PROBLEMS = 20
"""The number of errors of one value that are reported."""
QUOTE_LENGTH = 40
"""The number of characters that are quoted of a text."""
QUOTE_SCAN_LENGTH = 1_000
"""The number of characters that are read to find the quotation."""
_SECRET = re.compile(
    r"key|token|secret|passw|auth|cookie|credential|header|\benv\b|runtime_env|variables",
    re.IGNORECASE,
)
"""A field with such a name, and everything below it, is not quoted."""


@dataclass(frozen=True)
class Nouns:
    """The names of types in a format, such as "an object" in JSON."""

    object: str
    array: str
    missing: str = "is required"
    null: str = "null"


JSON_NOUNS = Nouns(object="an object", array="an array")
YAML_NOUNS = Nouns(object="a mapping, as `{name: value}`", array="a list, as `[one, two]`", null="empty")


@dataclass(frozen=True)
class FieldError:
    """One error: the path to the field, what was expected, and what came, if it may be quoted."""

    field: str
    expected: str
    received: str = ""

    @property
    def text(self) -> str:
        return f"{self.expected}, not {self.received}" if self.received else self.expected

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.field else self.text


def field_errors(error: ValidationError, value: object, field: str = "") -> list[FieldError]:
    """Return the first errors, each with its field; for a union the errors of the variant that fits best."""
    found = [_field_error(one, value, field) for one in error.errors(include_url=False)[:MAX_PROBLEMS]]
    above = {one.field[:end] for one in found for end in range(len(one.field)) if one.field[end] == "."}
    return _joined([one for one in found if one.field not in above])


def _field_error(found: ErrorDetails, value: object, field: str) -> FieldError:
    path = path_in_value(found["loc"], value, missing=found["type"] == "missing")
    return describe_error(found, ".".join(filter(None, [field, *map(str, path)])))


def describe_error(found: ErrorDetails, field: str, nouns: Nouns = JSON_NOUNS, *, discreet: bool = False) -> FieldError:
    """Describe one error of pydantic's `errors()`, at the field that the reader knows.

    `discreet` is for settings of which any may be a secret: only a word that is not on a list is quoted.
    """
    kind, context, given = found["type"], found.get("ctx") or {}, found.get("input")
    if kind.startswith("union_tag_"):
        return _tag_error(kind, context, given, field, nouns)
    expected = _EXPECTED.get(kind)
    if expected is None:
        return FieldError(field, validator_message(found) if kind not in _FOREIGN else "is not valid")
    words = expected(context, nouns)
    named = "secret" if discreet and kind not in ("literal_error", "enum") else field
    return FieldError(field, words, "" if kind in _SILENT else _received_text(kind, given, named, nouns))


def validator_message(found: ErrorDetails) -> str:
    """Return the text of one of our validators, which is written for readers."""
    words = str(found["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    words = re.sub(r"^Input should (be a valid |be )", "must be a ", words)
    return words if words[1:2].isupper() else f"{words[:1].lower()}{words[1:]}"  # an acronym keeps its case


def path_in_value(loc: Iterable[str | int], value: Any, *, missing: bool = False) -> tuple[str | int, ...]:
    """Return the path to a field in the value that was sent, without the names of union variants."""
    path: list[str | int] = []
    steps: list[Any] = list(loc)
    for number, step in enumerate(steps, 1):
        is_last = number == len(steps)
        if _has_child(step, value) and (is_last or not _is_tag(step, steps[number], value)):
            value = value[step]
            path.append(step)
        elif missing and is_last:
            path.append(step)
    return tuple(path)


def _has_child(step: object, value: object) -> bool:
    if isinstance(value, list):
        return isinstance(step, int) and step < len(value)
    return isinstance(value, dict) and step in value


def _is_tag(step: object, after: object, value: object) -> bool:
    """Say whether the step only names the variant of the object; a variant may have a member of the same name."""
    if not isinstance(value, dict) or step not in (value.get("type"), value.get("role")):
        return False
    return _has_child(after, value) or not _has_child(after, value[step])


# -- unions -----------------------------------------------------------------------------------------------------------

def _tag_error(kind: str, context: Mapping[str, object], given: object, field: str, nouns: Nouns) -> FieldError:
    if not isinstance(given, dict):
        return FieldError(field, f"must be {nouns.object}", quote_value(given, field, nouns))
    word = str(context.get("discriminator", "")).strip("'")
    below = f"{field}.{word}" if field else word
    if kind == "union_tag_not_found":
        return FieldError(below, nouns.missing)
    return FieldError(below, f"must be {_either(str(context.get('expected_tags', '')).split(', '))}",
                      quote_value(given.get(word), below, nouns))


def _joined(found: list[FieldError]) -> list[FieldError]:
    """Join the errors of one field into one: it must be this or that."""
    fields: dict[str, list[FieldError]] = {}
    for one in found:
        fields.setdefault(one.field, []).append(one)
    return [_alternatives(several) for several in fields.values()]


def _alternatives(several: list[FieldError]) -> FieldError:
    other = [one for one in several if not one.expected.startswith(_MUST)]
    if len(several) == 1 or other:
        return (other or several)[0]  # the variant is right, something else is wrong
    kinds = dict.fromkeys(one.expected.removeprefix(_MUST) for one in several)
    return FieldError(several[0].field, _MUST + _either(list(kinds)), several[0].received)


_MUST = "must be "


def _either(words: list[str]) -> str:
    """Return the words with an "or" before the last."""
    *before, last = words
    return f"{', '.join(before)} or {last}" if before else last


# -- what came --------------------------------------------------------------------------------------------------------

def quote_value(value: object, field: str = "", nouns: Nouns = JSON_NOUNS) -> str:
    """Quote a value for its sender: short, and without secrets."""
    if value is None:
        return nouns.null
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return nouns.object.partition(",")[0]
    if isinstance(value, list | tuple):
        return nouns.array.partition(",")[0]
    is_secret = _SECRET.search(field) is not None
    if isinstance(value, int | float):
        return "a number" if is_secret else str(value)[:QUOTE_LENGTH]
    if isinstance(value, str):
        return "a string" if is_secret else f"'{_short(value)}'"
    return "something else"


def _short(text: str) -> str:
    """Return one printable line; a lone surrogate, as in a header that is not UTF-8, becomes a question mark."""
    line = " ".join(text[:QUOTE_SCAN_LENGTH].encode(errors="replace").decode().split())
    return line if len(line) <= QUOTE_LENGTH else f"{line[:QUOTE_LENGTH - 1]}…"


def _received_text(kind: str, given: object, field: str, nouns: Nouns) -> str:
    if kind == "string_pattern_mismatch" and isinstance(given, str):
        scheme, parted, _ = given.partition("://")
        return f"'{scheme[:QUOTE_LENGTH]}://…'" if parted and scheme.isalnum() else quote_value(given, field, nouns)
    if kind in ("string_too_long", "bytes_too_long"):
        return str(len(given)) if isinstance(given, str | bytes) else ""
    if kind == "string_too_short":
        return str(len(given)) if isinstance(given, str | bytes) and given else ""
    return quote_value(given, field, nouns)


# -- what was expected ------------------------------------------------------------------------------------------------

_Describe = Callable[[Mapping[str, object], Nouns], str]


def _must(*kinds: str, words: str) -> dict[str, _Describe]:
    def filled(context: Mapping[str, object], _: Nouns) -> str:
        return words.format(**{name: f"{limit:g}" if isinstance(limit, float) else limit
                               for name, limit in context.items()})

    return dict.fromkeys(kinds, filled)


def _listed(words: str) -> str:
    """Return the words of a list as JSON and YAML write them."""
    return re.sub(r"\b(True|False|None)\b(?!')", lambda found: _PLAIN[found[0]], words)


_PLAIN = {"True": "true", "False": "false", "None": "null"}


def _prefixes(pattern: str) -> str:
    """Describe a pattern that lists prefixes in words; return any other pattern as it is."""
    listed = re.fullmatch(r"\^(?:\((?P<several>[^()]*)\)|(?P<one>[A-Za-z:/?]+))", pattern)
    beginnings = (listed["several"] or listed["one"]).split("|") if listed else []
    plain = [word for one in beginnings for word in
             ([one.replace("s?", ""), one.replace("s?", "s")] if "s?" in one else [one])]
    if not plain or not all(re.fullmatch(r"[A-Za-z:/]+", word) for word in plain):
        return f"must fit the pattern {pattern}"
    return f"must begin with {_either(plain)}"


def _length(least: bool, noun: str) -> _Describe:
    def words(context: Mapping[str, object], _: Nouns) -> str:
        limit = context.get("min_length" if least else "max_length", 0)
        if least and limit == 1:
            return "must not be empty"
        return f"must have at {'least' if least else 'most'} {limit} {noun}{'' if limit == 1 else 's'}"

    return words


_OBJECTS = ("model_type", "model_attributes_type", "dataclass_type", "dataclass_exact_type", "dict_type",
            "mapping_type", "frozen_dict_type", "ordered_dict_type", "counter_type", "arguments_type")
_ARRAYS = ("list_type", "tuple_type", "set_type", "frozen_set_type", "deque_type", "iterable_type", "iteration_error",
           "named_tuple_type")
_EXPECTED: dict[str, _Describe] = {
    **dict.fromkeys(("missing", "missing_argument", "missing_keyword_only_argument",
                     "missing_positional_only_argument"), lambda context, nouns: nouns.missing),
    **dict.fromkeys(_OBJECTS, lambda context, nouns: f"must be {nouns.object}"),
    **dict.fromkeys(_ARRAYS, lambda context, nouns: f"must be {nouns.array}"),
    **dict.fromkeys(("literal_error", "enum"),
                    lambda context, nouns: f"must be {_listed(str(context.get('expected', '')))}"),
    **_must("string_type", "string_unicode", "string_sub_type", "bytes_type", words="must be a string"),
    **_must("int_type", "int_parsing", "int_from_float", words="must be a whole number"),
    **_must("int_parsing_size", words="must be a smaller number"),
    **_must("float_type", "float_parsing", "finite_number", "decimal_type", "decimal_parsing", "fraction_type",
            "fraction_parsing", "complex_type", "complex_str_parsing", words="must be a number"),
    **_must("decimal_max_digits", words="must have at most {max_digits} digits"),
    **_must("decimal_max_places", words="must have at most {decimal_places} decimal places"),
    **_must("decimal_whole_digits", words="must have at most {whole_digits} digits before the point"),
    **_must("bool_type", "bool_parsing", words="must be true or false"),
    **dict.fromkeys(("none_required",), lambda context, nouns: f"must be {nouns.null}"),
    **_must("greater_than", words="must be greater than {gt}"),
    **_must("greater_than_equal", words="must be at least {ge}"),
    **_must("less_than", words="must be less than {lt}"),
    **_must("less_than_equal", words="must be at most {le}"),
    **_must("multiple_of", words="must be a multiple of {multiple_of}"),
    "too_short": lambda context, nouns: _counted(context, nouns, least=True),
    "too_long": lambda context, nouns: _counted(context, nouns, least=False),
    "string_too_short": _length(True, "character"),
    "string_too_long": _length(False, "character"),
    "bytes_too_short": _length(True, "byte"),
    "bytes_too_long": _length(False, "byte"),
    "url_too_long": _length(False, "character"),
    "string_pattern_mismatch": lambda context, nouns: _prefixes(str(context.get("pattern", ""))),
    **_must("string_not_ascii", words="must have ASCII characters only"),
    **_must("bytes_invalid_encoding", words="must be {encoding}"),
    **_must("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact",
            words="must be a date, as 2031-01-31"),
    **_must("date_past", "datetime_past", words="must be in the past"),
    **_must("date_future", "datetime_future", words="must be in the future"),
    **_must("time_type", "time_parsing", words="must be a time, as 12:30:00"),
    **_must("datetime_type", "datetime_parsing", "datetime_object_invalid", "datetime_from_date_parsing",
            words="must be a time, as 2031-01-31T12:30:00Z"),
    **_must("timezone_naive", words="must have no time zone"),
    **_must("timezone_aware", "timezone_offset", words="must have a time zone"),
    **_must("time_delta_type", "time_delta_parsing", words="must be a duration, as PT30S"),
    **_must("url_type", "url_parsing", "url_syntax_violation", words="must be a URL"),
    **_must("url_scheme", words="must be a URL that begins with {expected_schemes}"),
    **_must("uuid_type", "uuid_parsing", "uuid_version", words="must be a UUID"),
    **_must("json_invalid", "json_type", words="must be JSON"),
    **_must("extra_forbidden", "unexpected_keyword_argument", "unexpected_positional_argument", words="is not known"),
    **_must("pattern_regex", "pattern_type", words="must be a regular expression"),
    **_must("path_type", words="must be a path"),
    **_must("invalid_key", words="must have strings as keys"),
    **_must("frozen_field", "frozen_instance", words="cannot be changed"),
    **_must("recursion_loop", "recursion_depth_exceeded", words="is nested too deep"),
}
_SILENT = frozenset((
    "missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument",
    "extra_forbidden", "unexpected_keyword_argument", "unexpected_positional_argument", "invalid_key", "frozen_field",
    "frozen_instance", "recursion_loop", "recursion_depth_exceeded", "too_short", "too_long", "json_invalid",
    "bytes_invalid_encoding", "date_past", "date_future", "datetime_past", "datetime_future",
))
"""Errors that do not quote the input: the input is correct, or the text says already what came."""
_FOREIGN = frozenset((
    "no_such_attribute", "needs_python_object", "get_attribute_error", "default_factory_not_called",
    "set_item_not_hashable", "missing_sentinel_error", "ellipsis_error", "is_instance_of", "is_subclass_of",
    "callable_type", "multiple_argument_values",
))
"""Errors about Python types, which mean nothing to clients."""


def _counted(context: Mapping[str, object], nouns: Nouns, *, least: bool) -> str:
    words = _length(least, "item")(context, nouns)
    came = context.get("actual_length")
    return words if came is None or words == "must not be empty" else f"{words}, not {came}"


# -- structs ----------------------------------------------------------------------------------------------------------

def describe_struct_error(error: Exception, nouns: Nouns = JSON_NOUNS) -> str:
    """Describe what msgspec found wrong with a struct."""
    words, _, at = str(error).partition(" - at ")
    path = re.sub(r"\[(\d+)\]", r".\1", at.strip("`").removeprefix("$").replace("[...]", ""))
    return str(FieldError(path.removeprefix("."), _struct_error_text(words, nouns)))


def _struct_error_text(words: str, nouns: Nouns) -> str:
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", words):
        return f"'{missing[1]}' is missing"
    if wrong := re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", words):
        kinds = [_kind(kind.strip(), nouns) for kind in wrong[1].split("|")]
        return f"must be {' or '.join(kinds)}, not {_kind(wrong[2], nouns)}"
    if short := re.fullmatch(r"Expected `(\w+)` of length >= (\d+)", words):
        return _length(True, "character" if short[1] == "str" else "item")({"min_length": int(short[2])}, nouns)
    if unknown := re.fullmatch(r"Invalid (?:enum )?value (.+)", words):
        return f"does not know {unknown[1]}"
    return f"{words[:1].lower()}{words[1:]}"


def _kind(word: str, nouns: Nouns) -> str:
    kinds = {"object": nouns.object, "array": nouns.array, "str": "a string", "int": "a whole number",
             "float": "a number", "bool": "true or false", "null": nouns.null}
    return kinds.get(word, word).partition(",")[0]
