"""How Blade servers are made for the kill matrix."""

from typing import Any

from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.variations import VARIATIONS
from conformance.faults.kill.setups import Setup


def _name(name: str, json: Any) -> str:
    """A patch is named after its kind."""
    kind = json.get("patch_type") if name == "turn:patch" and isinstance(json, dict) else None
    is_whole = kind == "add_content" and "text_delta" not in json["data"]
    return f"{name}({kind}{', whole' if is_whole else ''})" if kind else name


SETUP = Setup(dialect="blade", server_type=BladeServer, variations=VARIATIONS, naming=_name)
