"""Checks every JSON response of a gateway against the OpenAPI document: a test fails if one does not fit.

Only the operations that are called are described, each once for all tests, so that this costs little.
"""

from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from gateway.api_documents import openapi_document
from gateway.api_documents.route_groups import ServedOperation
from gateway.app import Gateway
from tests.support.api_documents import JSON, DocumentChecker

Place = tuple[str, str]
"""A method and a path of the document."""
_CHECKERS: dict[tuple[object, Place], tuple[DocumentChecker, Place]] = {}
"""By table, or by the name of a group that has none, and by the place below the mount."""


def check_responses(gateway: Gateway) -> list[str]:
    """From now on, collect what does not fit; the list grows while requests are answered."""
    problems: list[str] = []
    operations: dict[Place, ServedOperation] = {}

    async def check(request: web.Request, response: web.StreamResponse) -> None:
        resource = request.match_info.route.resource
        if resource is None or not isinstance(response, web.Response) or response.content_type != JSON:
            return
        if not operations:
            operations.update(_operations_by_place(gateway))
        place = (request.method.lower(), resource.canonical)
        if isinstance(response.body, bytes) and place in operations:
            checker, known = _checker(operations[place], place, gateway)
            found = checker.response(*known, response.status, JSON, response.body)
            problems.extend(f"{' '.join(place)} {response.status}: {problem}" for problem in found)

    gateway.web.on_response_prepare.append(check)
    return problems


def _operations_by_place(gateway: Gateway) -> Mapping[Place, ServedOperation]:
    found: dict[Place, ServedOperation] = {}
    for group in gateway.route_groups():
        for one in group.operations():
            found.setdefault((one.method, one.path), one)
    return found


def _checker(operation: ServedOperation, place: Place, gateway: Gateway) -> tuple[DocumentChecker, Place]:
    """What judges the responses of one operation: a document of a group that has nothing else."""
    (method, path), group = place, operation.group
    mount = gateway.contexts[group.name].mount if group.table is not None else ""
    key = (group.table or group.name, (method, path.removeprefix(mount)))
    if key not in _CHECKERS:
        document = openapi_document([replace(group, routes=[operation.route])], "")
        _CHECKERS[key] = DocumentChecker(document, {"channels": {}, "components": {"schemas": {}}}), place
    return _CHECKERS[key]
