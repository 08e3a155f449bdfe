"""Scripts in Lua as Redis runs them: the text is run unchanged, and `redis.call` carries out a command."""

import json
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Any

from lupa.lua51 import LuaError, LuaRuntime, LuaSyntaxError, lua_type

from .redis_commands import NotSimulated
from .redis_replies import RedisFailure, Reply, Status

CarryOut = Callable[[Sequence[bytes]], Reply]
PRELUDE = b"""
local carry_out, pack, encode, decode, unpack_terms = ...
local format, select, type, unpack, error, rawset = string.format, select, type, unpack, error, rawset
redis = {
  call = function(...)
    local given, count = {...}, select('#', ...)
    for at = 1, count do
      local value = given[at]
      if type(value) == 'number' then
        given[at] = format('%.17g', value)
      elseif type(value) ~= 'string' then
        error('Lua redis lib command arguments must be strings or integers')
      end
    end
    return carry_out(unpack(given, 1, count))
  end,
  error_reply = function(text) return {err = text} end,
  status_reply = function(text) return {ok = text} end,
  sha1hex = nil,
}
cjson = {encode = encode, decode = decode}
cmsgpack = {pack = pack, unpack = unpack_terms}
for _, name in ipairs({'io', 'os', 'require', 'module', 'package', 'dofile', 'loadfile', 'print', 'python'}) do
  rawset(_G, name, nil)
end
setmetatable(_G, {
  __newindex = function(_, name)
    error('Script attempted to create global variable \\'' .. tostring(name) .. '\\'', 2)
  end,
  __index = function(_, name)
    error('Script attempted to access nonexistent global variable \\'' .. tostring(name) .. '\\'', 2)
  end,
})
"""
ESCAPES = {
    **{code: b"\\u%04x" % code for code in (*range(32), 127)},
    **{ord(one): escape for one, escape in {
        "\b": b"\\b", "\t": b"\\t", "\n": b"\\n", "\f": b"\\f", "\r": b"\\r", '"': b'\\"', "\\": b"\\\\", "/": b"\\/",
    }.items()},
}


class Scripts:
    """The scripts that were loaded, by their digests; Redis forgets them when it stops."""

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out
        self._lua = LuaRuntime(encoding=None, register_eval=False)  # type: ignore[arg-type]
        self._lua.execute(PRELUDE, self._called, self._pack, self._encode, self._decode, self._unpack)
        self._loaded: dict[bytes, Any] = {}

    def clear(self) -> None:
        self._loaded.clear()

    def load(self, text: bytes) -> bytes:
        """Compile a script; return its digest."""
        digest = sha1(text).hexdigest().encode()
        if digest not in self._loaded:
            try:
                body = text.partition(b"\n")[2] if text.startswith(b"#!") else text  # memory is never full here
                self._loaded[digest] = self._lua.execute(b"return function(KEYS, ARGV) " + body + b"\nend")
            except LuaSyntaxError as error:
                raise RedisFailure(b"ERR Error compiling script (new function): %s" % str(error).encode()) from None
        return digest

    def has(self, digest: bytes) -> bool:
        return digest.lower() in self._loaded

    def run(self, digest: bytes, words: Sequence[bytes]) -> Reply:
        """Run a script with the number of its keys, its keys and its arguments."""
        script = self._loaded.get(digest.lower())
        if script is None:
            raise RedisFailure(b"NOSCRIPT No matching script. Please use EVAL.")
        number = int(words[0])
        keys, given = words[1:1 + number], words[1 + number:]
        try:
            result = script(self._lua.table_from(keys), self._lua.table_from(given))
        except LuaError as error:
            raise RedisFailure(b"ERR %s script: %s" % (str(error).encode(), digest)) from None
        return self._reply(result)

    # -- from Lua to Redis and back -------------------------------------------------------------------------------

    def _called(self, *words: bytes) -> Any:
        return self._value(self._carry_out(words))

    def _value(self, reply: Reply) -> Any:
        """A reply as Lua sees it."""
        if reply is None:
            return False
        if isinstance(reply, Status):
            return self._lua.table_from({b"ok": bytes(reply)})
        if isinstance(reply, bytes | int):
            return reply
        assert isinstance(reply, Sequence)
        return self._lua.table_from([self._value(one) for one in reply])

    def _reply(self, value: Any) -> Reply:
        """What a script returns, as a reply."""
        if isinstance(value, bytes):
            return value
        if value is None or value is False:
            return None
        if isinstance(value, int | float):
            return int(value)
        if lua_type(value) != "table":
            return None
        if (failure := value[b"err"]) is not None:
            return RedisFailure(failure.removeprefix(b"-"))
        if (status := value[b"ok"]) is not None:
            return Status(status)
        rows: list[Reply] = []
        while (one := value[len(rows) + 1]) is not None:
            rows.append(self._reply(one))
        return rows

    # -- the libraries that the scripts use -----------------------------------------------------------------------

    def _encode(self, value: Any) -> bytes:
        return encode_json(value)

    def _decode(self, text: bytes) -> Any:
        try:
            return self._lua_value(json.loads(text.decode("utf-8", "surrogateescape")))
        except ValueError as error:
            raise RedisFailure(b"ERR cjson cannot read: %s" % str(error).encode()) from None

    def _lua_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if isinstance(value, list):
            return self._lua.table_from([self._lua_value(one) for one in value])
        if isinstance(value, dict):
            return self._lua.table_from({self._lua_value(key): self._lua_value(one) for key, one in value.items()})
        if value is None:
            raise NotSimulated(b"ERR cjson.null is not simulated")
        return value

    def _pack(self, terms: Any) -> bytes:
        words = list(terms.values())
        if not all(isinstance(word, bytes) for word in words):
            raise NotSimulated(b"ERR cmsgpack of anything but texts is not simulated")
        return pack_texts(words)

    def _unpack(self, packed: bytes) -> Any:
        return self._lua.table_from(unpack_texts(packed))


def encode_json(value: Any) -> bytes:
    """A value as the library cjson of Redis writes it."""
    if isinstance(value, bytes):
        return b'"%s"' % b"".join(ESCAPES.get(code) or bytes((code,)) for code in value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return b"%.14g" % value
    if lua_type(value) != "table":
        raise NotSimulated(b"ERR cjson of this value is not simulated")
    pairs = list(value.items())
    if pairs and sorted(key for key, _ in pairs if isinstance(key, int)) == list(range(1, len(pairs) + 1)):
        return b"[%s]" % b",".join(encode_json(value[at]) for at in range(1, len(pairs) + 1))
    return b"{%s}" % b",".join(b"%s:%s" % (encode_json(key), encode_json(one)) for key, one in pairs)


def pack_texts(words: Sequence[bytes]) -> bytes:
    """A list of texts as the library cmsgpack of Redis writes it."""
    return b"".join([_head(len(words), 15, 0x90, {0xFFFF: b"\xdc", 0xFFFFFFFF: b"\xdd"}), *(
        _head(len(word), 31, 0xA0, {0xFF: b"\xd9", 0xFFFF: b"\xda", 0xFFFFFFFF: b"\xdb"}) + word for word in words)])


def _head(size: int, small: int, mark: int, marks: dict[int, bytes]) -> bytes:
    if size <= small:
        return bytes((mark | size,))
    most, sign = next((most, sign) for most, sign in marks.items() if size <= most)
    return sign + size.to_bytes((most.bit_length() + 7) // 8, "big")


def unpack_texts(packed: bytes) -> list[bytes]:
    count, at = _size(packed, 0, 0x90, 15, {0xDC: 2, 0xDD: 4})
    words = []
    for _ in range(count):
        size, at = _size(packed, at, 0xA0, 31, {0xD9: 1, 0xDA: 2, 0xDB: 4})
        words.append(packed[at:at + size])
        at += size
    return words


def _size(packed: bytes, at: int, mark: int, small: int, marks: dict[int, int]) -> tuple[int, int]:
    sign = packed[at]
    if sign & ~small & 0xFF == mark:
        return sign & small, at + 1
    if sign not in marks:
        raise NotSimulated(b"ERR cmsgpack of anything but texts is not simulated")
    width = marks[sign]
    return int.from_bytes(packed[at + 1:at + 1 + width], "big"), at + 1 + width
