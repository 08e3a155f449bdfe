"""Formats a record as one line for people."""

from datetime import UTC, datetime

import msgspec
import orjson

import gateway.model as m

MAX_VALUE_LENGTH = 160
"""The number of characters that are shown of one value."""


def format_record(record: m.Record) -> str:
    """Return `seq  time  event  fields`; the scope of a sub-agent stands before the event."""
    event = record.event
    name = f"{event.name}.{event.variant}" if event.variant else event.name
    scope = "" if record.scope_id == m.ROOT else f"[{record.scope_id}] "
    at = datetime.fromtimestamp(record.at, UTC).strftime("%H:%M:%S.%f")[:-3]
    return f"{record.seq:>6}  {at}  {printable(scope + name):<28}  {_rest(record)}".rstrip()


def _rest(record: m.Record) -> str:
    fields = {name: value for name, value in msgspec.to_builtins(record.event).items() if name != "type"}
    if record.turn_id is not None:
        fields["turn"] = record.turn_id
    return " ".join(f"{name}={_short(value)}" for name, value in fields.items())


def _short(value: object) -> str:
    text = value if isinstance(value, str) and value and " " not in value else orjson.dumps(value).decode()
    text = printable(text)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}… ({len(text)} characters)"


def printable(text: str) -> str:
    """Replace control characters, so that foreign text cannot move the cursor or colour the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
