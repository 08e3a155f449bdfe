"""The tables of all dialects, loaded once for the tests."""

import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from adapters import known_dialects
from gateway.ports import Dialect
from mappings.language import SupportLevel, Table, Vocabulary, builtin_path, load_table

DIALECTS = known_dialects()
ALL_DIALECTS: dict[str, dict[str, object]] = {name: {} for name in DIALECTS}
"""What the settings of a server say that serves all dialects."""


@cache
def dialect(name: str) -> Dialect:
    found: Dialect = importlib.import_module(f"adapters.{name}").DIALECT
    return found


def vocabulary(name: str) -> Vocabulary:
    return Vocabulary.of(dialect(name))


@cache
def table(name: str) -> Table:
    return load_table(builtin_path(name), vocabulary(name))


def dialects_with_feature(feature: str) -> list[str]:
    """The dialects whose clients are told of this feature, in whatever form."""
    return [name for name in DIALECTS if table(name).client_support[feature] is not SupportLevel.DROPPED]


def load_once(path: Path | str, words: Vocabulary, overrides: Iterable[Path | str] = ()) -> Table:
    """`load_table`, but for the tables that come with the gateway, which are not read again for every gateway."""
    name, laid_over = Path(path).stem, list(overrides)
    ours = name in DIALECTS and path == builtin_path(name) and words == vocabulary(name)
    return table(name) if ours and not laid_over else load_table(path, words, laid_over)
