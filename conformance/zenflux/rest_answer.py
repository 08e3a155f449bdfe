"""Answers of the REST API: a response inside its wrapper, successful or refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.http import Reply
from conformance.kit.schemas import Schemas

SUCCESS, ERROR = "ZF-GEN-03", "ZF-GEN-04"
"""Whose the wrappers of good answers and of errors are."""


@dataclass(frozen=True)
class Answer:
    """A reply whose body is the wrapper {code, message, data}, or is read as if it were."""

    reply: Reply
    body: Mapping[str, Any]
    owner: str | None = None
    """The requirement that the call itself is."""

    @property
    def code(self) -> int:
        return int(self.body["code"])

    @property
    def is_done(self) -> bool:
        """The code says 200, or repeats the status of the reply."""
        return 200 <= self.reply.status < 300 and self.code in (200, self.reply.status)

    def done(self, owner: str | None = None) -> Any:
        """The data of an answer that must be a success; the call itself demands it, unless somebody else does."""
        is_miscoded = 200 <= self.reply.status < 300 and 200 <= self.code < 300
        owner = SUCCESS if is_miscoded else owner or self.owner
        expect.that(self.is_done, f"{self.reply.asked} to succeed with code 200", self.reply.told, owner)
        return self.body["data"]

    def refused(self, why: str, owner: str | None = None) -> "Answer":
        """Expect an error of the client's; the specification fixes the code in the body, not the status."""
        is_error = 400 <= self.code < 500 and self.reply.status < 500
        what = f"{self.reply.asked} to be refused with a code of 4xx, because {why}"
        expect.that(is_error, what, self.reply.told, owner)
        return self

    def missing(self, why: str) -> "Answer":
        """Expect 404, in the status and in the body."""
        seen = [self.reply.status, self.code]
        owner = "G-ZF-23" if self.code == 404 else None
        expect.that(seen == [404, 404], f"{self.reply.asked} to be a 404, because {why}", self.reply.told, owner)
        return self


def wrapped(reply: Reply, schemas: Schemas) -> Answer:
    """The answer in a reply, whatever it says; failing unless it is wrapped."""
    body = reply.json()
    schemas.fit("wrapper", body, f"the body of the answer to {reply.asked}")
    return Answer(reply, body)


def read(reply: Reply, schemas: Schemas, departures: Departures, owner: str | None = None) -> Answer:
    """The answer in a reply; what is wrong with its wrapper is noted, and the rest is read as well as it can be."""
    try:
        body = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        body = None
        if reply.status < 400:
            expect.fail(f"the body of the answer to {reply.asked} to be JSON", reply.told, SUCCESS)
    told = body.get("code") if isinstance(body, dict) else None
    code: int = told if type(told) is int and 100 <= told < 600 else reply.status
    with departures.noting(ERROR if code >= 400 else SUCCESS):
        schemas.fit("wrapper", body, f"the body of the answer to {reply.asked}")
    laid_out = body if isinstance(body, dict) else {}
    data = laid_out.get("data", None if code >= 400 else body)
    return Answer(reply, {"message": "", **laid_out, "code": code, "data": data}, owner)


def listed(data: Any, *names: str, owner: str | None = None) -> list[dict[str, Any]]:
    """The objects in a list that is the data itself, or stands in it under one of these names."""
    if isinstance(data, dict):
        data = next((data[name] for name in names if isinstance(data.get(name), list)), None)
    is_list = isinstance(data, list) and all(isinstance(item, dict) for item in data)
    expect.that(is_list, f"a list of objects as data, or in data.{' or data.'.join(names)}", data, owner)
    return list(data or [])
