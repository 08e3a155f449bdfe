"""Servers that describe their agents wrongly."""

from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel

from conformance.faults.desk import CAPABILITIES, OPTIONS, TOOLS
from conformance.faults.fault import fault
from conformance.faults.ledger import Session
from conformance.faults.reference import ReferenceServer

DESCRIBED = "meta.options_are_described"
SCHEMA = "meta.a_client_tool_needs_a_schema"


class _Meta(ReferenceServer):
    """Changes what /meta shows of the first agent, and nothing else."""

    def changed(self) -> dict[str, Any]:
        return {}

    def meta(self) -> dict[str, Any]:
        first, *others = self.agents()
        return {"version": 3, "agents": [first | self.changed(), *others]}


@fault("AAP-META-01", cases="meta.meta_is_version_three")
class VersionAsText(ReferenceServer):
    """The version is a string."""

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"version": "3"}


@fault("AAP-META-01", cases="meta.meta_is_version_three")
class VersionAsFraction(ReferenceServer):
    """The version is 3.0."""

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"version": 3.0}


@fault("AAP-META-01", cases="meta.meta_is_version_three")
class OlderVersion(ReferenceServer):
    """The version is 2."""

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"version": 2}


@fault("AAP-META-02", cases="meta.agents_are_described")
class AgentsShareAName(ReferenceServer):
    """Two agents have one name."""

    def agents(self) -> list[dict[str, Any]]:
        able, plain = super().agents()
        return [able, plain | {"name": able["name"]}]


@fault("AAP-META-02", cases="meta.agents_are_described")
class LooseAgentVersion(_Meta):
    """An agent's version is not semantic."""

    def changed(self) -> dict[str, Any]:
        return {"version": "v1"}


@fault("AAP-META-03", cases=DESCRIBED)
class OptionWithoutDefault(_Meta):
    """An option has no default."""

    def changed(self) -> dict[str, Any]:
        return {"options": [{"type": "text", "name": "tone"}, *OPTIONS[1:]]}


@fault("AAP-META-03", cases=DESCRIBED)
class OptionOfUnknownType(_Meta):
    """An option is a number."""

    def changed(self) -> dict[str, Any]:
        return {"options": [*OPTIONS, {"type": "number", "name": "heat", "default": "1"}]}


@fault("AAP-META-03", cases=DESCRIBED)
class DefaultNotListed(_Meta):
    """The default of a select cannot be chosen."""

    def changed(self) -> dict[str, Any]:
        return {"options": [*OPTIONS[:2], OPTIONS[2] | {"default": "fr"}]}


@fault("AAP-META-04", cases="meta.capabilities_are_empty_objects")
class CapabilitiesAsBooleans(_Meta):
    """Capabilities are true instead of {}."""

    def changed(self) -> dict[str, Any]:
        return {"capabilities": CAPABILITIES | {"stream": {"delta": True, "message": True, "none": True}}}


@fault("AAP-META-04", cases="meta.what_is_declared_is_supported")
class HollowDeclaration(ReferenceServer):
    """An agent declares a history it does not have."""

    def meta(self) -> dict[str, Any]:
        able, plain = self.agents()
        return {"version": 3, "agents": [able, plain | {"capabilities": {"history": {"full": {}}}}]}


@fault("AAP-META-05", cases="meta.tools_are_described")
class ToolWithoutParameters(_Meta):
    """A tool says nothing of its parameters."""

    def changed(self) -> dict[str, Any]:
        return {"tools": [{"name": "clock", "description": "A clock."}, *TOOLS[1:]]}


@fault("AAP-META-05", cases="meta.tools_are_described")
class ParametersWithoutSchema(_Meta):
    """A tool's parameters are an object, but not a JSON Schema."""

    def changed(self) -> dict[str, Any]:
        return {"tools": [TOOLS[0] | {"parameters": {"type": "whatever"}}, *TOOLS[1:]]}


@fault("AAP-META-05", cases=SCHEMA)
class SchemasUnread(ReferenceServer):
    """The parameters of a client tool may be any object."""

    def check_schemas(self, session: Session) -> None:
        return None


@fault("AAP-META-05", cases=SCHEMA)
class ToolsInAHurry(ReferenceServer):
    """A client tool without a description is taken, with an empty one."""

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        body = orjson.loads(await request.read())
        if isinstance(body, dict) and isinstance(body.get("tools"), list):
            body["tools"] = [{"description": "", **tool} for tool in body["tools"]]
            return model.model_validate(body)
        return await super().read(request, model)
