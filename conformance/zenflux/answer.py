"""Answers of the REST half: a reply inside its wrapper, done or refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.kit import expect
from conformance.kit.http import Reply
from conformance.kit.schemas import Schemas


@dataclass(frozen=True)
class Answer:
    """A reply whose body is the wrapper {code, message, data}."""

    reply: Reply
    body: Mapping[str, Any]

    @property
    def code(self) -> int:
        return int(self.body["code"])

    @property
    def is_done(self) -> bool:
        """The code says 200, or repeats the status of the reply."""
        return 200 <= self.reply.status < 300 and self.code in (200, self.reply.status)

    def done(self) -> Any:
        """The data of an answer that must be a success."""
        expect.that(self.is_done, f"{self.reply.asked} to succeed with code 200", self.reply.told)
        return self.body["data"]

    def refused(self, why: str) -> "Answer":
        """Expect an error of the client's; the specification fixes the code in the body, not the status."""
        is_error = 400 <= self.code < 500 and self.reply.status < 500
        expect.that(is_error, f"{self.reply.asked} to be refused with a code of 4xx, because {why}", self.reply.told)
        return self

    def missing(self, why: str) -> "Answer":
        """Expect 404, in the status and in the body."""
        seen = [self.reply.status, self.code]
        expect.that(seen == [404, 404], f"{self.reply.asked} to be a 404, because {why}", self.reply.told)
        return self


def wrapped(reply: Reply, schemas: Schemas) -> Answer:
    """The answer in a reply, whatever it says; failing unless it is wrapped."""
    body = reply.json()
    schemas.fit("wrapper", body, f"the body of the answer to {reply.asked}")
    return Answer(reply, body)


def listed(data: Any, *names: str) -> list[dict[str, Any]]:
    """The objects in a list that is the data itself, or stands in it under one of these names."""
    if isinstance(data, dict):
        data = next((data[name] for name in names if isinstance(data.get(name), list)), None)
    is_list = isinstance(data, list) and all(isinstance(item, dict) for item in data)
    expect.that(is_list, f"a list of objects as data, or in data.{' or data.'.join(names)}", data)
    return list(data or [])
