"""Section models: the list of models and its filters."""

from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.rest_answer import listed
from conformance.zenflux.run_contents import plain


async def _models(exam: ZenfluxExamination, **query: Any) -> list[dict[str, Any]]:
    return listed(await exam.get("/models", **query), "models")


@requirement("ZF-HTTP-3.8-01")
async def models_are_listed(exam: ZenfluxExamination) -> None:
    """GET /models lists models as objects, at least one."""
    expect.that(bool(await _models(exam)), "at least one model", [])


@requirement("ZF-HTTP-3.8-01")
async def models_are_filtered(exam: ZenfluxExamination) -> None:
    """type and provider narrow the list to the models that have them, and a made-up one to none."""
    whole = await _models(exam)
    for name in ("type", "provider"):
        values = {item[name] for item in whole if isinstance(item.get(name), str)}
        for value in sorted(values):
            wanted = sorted(plain(item) for item in whole if item.get(name) == value)
            found = sorted(plain(item) for item in await _models(exam, **{name: value}))
            expect.equal(f"the models of {name} {value}", wanted, found)
        if values:
            expect.equal(f"the models of no {name}", [], await _models(exam, **{name: f"none-{uuid4().hex}"}))
