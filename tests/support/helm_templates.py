"""Renders the part of Helm's templates that our chart uses; what it does not know is an error, never silence.

Known are: values (`.Values.a.b`), texts, `include`, `if`, `not`, `else`, `define`, and the functions in FUNCTIONS.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
WORD = re.compile(r'"[^"]*"|\S+')
Scope = dict[str, Any]


class UnknownTemplate(Exception):
    """The template uses something that is not known here, or a value that values.yaml does not have."""


def to_yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=True, default_flow_style=False).rstrip("\n")


def required(text: str, value: object) -> object:
    if not value:
        raise UnknownTemplate(f"required: {text}")
    return value


FUNCTIONS: dict[str, Callable[..., object]] = {
    "quote": lambda value: '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"',
    "nindent": lambda width, text: "\n" + "\n".join(f"{' ' * int(width)}{line}" for line in str(text).splitlines()),
    "toYaml": to_yaml,
    "sha256sum": lambda text: hashlib.sha256(str(text).encode()).hexdigest(),
    "default": lambda other, value: value or other,
    "required": required,
}


class Chart:
    """The templates of a folder, rendered with its values and those that a user gives."""

    def __init__(self, folder: Path, release: str = "mine") -> None:
        self._folder = folder
        self._defined: dict[str, list[Any]] = {}
        self.used: set[str] = set()
        chart = yaml.safe_load((folder / "Chart.yaml").read_text())
        self._scope: Scope = {
            "Values": yaml.safe_load((folder / "values.yaml").read_text()), "Release": {"Name": release},
            "Chart": {"Version": chart["version"], "AppVersion": chart["appVersion"]},
        }
        self._render(self._parsed("_helpers.tpl"))

    def documents(self, **values: object) -> dict[str, Any]:
        """Kind → object, of all templates."""
        self._scope["Values"] = _merged(self._scope["Values"], values)
        texts = [self._render(self._parsed(path.name)) for path in sorted((self._folder / "templates").glob("*.yaml"))]
        found = [document for text in texts if (document := yaml.safe_load(text)) is not None]
        assert len({one["kind"] for one in found}) == len(found), "one object of a kind"
        return {one["kind"]: one for one in found}

    # -- parsing: a list of texts, (expression,) and (keyword, expression, body, otherwise) -------------------------

    def _parsed(self, name: str) -> list[Any]:
        text, tokens, at = (self._folder / "templates" / name).read_text(), [], 0
        for found in ACTION.finditer(text):
            before = text[at:found.start()]
            tokens.append(before.rstrip() if found[1] else before)
            tokens.append((found[2],))
            at = found.end()
            if found[3]:
                at += len(text[at:]) - len(text[at:].lstrip())
        tokens.append(text[at:])
        body, rest = self._block(tokens)
        if rest:
            raise UnknownTemplate(f"{name}: an `end` without a beginning")
        return body

    def _block(self, tokens: list[Any]) -> tuple[list[Any], list[Any]]:
        body: list[Any] = []
        while tokens:
            token, tokens = tokens[0], tokens[1:]
            if isinstance(token, str):
                body.append(token)
                continue
            keyword, _, expression = token[0].partition(" ")
            if keyword in ("end", "else"):
                return body, [token, *tokens]
            if keyword not in ("if", "define"):
                body.append(token)
                continue
            inside, tokens = self._block(tokens)
            otherwise: list[Any] = []
            if tokens and tokens[0] == ("else",):
                otherwise, tokens = self._block(tokens[1:])
            if not tokens or tokens[0] != ("end",):
                raise UnknownTemplate(f"{token[0]}: no end")
            tokens = tokens[1:]
            body.append((keyword, expression, inside, otherwise))
        return body, []

    # -- rendering ------------------------------------------------------------------------------------------------

    def _render(self, body: list[Any]) -> str:
        return "".join(self._piece(piece) for piece in body)

    def _piece(self, piece: Any) -> str:
        if isinstance(piece, str):
            return piece
        if len(piece) == 1:
            value = self._value(piece[0])
            return str(value).lower() if isinstance(value, bool) else str(value)
        keyword, expression, inside, otherwise = piece
        if keyword == "define":
            self._defined[expression.strip('"')] = inside
            return ""
        return self._render(inside if self._value(expression) else otherwise)

    def _value(self, expression: str) -> Any:
        [first, *others] = expression.split(" | ")
        value = self._call(WORD.findall(first))
        for other in others:
            value = self._call(WORD.findall(other), value)
        return value

    def _call(self, words: list[str], *piped: object) -> Any:
        if words[0] == "include":
            return self._render(self._defined[words[1].strip('"')]).strip()
        if words[0] == "not":
            return not self._operand(words[1])
        if words[0] in FUNCTIONS:
            return FUNCTIONS[words[0]](*map(self._operand, words[1:]), *piped)
        if len(words) != 1 or piped:
            raise UnknownTemplate(f"not a function that is known here: {words[0]}")
        return self._operand(words[0])

    def _operand(self, word: str) -> Any:
        if not word.startswith((".", '"')):
            return word
        if word.startswith('"'):
            return word.strip('"')
        value: Any = self._scope
        for name in word[1:].split("."):
            if not isinstance(value, dict) or name not in value:
                raise UnknownTemplate(f"there is no value {word}")
            value = value[name]
        self.used.add(word)
        return value


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}}
