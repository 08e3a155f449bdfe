"""Shapes: rules made from a table of routes, the status each succeeds with, and the schema of what it answers."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Check, Rule, rule

NO_BODY = "-"


class Fitting(Protocol):
    """What holds bodies to schemas."""

    def fit(self, name: str, value: Any, what: str) -> None:
        """Fail unless the value fits the schema of this name."""


def shaped(schemas: Fitting, table: str) -> tuple[Rule, ...]:
    """One rule for each line of the table: METHOD /path STATUS[,STATUS] SCHEMA ID[,ID]."""
    rows = [line.split() for line in table.strip().splitlines()]
    fixed = frozenset(f"{row[0]} {row[1]}" for row in rows if "{}" not in row[1])
    return tuple(_rule(schemas, fixed, *row) for row in rows)


def _rule(
    schemas: Fitting, fixed: frozenset[str], method: str, path: str, statuses: str, schema: str, ids: str
) -> Rule:
    route, wanted = f"{method} {path}", [int(status) for status in statuses.split(",")]
    check = _check(schemas, route, fixed - {route}, wanted, schema)
    check.__name__ = re.sub(r"\W+", "_", route.lower().replace("{}", "one")).strip("_")
    check.__doc__ = f"{route} that succeeds is answered with {statuses}" + (
        "." if schema == NO_BODY else f" and a body that fits `{schema}`."
    )
    return rule(*ids.split(","), needs=f"answer to {route}")(check)


def _check(schemas: Fitting, route: str, fixed: frozenset[str], wanted: list[int], schema: str) -> Check:
    """Names that are routes of their own are not taken for ids."""

    def check(view: Any) -> Iterator[Exchange | str]:
        for item, _ in view.recording.of(route):
            if item.is_done and not item.is_stream and f"{item.method} {item.path}" not in fixed:
                yield item
                expect.status(item.reply, *wanted)
                if schema != NO_BODY:
                    schemas.fit(schema, item.reply.json(), f"the answer to {item.asked}")

    check.__module__ = "shapes"
    return check
