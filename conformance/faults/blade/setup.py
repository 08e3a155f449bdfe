"""How Blade servers are made for the kill matrix."""

from typing import Any

from conformance.faults.blade.every import FAULTS
from conformance.faults.blade.liberties import LIBERTIES
from conformance.faults.blade.reference import BladeServer
from conformance.faults.kill.setups import Setup


def _name(name: str, json: Any) -> str:
    """A patch is named after its kind."""
    kind = json.get("patch_type") if name == "turn:patch" and isinstance(json, dict) else None
    is_whole = kind == "add_content" and "text_delta" not in json["data"]
    return f"{name}({kind}{', whole' if is_whole else ''})" if kind else name


SETUP = Setup(server_type=BladeServer, faults=FAULTS, liberties=LIBERTIES, naming=_name)
