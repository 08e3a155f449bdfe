"""Settings under names that they had before: each value is moved to where it belongs now, and a warning says so."""

from collections.abc import Iterator
from typing import Any

from gateway.yaml_positions import Problem, YamlDocument

from .access import LOOPBACK, WILDCARD
from .checks import is_loopback
from .settings import Config

OLD_ORIGIN_SETTINGS = ("cors", "origins")
"""What a dialect said of pages of other sites before there was one setting for all of them."""
TRUE_VALUES = (True, "true", "True", "on", "yes", "1", 1)


def move_deprecated_names(document: YamlDocument) -> list[Problem]:
    """One warning for each setting that was moved; the pages that it let in are let in by `origins:`."""
    warnings = list[Problem]()
    moved = list[Any]()
    for name, settings in _dialects(document):
        for old in [word for word in OLD_ORIGIN_SETTINGS if word in settings]:
            value = settings.pop(old)
            given = _origins(old, value)
            moved += given
            shown = ", ".join(f'"{origin}"' for origin in given)
            warnings.append(Problem(
                document.position(("dialects", name, old), key=True),
                f"'{old}' of a dialect is an old setting: `origins:` is for the whole server",
                f"remove it, and write `origins: [{shown}]` beside `host:`" if given else "remove it",
            ))
    if moved:
        _add_origins(document, moved)
    return warnings


def _dialects(document: YamlDocument) -> Iterator[tuple[str, dict[Any, Any]]]:
    dialects = document.value.get("dialects")
    for name, settings in dialects.items() if isinstance(dialects, dict) else ():
        if isinstance(settings, dict):
            yield name, settings


def _origins(old: str, value: Any) -> list[Any]:
    """What the value lets in: `cors` is yes or no, `origins` a list."""
    if old == "cors":
        return [WILDCARD] if value in TRUE_VALUES else []
    return value if isinstance(value, list) else [value] if value else []


def _add_origins(document: YamlDocument, moved: list[Any]) -> None:
    host = document.value.get("host", Config.model_fields["host"].default)
    before = document.value.get("origins")
    if before is None:
        before = [LOOPBACK] if is_loopback(str(host)) else []
    if isinstance(before, list):  # what has another shape is a problem that is told elsewhere
        document.value["origins"] = list(dict.fromkeys([*before, *moved]))
