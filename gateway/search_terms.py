"""The terms under which stored texts are found: words, pairs of neighbouring characters, and whole paths."""

import re

from gateway.json_values import JsonObject

MAX_COMPARED = 4000
"""How many characters of a text are compared with memories."""
MAX_KEYWORD_TERMS = 64
"""How many pairs of a keyword narrow a search; whoever searches compares the texts that are found with the keyword."""
WORD = re.compile(r"\w+")
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003ffff]+")
"""Han, kana, Thai and Lao: scripts without spaces between words."""

SEARCHED_FIELDS = {"note": "content", "memory": "path"}
"""By kind: the field of the body that is found by its terms."""

Terms = frozenset[str]


def terms_of(kind: str, body: JsonObject) -> Terms:
    """The terms under which a store finds a resource; resources of most kinds have none."""
    text = body.get(SEARCHED_FIELDS.get(kind, ""))
    if not isinstance(text, str):
        return frozenset()
    return path_terms(text) if kind == "memory" else _pairs(text.casefold()) | words_of(text)


def words_of(text: str) -> Terms:
    """What a text is compared by: its words, and each pair of neighbours in scripts that are written without spaces."""
    terms: set[str] = set()
    for word in WORD.findall(text.casefold()[:MAX_COMPARED]):
        runs = UNSPACED.findall(word)
        terms.update(f"w{run[at:at + 2]}" for run in runs for at in range(max(1, len(run) - 1)))
        terms.update(f"w{part}" for part in UNSPACED.split(word) if len(part) > 1)
    return frozenset(terms)


def keyword_terms(keyword: str) -> Terms:
    """Terms that every text with this keyword in it has, whatever its case; none for a single letter of ASCII."""
    pairs = sorted(_pairs(keyword.casefold()), key=lambda term: (-len(term), term))
    return frozenset(pairs[:MAX_KEYWORD_TERMS])


def pairs_of(text: str) -> Terms:
    """The terms of a text of which any part is to be found by `keyword_terms`."""
    return _pairs(text.casefold())


def path_terms(path: str) -> Terms:
    return frozenset((f"p{path}",))


def _pairs(text: str) -> Terms:
    """Each pair of neighbours; beside them each character that is not ASCII, because one such says enough."""
    pairs = {f"c{text[at:at + 2]}" for at in range(len(text) - 1)}
    return frozenset(pairs | {f"c{one}" for one in text if not one.isascii()})
