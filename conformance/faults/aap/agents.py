"""The agents of the AAP reference server: one that can do everything, and one that declares nothing."""

from typing import Any

from aiohttp import web

from conformance.faults.aap.state import Session
from conformance.faults.refusal import Refusal
from conformance.faults.script import SERVER_TOOLS

LEAF: dict[str, Any] = {}
TOOLS = [
    {"name": name, "description": f"The server's {name}.", "parameters": {"type": "object", "properties": {}}}
    for name in SERVER_TOOLS
]
OPTIONS: list[dict[str, Any]] = [
    {"type": "text", "name": "tone", "title": "Tone", "default": "friendly"},
    {"type": "secret", "name": "api_key", "default": ""},
    {"type": "select", "name": "language", "options": ["en", "zh", "de"], "default": "en"},
]
CAPABILITIES: dict[str, Any] = {
    "history": {"compacted": LEAF, "full": LEAF},
    "stream": {"delta": LEAF, "message": LEAF, "none": LEAF},
    "application": {"tools": LEAF},
    "image": {"data": LEAF},
}


class Agents:
    """The agents that the server describes."""

    def agents(self) -> list[dict[str, Any]]:
        able = {"name": "able", "title": "Able", "version": "1.0.0", "tools": TOOLS, "options": OPTIONS}
        return [able | {"capabilities": CAPABILITIES}, {"name": "plain", "version": "0.1.0-beta.1"}]

    def agent(self, name: str) -> dict[str, Any]:
        for agent in self.agents():
            if agent["name"] == name:
                return agent
        raise Refusal(400, f"there is no agent named {name!r}")

    def declared(self, name: str, feature: str) -> set[str]:
        """What the agent declares of one feature."""
        return set(self.agent(name).get("capabilities", {}).get(feature, {}))

    def defaults(self, agent: str) -> dict[str, str]:
        return {option["name"]: option["default"] for option in self.agent(agent).get("options", [])}

    def secrets(self, session: Session) -> set[str]:
        options = self.agent(session.agent).get("options", [])
        return {option["name"] for option in options if option["type"] == "secret"}

    def meta(self) -> dict[str, Any]:
        return {"version": 3, "agents": self.agents()}

    async def get_meta(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.meta())
