"""What the clients of these tests say of themselves and answer, in words that every dialect can carry."""

from typing import Any

PAINT: dict[str, Any] = {
    "name": "paint", "description": "Paints.",
    "parameters": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
}
"""The tool that a client carries out itself."""
PAINTED = "painted"
TRUSTED, UNTRUSTED = ("clock", "search"), ("calc",)
"""The server's tools: those that may be used as they are, and those that are asked about."""
STAND_INS = ("AskUserQuestion", "confirm_continue", "choose_rollback")
"""Calls that stand for what a dialect has no words for: whoever cares to answer them knows them by these names."""

PICTURE = "data:image/png;base64,iVBORw0KGgo="
FILE = {"name": "notes.txt", "url": "https://files.example/notes.txt", "type": "text/plain"}
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
BEFORE = (("user", "My name is Ann."), ("assistant", "Hello, Ann."))
"""What a client can bring along: `images_in`, `files`, `structured_output`, `history_seed`."""


def in_words(asked: Any, kindly: bool) -> str:
    """How a person answers something that only a person can read: the first choice of each, or yes or no."""
    if "questions" in asked:
        return "; ".join(f"{one['header']}: {one['options'][0]['label']}" for one in asked["questions"])
    if "options" in asked:
        return str(asked["options"][0]["id"])
    return "yes" if kindly else "no"
