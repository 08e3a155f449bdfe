"""Values that nobody expects: made from the schema of a wire model, then spoiled."""

import json
import string
from collections import deque
from collections.abc import Iterable
from random import Random
from typing import Any

import orjson

WORDS = (
    "", " ", "0", "-1", "null", "true", "hello", "demo", "/think /tool", "/ask", "*", "..", "../../etc/passwd", "%00",
    "\x00", "\ufeff", "é" * 3, "中文", "🙂", "\u202e", "<script>", "'; --", "a/b", "a\\b", "$ref", "__proto__",
    "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "now",
    "* * * * *", "0 0 30 2 *", "http://127.0.0.1:1/", "file:///etc/passwd", "data:image/png;base64,AA==", "1" * 5000,
    "x" * 300, "x" * 70_000, "NaN", "1e999", "-0", "0x10", "١٢", "²", "bzE", "YTE", "bzk5OTk5OTk5OTk5OTk5OTk5OTk5",
)
NUMBERS = (
    0, 1, -1, 2, 100, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.0, -0.0, 0.5, 1e308, -1e308, 1e-320,
)
SPOILS: tuple[Any, ...] = (
    None, True, False, [], {}, "", 0, [[]], [None], {"": None}, [1, "a", {}], {"type": "text"}, {"type": []},
)
USUAL: dict[str, tuple[str, ...]] = {
    "agent": ("demo",), "name": ("demo", "new"), "agent_id": ("demo",), "solution_id": ("demo",), "user_id": ("local",),
    "cron": ("0 9 * * *", "*/5 * * * *"), "timezone": ("UTC", "Asia/Shanghai"), "expires_at": ("2036-01-01T00:00:00Z",),
    "message": ("hello", "/tool add", "/ask", "/think"), "content": ("hello",), "text": ("hello", "/tool add"),
    "title": ("new",), "prompt": ("hello",), "path": ("/a.txt",), "new_name": ("b.txt",), "destination": ("c.txt",),
    "role": ("user",), "media_type": ("text/plain",), "url": ("https://example.com/a.png",),
}
"""What fields of these names usually have: without them few requests would be taken."""
ALIKE = {"conv": "sess", "turn": "sess", "repl": "sess"}
"""Words of paths behind which ids of another word stand: a session has several names."""
DEPTH = 6


class KnownIds:
    """Ids that the server has given, by the words of the paths at which it gave them."""

    def __init__(self, most: int = 40) -> None:
        self._most = most
        self._all: deque[str] = deque(["demo"], most)
        self._by_word: dict[str, deque[str]] = {}

    def add(self, path: str, ids: Iterable[str]) -> None:
        """Keep them by the last word of the path that is none of them, and by their own beginnings."""
        words = [word for word in path.partition("?")[0].split("/") if word.replace("_", "").replace("-", "").isalpha()]
        for found in ids:
            self._all.append(found)
            for word in {words[-1][:4] if words else "", found[:4]}:
                self._by_word.setdefault(word, deque(maxlen=self._most)).append(found)

    def choose(self, chance: Random, word: str = "") -> str:
        start = ALIKE.get(word[:4], word[:4])
        return chance.choice(self._by_word.get(start) or self._all)


class ValueMaker:
    """Makes values of one chance; `known` are ids that the server has given."""

    def __init__(self, chance: Random, known: KnownIds) -> None:
        self.chance = chance
        self._known = known

    def word(self) -> str:
        kind = self.chance.random()
        if kind < 0.35:
            return self._known.choose(self.chance)
        if kind < 0.85:
            return self.chance.choice(WORDS)
        return "".join(self.chance.choices(string.printable + "éß中🙂\x00\x7f", k=self.chance.randrange(40)))

    def id_of(self, word: str) -> str:
        """What may stand behind that word in a path: two times of three an id that stood there before."""
        return self._known.choose(self.chance, word) if self.chance.random() < 0.7 else self.word()

    def anything(self, depth: int = 3) -> Any:
        kind = self.chance.randrange(8 if depth else 5)
        if kind < 2:
            return self.word()
        if kind == 2:
            return self.chance.choice(NUMBERS)
        if kind < 5:
            return self.chance.choice(SPOILS)
        if kind == 5:
            return [self.anything(depth - 1) for _ in range(self.chance.randrange(4))]
        return {self.word()[:40]: self.anything(depth - 1) for _ in range(self.chance.randrange(4))}

    # -- from a schema ----------------------------------------------------------------------------------------------

    def of(self, schema: dict[str, Any]) -> Any:
        return self._of(schema, schema.get("$defs", {}), DEPTH)

    def _of(self, schema: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
        if "$ref" in schema:
            return self._of(known[schema["$ref"].rpartition("/")[2]], known, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self._of(self.chance.choice(schema[choice]), known, depth - 1)
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, known, depth)
        if kind == "array":
            count = self.chance.randrange(3) if depth > 0 else 0
            return [self._of(schema.get("items", {}), known, depth - 1) for _ in range(count)]
        return self._plain(str(kind), schema)

    def _object(self, schema: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
        fields, required = schema.get("properties", {}), schema.get("required", ())
        made = {name: self._field(name, inner, known, depth) for name, inner in fields.items()
                if name in required or (depth > 0 and self.chance.random() < 0.5)}
        if not fields and depth > 0 and self.chance.random() < 0.5:
            made = {self.word()[:40]: self.anything(2)}
        return made

    def _field(self, name: str, schema: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
        may_be_text = any(choice.get("type", "string") == "string" for choice in schema.get("anyOf", [schema]))
        if may_be_text and self.chance.random() < 0.7:
            if name in USUAL:
                return self.chance.choice(USUAL[name])
            if name.endswith("_id"):
                return self._known.choose(self.chance, name)
        return self._of(schema, known, depth - 1)

    def _plain(self, kind: str, schema: dict[str, Any]) -> Any:
        if kind == "string":
            most = schema.get("maxLength", 10**6)
            return (self.word() or "x" * schema.get("minLength", 0))[:most]
        if kind in ("integer", "number"):
            return self.chance.choice((schema.get("minimum", 0), schema.get("maximum", 7), self.chance.randrange(100)))
        if kind == "boolean":
            return self.chance.random() < 0.5
        return None if kind == "null" else self.anything(2)

    # -- spoiled ----------------------------------------------------------------------------------------------------

    def spoiled(self, value: Any) -> Any:
        """The same with one place changed."""
        if isinstance(value, dict) and value and self.chance.random() < 0.8:
            name = self.chance.choice(list(value))
            kind = self.chance.randrange(4)
            if kind == 0:
                return {key: inner for key, inner in value.items() if key != name}
            if kind == 1:
                return {**value, self.word()[:40]: self.anything()}
            return {**value, name: self.spoiled(value[name])}
        if isinstance(value, list) and value and self.chance.random() < 0.8:
            at = self.chance.randrange(len(value))
            return [*value[:at], self.spoiled(value[at]), *value[at + self.chance.randrange(2):]]
        return self.anything()

    def encoded(self, value: Any) -> bytes:
        """JSON, now and then broken or not what JSON says of itself."""
        try:
            whole = orjson.dumps(value)
        except TypeError:  # integers that it does not write
            whole = json.dumps(value).encode()
        kind = self.chance.randrange(40)
        if kind == 0:
            return whole[:self.chance.randrange(len(whole) + 1)]
        if kind == 1:
            at = self.chance.randrange(len(whole) + 1)
            return whole[:at] + bytes([self.chance.randrange(256)]) + whole[at:]
        odd = {
            2: b"\xef\xbb\xbf" + whole, 3: whole.decode().encode("utf-16"), 4: b"[" * 3000 + b"]" * 3000, 5: b"",
            6: b'{"a":' * 500 + b"1" + b"}" * 500, 7: b"\xff\xfe", 8: whole + whole, 9: b"NaN", 10: b'"\\ud800"',
            11: b"[" + b"1," * 20_000 + b"1]", 12: b"null",
        }
        return odd.get(kind, whole)
