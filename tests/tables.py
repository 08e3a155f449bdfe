"""The tables of all dialects, loaded once for the tests."""

import importlib
from functools import cache

from adapters import known_dialects
from gateway.ports import Dialect
from mappings.language import Table, Vocabulary, builtin_path, load_table

DIALECTS = known_dialects()


@cache
def dialect(name: str) -> Dialect:
    found: Dialect = importlib.import_module(f"adapters.{name}").DIALECT
    return found


def vocabulary(name: str) -> Vocabulary:
    its = dialect(name)
    return Vocabulary(cues=its.cues, names=its.names, messages=its.messages, objects=its.objects)


@cache
def table(name: str) -> Table:
    return load_table(builtin_path(name), vocabulary(name))
