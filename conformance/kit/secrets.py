"""Secrets: found by the names they go by, struck out wherever they stand, told apart by a number.

Recordings, transcripts and reports all use this one redaction.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote_plus

import orjson

SHORTEST = 8  # shorter secrets are struck out where they are named, and not wherever the letters occur
SHORTEST_WORD = 16  # so are plain words
SHORTEST_GIVEN = 4  # secrets that somebody named to us are struck out from here on, the shorter ones as whole words
SHORTEST_PART = 4  # of a secret, at the end of a text that was cut off
REDACTED = "[redacted]"
CUT = re.compile(r"( … \(\d+ more characters\))")
MOST = 5_000
ENDINGS = (
    "token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "secretkey",
    "plaintext", "credential", "credentials", "authorization", "cookie",
)  # fmt: skip
PARTS = ("key", "secret", "pass", "plain", "credential", "authorization", "cookie")
"""Every name of a secret has one of these in it, or `token`; few texts have any, so that few are searched for names."""
CURSORS = ("nexttoken", "pagetoken", "continuationtoken")
JSON_PAIR = re.compile(r'"([\w.\- ]{1,64})"(\s*:\s*)"((?:[^"\\]++|\\.)++)"')
INNER_PAIR = re.compile(r'\\"([\w.\- ]{1,64})\\"(\s*:\s*)\\"((?:(?!\\").)+)\\"')
QUERY_PAIR = re.compile(r"([?&;]|^)([\w.\-\[\]]{1,64})=([^&;\s\"'<>#\\]+)")
ENVIRONMENT = re.compile(
    r'("(?:env|runtime_env|env_vars|envVars|environment_variables|environmentVariables)"\s*:\s*)'
    r'(\{[^{}]*\}|"(?:[^"\\]++|\\.)*+")'
)
STRING_VALUE = re.compile(r'(:\s*)"((?:[^"\\]++|\\.)++)"')
ASSIGNMENT = re.compile(r'([A-Za-z_]\w*=)((?:[^;"\\]|\\[^n])+)')
CONNECT = re.compile(r"(^|\x1e)(40(?:/[^,\x1e]*,)?)(\{[^\x1e]*\})")
MASKED = re.compile(r"^[*•·.…xX_\-]*$|\*{3}|•{3}|…|\.{3}|\[redacted(-\d+)?\]")
WORD = re.compile(r"^[a-z_.:\-]+$")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is nobody's business."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain == "key" or (plain.endswith(ENDINGS) and not plain.endswith(CURSORS))


class Redactor:
    """Strikes secrets out: `[redacted-1]` is the first one seen, wherever it is seen again.

    `known` are secrets that somebody named to us. `key` is the key of whoever examines; its mark is `[redacted]`.
    Redactors that share `marks` give the same secret the same number.
    """

    def __init__(
        self, known: Iterable[str] = (), *, key: str | None = None, marks: dict[str, str] | None = None
    ) -> None:
        self._marks = {} if marks is None else marks
        self._learned: dict[str, None] = {}
        self._forms: dict[str, str] = {}
        self._longest_first: list[str] = []
        self._words: dict[str, str] = {}
        if key:
            self._marks[key] = REDACTED
            self._given(key)
        for secret in filter(None, known):
            self._given(secret)

    # -- what is recorded ----------------------------------------------------------------------------------------------

    def data(self, data: bytes, *, is_sent: bool = False, is_form: bool = False) -> bytes:
        """A body or frame, text or not."""
        text = self.text(data.decode("utf-8", "surrogateescape"), is_sent=is_sent, is_form=is_form)
        return text.encode("utf-8", "surrogateescape")

    def text(self, text: str, *, is_sent: bool = False, is_form: bool = False) -> str:
        if is_sent and (text.startswith("40") or "\x1e40" in text):
            text = CONNECT.sub(lambda found: found[1] + found[2] + self._values(found[3]), text)
        if "env" in text:
            text = ENVIRONMENT.sub(lambda found: found[1] + self._environment(found[2]), text)
        if _may_name_one(text):
            text = JSON_PAIR.sub(self._pair, text)
            text = INNER_PAIR.sub(self._inner_pair, text)
            text = QUERY_PAIR.sub(lambda found: self._query_pair(found, is_form), text)
        return self._literal(text)

    def message(
        self, first: str, headers: Iterable[tuple[str, str]], body: str | None, *, is_sent: bool = False
    ) -> str:
        """A request or an answer as a transcript shows it: the first line, the headers, a blank line, the body."""
        listed = list(headers)
        is_form = any(name.lower() == "content-type" and "urlencoded" in value for name, value in listed)
        lines = [self.text(first), *(f"{name}: {value}" for name, value in self.headers(listed))]
        if body is not None:
            lines += ["", self.text(body, is_sent=is_sent, is_form=is_form)]
        return "\n".join(lines)

    def shown(self, text: str) -> str:
        """Words that may show an answer of which the end was cut off, and with it the end of a secret."""
        *cut, end = CUT.split(text)
        pieces = [self._ended(self.text(piece)) if place % 2 == 0 else piece for place, piece in enumerate(cut)]
        return "".join([*pieces, self.text(end)])

    def again(self, text: str) -> str:
        """A text that was looked through before, without the secrets that were learned since."""
        return self._literal(text)

    @property
    def count(self) -> int:
        """How many secrets were found so far."""
        return len(self._learned)

    @property
    def learned(self) -> tuple[str, ...]:
        """The secrets that were found so far, in the order they were."""
        return tuple(self._learned)

    def query(self, query: str) -> str:
        return self._literal(QUERY_PAIR.sub(lambda found: self._query_pair(found, True), query))

    def path(self, path: str) -> str:
        return self._literal(path)

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name, self._header(name, value)) for name, value in headers]

    # -- where secrets are found ---------------------------------------------------------------------------------------

    def _header(self, name: str, value: str) -> str:
        plain = name.lower()
        if plain in ("cookie", "set-cookie"):
            return "; ".join(self._cookie(place, part) for place, part in enumerate(value.split("; ")))
        if plain in ("authorization", "proxy-authorization"):
            scheme, space, secret = value.rpartition(" ")
            self._look_inside(scheme, secret)
            return scheme + space + self._mark(secret)
        if plain == "sec-websocket-protocol":
            return ", ".join(self._mark(it) if len(it) > SHORTEST_WORD else it for it in value.split(", "))
        if plain.startswith("access-control-"):
            return value
        if is_secret_name(plain.removeprefix("x-")):
            return self._mark(value)
        if "=" in value:
            value = QUERY_PAIR.sub(lambda found: self._query_pair(found, False), value)
        return self._literal(value)

    def _cookie(self, place: int, part: str) -> str:
        name, sign, value = part.partition("=")
        is_attribute = place > 0 and name.lower() in ("path", "domain", "expires", "max-age", "samesite")
        return part if is_attribute or not sign or not value else f"{name}={self._mark(value)}"

    def _look_inside(self, scheme: str, secret: str) -> None:
        """A Basic credential holds a password."""
        if scheme.lower() == "basic":
            try:
                _, _, password = base64.b64decode(secret, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return
            self.learn(password)

    def _pair(self, found: re.Match[str]) -> str:
        if not is_secret_name(found[1]) or (found[1].lower() == "key" and _is_harmless(found[3])):
            return found[0]
        return f'"{found[1]}"{found[2]}"{self._mark(_unescaped(found[3]))}"'

    def _inner_pair(self, found: re.Match[str]) -> str:
        if not is_secret_name(found[1]) or (found[1].lower() == "key" and _is_harmless(found[3])):
            return found[0]
        return f'\\"{found[1]}\\"{found[2]}\\"{self._mark(found[3])}\\"'

    def _query_pair(self, found: re.Match[str], is_query: bool) -> str:
        if (found[1] == "" and not is_query) or not is_secret_name(found[2]):
            return found[0]
        return f"{found[1]}{found[2]}={self._mark(unquote_plus(found[3]))}"

    def _environment(self, text: str) -> str:
        if text.startswith("{"):
            return self._values(text)
        return ASSIGNMENT.sub(lambda found: found[1] + self._mark(_unescaped(found[2])), text)

    def _values(self, text: str) -> str:
        """Every string that is a value in this JSON object."""
        return STRING_VALUE.sub(lambda found: f'{found[1]}"{self._mark(_unescaped(found[2]))}"', text)

    # -- striking out --------------------------------------------------------------------------------------------------

    def _mark(self, secret: str) -> str:
        if secret in self._learned:
            return self._marks[secret]
        return secret if not secret or MASKED.search(secret) else self.learn(secret)

    def learn(self, secret: str) -> str:
        """Strike this out from now on; its mark."""
        mark = self._number(secret)
        if secret not in self._learned:
            self._learned[secret] = None
            if len(secret) >= (SHORTEST_WORD if _is_word(secret) else SHORTEST):
                self._seek(secret, mark)
        return mark

    def _given(self, secret: str) -> None:
        """A secret that somebody named is struck out even if it is a word; one of a few letters would blot texts."""
        mark = self._number(secret)
        self._learned[secret] = None
        if len(secret) >= SHORTEST:
            self._seek(secret, mark)
        elif len(secret) >= SHORTEST_GIVEN and not _is_word(secret):
            self._words |= dict.fromkeys(spellings(secret), mark)

    def _number(self, secret: str) -> str:
        if secret not in self._marks:
            others = sum(mark != REDACTED for mark in self._marks.values())
            self._marks[secret] = f"[redacted-{others + 1}]"
        return self._marks[secret]

    def _seek(self, secret: str, mark: str) -> None:
        if len(self._forms) < MOST:
            self._forms |= dict.fromkeys(spellings(secret), mark)
            self._longest_first = sorted(self._forms, key=len, reverse=True)

    def _ended(self, text: str) -> str:
        """A text without the beginning of a secret that it ends with."""
        for form in self._longest_first:
            for length in range(min(len(form), len(text)) - 1, SHORTEST_PART - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + self._forms[form]
        return text

    def _literal(self, text: str) -> str:
        """One pattern of all secrets would have to be made anew for each: only those that are there make one."""
        there = [form for form in self._longest_first if form in text]
        if there:
            text = re.sub("|".join(map(re.escape, there)), lambda found: self._forms[found[0]], text)
        for form, mark in self._words.items():
            if form in text:
                text = re.sub(rf"(?<![\w-]){re.escape(form)}(?![\w-])", mark, text)
        return text


def spellings(secret: str) -> set[str]:
    """A secret as it may appear on the wire: plain, in JSON, in an address, in base64."""
    raw = secret.encode("utf-8", "surrogateescape")
    coded = base64.b64encode(raw).decode()
    quoted = quote(raw, safe="")
    inside: Sequence[str] = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    return {secret, *inside, quoted, quoted.lower(), quote_plus(raw), quote(raw), coded, coded.rstrip("=")}


def _may_name_one(text: str) -> bool:
    low = text.lower()
    for part in PARTS:  # every text comes through here, and any() takes twice as long
        if part in low:
            return True
    return "token" in low and low.count("token") > low.count("tokens")


def _is_word(secret: str) -> bool:
    return WORD.match(secret) is not None and "-" not in secret


def _is_harmless(value: str) -> bool:
    """Many things have a `key` that is a name and no secret."""
    return len(value) < SHORTEST_WORD or WORD.match(value) is not None


def _unescaped(text: str) -> str:
    try:
        return str(orjson.loads(f'"{text}"'))
    except orjson.JSONDecodeError:
        return text
