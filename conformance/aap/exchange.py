"""Exchanges: what an agent said and did in a turn, in one form whatever way it was told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

Block = Mapping[str, Any]
Message = Mapping[str, Any]
Item = tuple[Any, ...]
MEMBERS = {
    "text": ("text",),
    "thinking": ("thinking",),
    "image": ("url",),
    "tool_use": ("toolCallId", "name", "input"),
}


@dataclass(frozen=True)
class Exchange:
    """Texts, thoughts and calls in order, and the results of the calls by id.

    Adjacent texts are one text: deltas, blocks and messages may be cut anywhere. Results are kept apart since they may
    come as soon as they are there or after the other calls.
    """

    said: tuple[Item, ...]
    results: Mapping[str, Any]

    def renamed(self) -> "Exchange":
        """The same with calls numbered in order of appearance, to compare two runs."""
        ids = [item[1] for item in self.said if item[0] == "call"]
        names = {name: f"call {place}" for place, name in enumerate(dict.fromkeys(ids), 1)}
        said = tuple((item[0], names[item[1]], *item[2:]) if item[0] == "call" else item for item in self.said)
        return Exchange(said, {names.get(name, name): content for name, content in self.results.items()})

    @property
    def calls(self) -> list[Item]:
        return [item for item in self.said if item[0] == "call"]

    @property
    def words(self) -> str:
        """All texts and thoughts in one string."""
        return "".join(item[1] for item in self.said if item[0] in ("text", "thinking"))

    @property
    def shown(self) -> dict[str, Any]:
        return {"said": [list(item) for item in self.said], "results": dict(self.results)}


def blocks(content: Any) -> list[Block]:
    """Content as blocks: a string is one text block, or the blocks it holds as JSON, and empty texts are nothing.

    The schema allows a string and a list. A string that holds a list can be read both ways, and a server that keeps
    one as the other alters nothing.
    """
    listed = _held(content) or [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return [block for block in listed if block.get("text") != "" or block.get("type") != "text"]


def holds_blocks(content: Any) -> bool:
    """Whether content is a string that can be read as a list of blocks, too."""
    return isinstance(content, str) and _held(content) is not None


def _held(content: str) -> list[Block] | None:
    """The blocks in a string that holds a JSON list of them."""
    if not content.startswith("["):
        return None
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list) and found and all(map(_is_block, found)) else None


def _is_block(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") in MEMBERS and set(MEMBERS[item["type"]]) <= set(item)


def plain(content: Any) -> Any:
    """Content in one form for comparison: known members only, in block form."""
    return [_known(block) for block in blocks(content)]


def of_messages(messages: Iterable[Message]) -> Exchange:
    """The exchange in a list of assistant and tool messages."""
    items: list[Item] = []
    results: dict[str, Any] = {}
    for message in messages:
        if message["role"] == "tool":
            results[message["toolCallId"]] = plain(message["content"])
        elif message["role"] == "assistant":
            items += [_item(block) for block in blocks(message["content"])]
    return Exchange(_joined(items), results)


def of_events(events: Iterable[tuple[str, Mapping[str, Any]]]) -> Exchange:
    """The exchange in a stream of events."""
    items: list[Item] = []
    results: dict[str, Any] = {}
    for name, body in events:
        match name:
            case "text_delta" | "thinking_delta":
                items.append((name.removesuffix("_delta"), body["delta"]))
            case "text" | "thinking":
                items.append((name, body[name]))
            case "tool_call":
                items.append(_item({**body, "type": "tool_use"}))
            case "tool_result":
                results[body["toolCallId"]] = plain(body["content"])
    return Exchange(_joined(items), results)


def results_too_late(events: Iterable[tuple[str, Mapping[str, Any]]], messages: Iterable[Message]) -> list[str]:
    """The calls before whose result a stream says more than the history does; less is the freedom of a quick tool."""
    kept: dict[str, int] = {}
    said: list[Item] = []
    for message in messages:
        if message["role"] == "tool":
            kept[message["toolCallId"]] = _amount(said)
        elif message["role"] == "assistant":
            said += [_item(block) for block in blocks(message["content"])]
    told = list(events)
    places = [(place, body["toolCallId"]) for place, (name, body) in enumerate(told) if name == "tool_result"]
    return [call for place, call in places if _amount(of_events(told[:place]).said) > kept.get(call, 0)]


def _amount(said: Iterable[Item]) -> int:
    """How much text and thinking there is."""
    return sum(len(item[1]) for item in said if item[0] in ("text", "thinking"))


def exact(messages: Iterable[Message]) -> list[Any]:
    """A history in one form for comparison: neighbouring assistant messages are one, so are neighbouring results."""
    told: list[Any] = []
    for message in messages:
        role, previous = message["role"], told[-1]["role"] if told else None
        if role == "assistant":
            if previous != "assistant":
                told.append({"role": role, "said": []})
            told[-1]["said"] = _lists(_joined([*map(tuple, told[-1]["said"]), *map(_item, blocks(message["content"]))]))
        elif role == "tool":
            if previous != "tool":
                told.append({"role": role, "results": {}})
            told[-1]["results"][message["toolCallId"]] = plain(message["content"])
        else:
            told.append({"role": role, "content": plain(message["content"])})
    return told


def _lists(items: Iterable[Item]) -> list[list[Any]]:
    return [list(item) for item in items]


def _known(block: Block) -> dict[str, Any]:
    kind = block["type"]
    return {"type": kind} | {name: block[name] for name in MEMBERS[kind]}


def _item(block: Block) -> Item:
    match block["type"]:
        case "tool_use":
            return ("call", block["toolCallId"], block["name"], block["input"])
        case "image":
            return ("image", block["url"])
        case kind:
            return (kind, block[kind])


def _joined(items: Iterable[Item]) -> tuple[Item, ...]:
    told: list[Item] = []
    for item in items:
        if item[0] not in ("text", "thinking"):
            told.append(item)
        elif told and told[-1][0] == item[0]:
            told[-1] = (item[0], told[-1][1] + item[1])
        elif item[1]:
            told.append(item)
    return tuple(told)
