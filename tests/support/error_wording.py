"""What no refusal may say: words of the validator, names of classes, ids that only the gateway knows."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel

from tests.support.dialect_tables import DIALECTS

VALIDATOR_WORDS = (
    "Input should", "input should", "Value error", "Assertion failed", "discriminator", "instance of", "Field required",
    "dictionary", "valid string", "valid list", "valid integer", "Extra inputs", "nable to", "uRL", "pydantic",
    "NoneType", "Object missing", "Expected `", "String should", "List should", "not permitted", "function-",
)
INNER_IDS = re.compile(r"\b(scope|turn|cmd|req|blk|call)_[0-9a-f]{6,}")


@cache
def wire_models(dialect: str) -> tuple[type[BaseModel], ...]:
    """All models of what clients of the dialect send, and of its settings."""
    return tuple(sorted(_models(dialect), key=lambda model: model.__name__))


def _models(dialect: str) -> Iterator[type[BaseModel]]:
    wire = importlib.import_module(f"adapters.{dialect}.wire")
    parts = [found.name for found in pkgutil.iter_modules(getattr(wire, "__path__", ()), f"{wire.__name__}.")]
    for module in (wire, *map(importlib.import_module, parts)):
        yield from (one for one in vars(module).values() if isinstance(one, type)
                    and issubclass(one, BaseModel) and one.__module__ == module.__name__)


@cache
def class_names() -> re.Pattern[str]:
    """Names of two words or more: one word alone may be meant as that word."""
    names = {model.__name__ for dialect in DIALECTS for model in wire_models(dialect)}
    return re.compile(r"\b(" + "|".join(name for name in names if re.search(r"[a-z][A-Z]", name)) + r")\b")


def unfit_words(text: str) -> list[str]:
    """What of a text is not fit for the reader of a refusal."""
    found = [word for word in VALIDATOR_WORDS if word in text]
    return found + [match[0] for pattern in (INNER_IDS, class_names()) for match in pattern.finditer(text)]
