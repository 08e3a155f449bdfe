"""Missing features: optional parts of the protocol that a server lacks, as its profile says or its routes show."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
from pydantic import BaseModel

from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient
from conformance.kit.proxy import proxy_for
from conformance.kit.requirement import Catalogue, Feature
from conformance.kit.transcript import Transcript
from conformance.kit.wait_limits import ANSWER

if TYPE_CHECKING:
    from conformance.kit.suite import Target

ABSENT = (404, 501)
Without = tuple[str, ...]
"""The member `without` of a profile: names of features."""


def without(profile: BaseModel) -> dict[str, str]:
    """The features that the profile lists under `without`, each with this reason."""
    return {name: f"the profile says that the server does without {name}" for name in getattr(profile, "without", ())}


def unoffered(catalogue: Catalogue, missing: Mapping[str, str]) -> dict[str, str]:
    """The requirements of missing features, each with the reason."""
    told = [(feature, missing[name]) for name, feature in catalogue.features.items() if name in missing]
    return {item.id: why for feature, why in reversed(told) for item in catalogue.requirements if feature.has(item)}


def as_offered(profile: BaseModel, catalogue: Catalogue, missing: Mapping[str, str]) -> BaseModel:
    """The profile without the situations that missing features would bring about."""
    names = {name for feature in missing for name in catalogue.features[feature].situations}
    return _emptied(profile, names)


def _emptied(part: BaseModel, names: Collection[str]) -> BaseModel:
    changed: dict[str, Any] = {name: None for name in type(part).model_fields if name in names}
    if isinstance(prompts := getattr(part, "prompts", None), BaseModel):
        changed["prompts"] = _emptied(prompts, names)
    return part.model_copy(update=changed)


async def missing(catalogue: Catalogue, target: "Target") -> dict[str, str]:
    """The features none of whose routes the server has, each with the server's answers."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, proxy=proxy_for(target.url)) as session:
        client = HttpClient(session, target.url.rstrip("/"), Transcript(), target.key, target.timeout)
        client.moved = target.moved
        looked: dict[str, Sequence[str]] = {}
        with suppress(Unanswered):  # a server that answers nothing says nothing of its parts
            for name, feature in catalogue.features.items():
                looked[name] = await _answers(client, feature)
    return {name: "; ".join(answers) for name, answers in looked.items() if answers}


async def _answers(client: HttpClient, feature: Feature) -> Sequence[str]:
    """The answer of each route if the feature is missing; nothing if it is there, or if nobody can tell."""
    found = []
    for route in feature.routes:
        method, _, path = route.partition(" ")
        try:
            with client.waits.goal(ANSWER):
                reply = await client.ask(method, path)
        except Unanswered:
            raise
        except Failed:
            return ()
        if reply.status not in ABSENT:
            return ()
        found.append(f"{route} is answered with {reply.status}")
    return found
