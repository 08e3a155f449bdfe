"""DRAGOMAN_* variables of the environment: DRAGOMAN_PORT, DRAGOMAN_LIMITS__TURN_SECONDS, or a group as JSON."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway.marks import Path_, nearest

from .settings import Config

PREFIX = "DRAGOMAN_"
RESERVED = frozenset(("config", "key"))
"""Variables of the command line: they name the config file and the key to ask with."""

Complaint = tuple[str, str, str]
"""The variable, what is wrong with it, and a hint."""


def variables(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[Path_, str], list[Complaint]]:
    """The settings that the environment makes, the variable behind each, and what is wrong with the variables."""
    names = {_path(name): name for name in environ if name.upper().startswith(PREFIX)}
    if not names:
        return {}, {}, []  # pydantic-settings takes a tenth of a second to import, and most starts need none of it
    complaints = list(_unknown(names))
    try:
        return _values(), names, complaints
    except ValueError as error:
        return {}, names, [*complaints, *_not_json(names, environ, error)]


def _path(name: str) -> Path_:
    return tuple(name[len(PREFIX):].lower().split("__"))


def _values() -> dict[str, Any]:
    from pydantic_settings import BaseSettings, EnvSettingsSource

    source = EnvSettingsSource(
        cast("type[BaseSettings]", Config), case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter="__",
    )
    return source()


def _unknown(names: Mapping[Path_, str]) -> Iterator[Complaint]:
    """Only what looks like a setting is a mistake: cluster managers set variables of their own in a service's name."""
    for path, name in names.items():
        head = str(path[0])
        if head not in Config.model_fields and head not in RESERVED and (hint := nearest(head, Config.model_fields)):
            yield name, f"there is no setting '{head}'", hint


def _not_json(names: Mapping[Path_, str], environ: Mapping[str, str], error: ValueError) -> Iterator[Complaint]:
    import orjson

    wrong = 0
    for path, name in names.items():
        if len(path) == 1 and path[0] in (_GROUPS | _LISTS):
            try:
                orjson.loads(environ[name])
            except ValueError as cause:
                wrong += 1
                if path[0] in _LISTS:
                    yield name, f"a list must be JSON: {cause}", f"""write it as {name}='["…", "…"]'"""
                else:
                    yield name, f"a whole group must be JSON: {cause}", f"or set one of it: {name}__…"
    if not wrong:
        yield PREFIX + "*", str(error), ""


_GROUPS = frozenset(("dialects", "agents", "mappings", "limits", "journal"))
_LISTS = frozenset(("hosts", "origins", "trusted_proxies"))
