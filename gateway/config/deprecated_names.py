"""Old names of settings work: each value moves to its new name, and a warning gives file, line and new name."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.json_values import JsonValue
from gateway.yaml_positions import NodePath, Problem, YamlDocument

from .access import LOOPBACK, WILDCARD
from .checks import is_loopback
from .settings import Config


class NewName(NamedTuple):
    """The new name of a setting at the same level, and the first release that does not know the old one."""

    name: str
    removed_in: str


RENAMED_SETTINGS: dict[NodePath, NewName] = {
    ("journal",): NewName("logging", "0.3.0"),
    ("limits", "sessions_at_hand"): NewName("cached_sessions", "0.3.0"),
    ("shadow", "at_once"): NewName("max_concurrent", "0.3.0"),
    ("shadow", "seconds"): NewName("timeout_seconds", "0.3.0"),
}
"""By the path of each old name. docs/upgrading.md lists them."""
OLD_ORIGIN_SETTINGS = {"cors": "0.3.0", "origins": "0.3.0"}
"""Settings of a dialect that `origins:` of the server replaced, and the first release that does not know them."""
NOT_BEFORE = {"0.3.0": "2027-05-01"}
"""By release: it is not made before this day, so that there is time to change settings."""
TRUE_VALUES = (True, "true", "True", "on", "yes", "1", 1)


def rename_settings(document: YamlDocument) -> list[Problem]:
    """Move values from old names to new ones; return a warning for each. Both names together are a problem."""
    warnings = list[Problem]()
    for old, (name, removed_in) in RENAMED_SETTINGS.items():
        group, new = _group(document, old[:-1]), (*old[:-1], name)
        if old[-1] not in group:
            continue
        position = document.position(old, key=True)
        if name in group:
            text = f"'{_dotted(old)}' is the old name of '{_dotted(new)}', and both are set"
            document.problems.append(Problem(position, text, "remove the old one"))
            del group[old[-1]]
        else:
            warnings.append(Problem(
                position, f"'{_dotted(old)}' is an old name, to be removed in {_release(removed_in)}",
                f"use '{_dotted(new)}', which means the same",
            ))
            group[name] = group.pop(old[-1])
            document.move_positions(old, new)
    return warnings


def _release(version: str) -> str:
    return f"{version} (not before {NOT_BEFORE[version]})"


def _group(document: YamlDocument, path: NodePath) -> dict[JsonValue, JsonValue]:
    group = document.value
    for step in path:
        group = group.get(step) if isinstance(group, dict) else None
    return group if isinstance(group, dict) else {}


def _dotted(path: NodePath) -> str:
    return ".".join(map(str, path))


def move_origin_settings(document: YamlDocument) -> list[Problem]:
    """Add what `cors` and `origins` of the dialects allow to `origins:` of the server; return a warning for each."""
    warnings = list[Problem]()
    moved = list[JsonValue]()
    for name, settings in _dialects(document):
        for old in [word for word in OLD_ORIGIN_SETTINGS if word in settings]:
            value = settings.pop(old)
            given = _origins(old, value)
            moved += given
            shown = ", ".join(f'"{origin}"' for origin in given)
            warnings.append(Problem(
                document.position(("dialects", name, old), key=True),
                f"'{old}' of a dialect is an old setting, to be removed in {_release(OLD_ORIGIN_SETTINGS[old])}: "
                "`origins:` is for the whole server",
                f"remove it, and write `origins: [{shown}]` beside `host:`" if given else "remove it",
            ))
    if moved:
        _add_origins(document, moved)
    return warnings


def _dialects(document: YamlDocument) -> Iterator[tuple[str, dict[JsonValue, JsonValue]]]:
    dialects = document.value.get("dialects")
    for name, settings in dialects.items() if isinstance(dialects, dict) else ():
        if isinstance(settings, dict):
            yield name, settings


def _origins(old: str, value: JsonValue) -> list[JsonValue]:
    """Return the origins that the value allows: `cors` is yes or no, `origins` is a list."""
    if old == "cors":
        return [WILDCARD] if value in TRUE_VALUES else []
    return value if isinstance(value, list) else [value] if value else []


def _add_origins(document: YamlDocument, moved: list[JsonValue]) -> None:
    host = document.value.get("host", Config.model_fields["host"].default)
    before = document.value.get("origins")
    if before is None:
        before = [LOOPBACK] if is_loopback(str(host)) else []
    if isinstance(before, list):  # validation reports a value of another type
        document.value["origins"] = list(dict.fromkeys([*before, *moved]))
