"""The environment variables of a session: read from one string, each rule a refusal that names the variable."""

import re

from gateway.errors import Invalid

FIELD = "environment_variables"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST, MOST_OF_ONE, MOST_OF_ALL = 64, 8 * 1024, 64 * 1024
RESERVED = ("SERVER_ENDPOINT", "USER_ID", "WORK_DIR")
RESERVED_PREFIXES = ("CAW_", "QODER_")


def variables_of(given: str | dict[str, str] | None) -> dict[str, str]:
    """`KEY=VALUE` parted by `;` or newline, or an object, as names and values; a name given twice keeps its last."""
    if isinstance(given, str) and len(given) > 2 * MOST_OF_ALL:
        raise _refusal(f"names and values together may have {MOST_OF_ALL} bytes, and these are {len(given)} characters")
    variables = dict(_entry(entry) for entry in _entries(given)) if isinstance(given, str) else dict(given or {})
    for name, value in variables.items():
        _check(name, value)
    if len(variables) > MOST:
        past = [*variables][MOST]
        raise _refusal(f"{len(variables)} variables, of which {MOST} are allowed; '{past}' is one too many")
    total = 0
    for name, value in variables.items():
        total += _size(name) + _size(value)
        if total > MOST_OF_ALL:
            raise _refusal(f"names and values together may have {MOST_OF_ALL} bytes; '{name}' goes beyond that")
    return variables


def refuse_variables(variables: dict[str, str]) -> None:
    """A self-hosted environment sets its own."""
    if variables:
        raise _refusal(f"a self-hosted environment does not support variables, such as '{next(iter(variables))}'")


def _entries(given: str) -> list[str]:
    return [entry for entry in re.split(r"[;\n]", given) if entry.strip()]


def _entry(entry: str) -> tuple[str, str]:
    name, equals, value = entry.removesuffix("\r").lstrip().partition("=")
    if not equals:
        raise _refusal(f"'{_short(name.strip())}' has no value; write KEY=VALUE")
    return name, value


def _check(name: str, value: str) -> None:
    if not NAME.fullmatch(name):
        raise _refusal(f"'{_short(name)}' is not a name: letters, digits and '_', not beginning with a digit")
    if name in RESERVED:
        raise _refusal(f"'{name}' is reserved")
    if name.startswith(RESERVED_PREFIXES):
        raise _refusal(f"'{_short(name)}' begins with a reserved prefix: {', '.join(RESERVED_PREFIXES)}")
    if "\0" in value:
        raise _refusal(f"the value of '{_short(name)}' has a character that no variable can have")
    if _size(value) > MOST_OF_ONE:
        raise _refusal(f"the value of '{_short(name)}' has {_size(value)} bytes, of which {MOST_OF_ONE} are allowed")


def _size(text: str) -> int:
    return len(text.encode())


def _short(name: str) -> str:
    return name if len(name) <= 64 else f"{name[:64]}…"


def _refusal(why: str) -> Invalid:
    return Invalid(f"{FIELD}: {why}", param=FIELD)
