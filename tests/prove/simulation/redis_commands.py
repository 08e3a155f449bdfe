"""The commands on keys that the gateway and its scripts use, as Redis carries them out."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random

from .redis_data import NAMES, EntryId, Hash, Keyspace, Members, SortedSet, Stream
from .redis_replies import NOT_FLOAT, NOT_INTEGER, NULL_ARRAY, OK, SYNTAX, RedisFailure, Reply, Status

INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
FLOAT = re.compile(rb"[+-]?(inf(inity)?|([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?)", re.IGNORECASE)
MOST = 2**63 - 1
BOUND = b"ERR min or max is not a float"
INVALID_EXPIRY = b"ERR invalid expire time in '%s' command"
STREAM_ID = b"ERR Invalid stream ID specified as stream command argument"


class NotSimulated(RedisFailure):
    """Redis may know this, but the simulated one does not: the run must say so."""


@dataclass(frozen=True)
class Call:
    """The data that a command works on, and its arguments."""

    data: Keyspace
    args: Sequence[bytes]
    random: Random


@dataclass(frozen=True)
class Command:
    """How a command is carried out, how many arguments it needs, and whether it writes."""

    run: Callable[[Call], Reply]
    least: int
    most: int | None
    writes: bool


COMMANDS: dict[bytes, Command] = {}


def command(least: int, most: int | None = -1, *, writes: bool = False, name: str = "") -> Callable[
    [Callable[[Call], Reply]], Callable[[Call], Reply]
]:
    """Enter a function into the table, under its own name unless another one is given."""
    def enter(run: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
        word = (name or run.__name__.rstrip("_")).upper().encode()
        COMMANDS[word] = Command(run, least, least if most == -1 else most, writes)
        return run

    return enter


def integer(word: bytes, refusal: bytes = NOT_INTEGER) -> int:
    if INTEGER.fullmatch(word) is None or not -MOST - 1 <= int(word) <= MOST:
        raise RedisFailure(refusal)
    return int(word)


def number(word: bytes, refusal: bytes = NOT_FLOAT) -> float:
    if FLOAT.fullmatch(word) is None:
        raise RedisFailure(refusal)
    return float(word)


def shown(score: float) -> bytes:
    """A score as Redis writes it."""
    if abs(score) < 1e17 and score == math.floor(score):
        return b"%d" % int(score)
    return b"%.17g" % score


def increased(old: bytes | None, by: int, refusal: bytes = NOT_INTEGER) -> int:
    total = integer(old or b"0", refusal) + by
    if not -MOST - 1 <= total <= MOST:
        raise RedisFailure(b"ERR increment or decrement would overflow")
    return total


# -- keys and strings -------------------------------------------------------------------------------------------------

@command(1)
def get(call: Call) -> Reply:
    return call.data.read(call.args[0], bytes)


@command(2, None, writes=True)
def set_(call: Call) -> Reply:
    key, value, *options = call.args
    words = [option.upper() for option in options]
    until: int | None = None
    is_wanted = True
    while words:
        word = words.pop(0)
        if word in (b"NX", b"XX"):
            is_wanted = (call.data.look(key) is None) == (word == b"NX")
        elif word in (b"PX", b"EX") and words:
            milliseconds = integer(words.pop(0)) * (1 if word == b"PX" else 1000)
            until = _expiry(call, milliseconds, b"set")
            if milliseconds <= 0:
                raise RedisFailure(INVALID_EXPIRY % b"set")
        else:
            raise RedisFailure(SYNTAX)
    if not is_wanted:
        return None
    call.data.set(key, value)
    if until is not None:
        call.data.expire(key, until)
    return OK


def _expiry(call: Call, milliseconds: int, name: bytes) -> int:
    """When a key expires that is to live for so long."""
    until = call.data.milliseconds + milliseconds
    if until > MOST:
        raise RedisFailure(INVALID_EXPIRY % name)
    return until


def _add(call: Call, by: int) -> Reply:
    key = call.args[0]
    total = increased(call.data.read(key, bytes), by)
    call.data.replace(key, b"%d" % total)
    return total


@command(1, writes=True)
def incr(call: Call) -> Reply:
    return _add(call, 1)


@command(2, writes=True)
def incrby(call: Call) -> Reply:
    return _add(call, integer(call.args[1]))


@command(2, writes=True)
def decrby(call: Call) -> Reply:
    return _add(call, -integer(call.args[1]))


@command(1, None)
def exists(call: Call) -> Reply:
    return sum(call.data.look(key) is not None for key in call.args)


@command(1, None, writes=True)
@command(1, None, writes=True, name="unlink")
def del_(call: Call) -> Reply:
    return sum(call.data.look(key) is not None and call.data.remove(key) for key in call.args)


@command(2, writes=True)
def pexpire(call: Call) -> Reply:
    key, milliseconds = call.args[0], integer(call.args[1])
    until = _expiry(call, milliseconds, b"pexpire")
    if call.data.look(key) is None:
        return 0
    if milliseconds <= 0:
        call.data.remove(key)
    else:
        call.data.expire(key, until)
    return 1


@command(1, writes=True)
def persist(call: Call) -> Reply:
    if call.data.look(call.args[0]) is None or call.data.expires_at(call.args[0]) is None:
        return 0
    call.data.expire(call.args[0], None)
    return 1


@command(1)
def pttl(call: Call) -> Reply:
    if call.data.look(call.args[0]) is None:
        return -2
    until = call.data.expires_at(call.args[0])
    return -1 if until is None else until - call.data.milliseconds


@command(1)
def type_(call: Call) -> Reply:
    return Status(NAMES.get(type(call.data.look(call.args[0])), b"none"))


@command(1)
def keys(call: Call) -> Reply:
    pattern = re.sub(r"\\(.)", r"[\1]", call.args[0].decode("latin-1"))  # fnmatch knows no escapes
    return [key for key in call.data.all_keys() if fnmatchcase(key.decode("latin-1"), pattern)]


@command(5)
def scan(call: Call) -> Reply:
    """All keys at once, as Redis may return them, too; only the form that the gateway uses is known here."""
    cursor, match, pattern, count, _ = call.args
    if (cursor, match, count) != (b"0", b"MATCH", b"COUNT"):
        raise NotSimulated(b"ERR this form of SCAN is not simulated")
    return [b"0", keys(Call(call.data, [pattern], call.random))]


@command(0)
def dbsize(call: Call) -> Reply:
    return len(call.data.all_keys())


@command(0, 1, writes=True)
def flushall(call: Call) -> Reply:
    call.data.clear()
    return OK


@command(0)
def time(call: Call) -> Reply:
    now = call.data.microseconds
    return [b"%d" % (now // 1_000_000), b"%d" % (now % 1_000_000)]


@command(1)
def echo(call: Call) -> Reply:
    return call.args[0]


# -- hashes -----------------------------------------------------------------------------------------------------------

@command(2)
def hget(call: Call) -> Reply:
    found = call.data.read(call.args[0], Hash)
    return None if found is None else found.get(call.args[1])


@command(2, None)
def hmget(call: Call) -> Reply:
    found = call.data.read(call.args[0], Hash) or {}
    return [found.get(field) for field in call.args[1:]]


@command(3, None, writes=True)
def hset(call: Call) -> Reply:
    key, *pairs = call.args
    if len(pairs) % 2:
        raise wrong_number(b"hset")
    fields = call.data.change(key, Hash)
    before = len(fields)
    fields.update(zip(pairs[::2], pairs[1::2], strict=True))
    return len(fields) - before


@command(2, None, writes=True)
def hdel(call: Call) -> Reply:
    key, *fields = call.args
    if call.data.read(key, Hash) is None:
        return 0
    found = call.data.change(key, Hash)
    gone = sum(found.pop(field, None) is not None for field in fields)
    call.data.prune(key)
    return gone


@command(2)
def hexists(call: Call) -> Reply:
    return int(call.args[1] in (call.data.read(call.args[0], Hash) or {}))


@command(3, writes=True)
def hincrby(call: Call) -> Reply:
    key, field, by = call.args[0], call.args[1], integer(call.args[2])
    total = increased((call.data.read(key, Hash) or {}).get(field), by, b"ERR hash value is not an integer")
    call.data.change(key, Hash)[field] = b"%d" % total
    return total


@command(1)
def hkeys(call: Call) -> Reply:
    return list(call.data.read(call.args[0], Hash) or ())


@command(1)
def hlen(call: Call) -> Reply:
    return len(call.data.read(call.args[0], Hash) or ())


@command(1)
def hgetall(call: Call) -> Reply:
    return [word for pair in (call.data.read(call.args[0], Hash) or {}).items() for word in pair]


# -- sets -------------------------------------------------------------------------------------------------------------

@command(2, None, writes=True)
def sadd(call: Call) -> Reply:
    key, *members = call.args
    found = call.data.change(key, Members)
    before = len(found)
    found.update(dict.fromkeys(members))
    return len(found) - before


@command(2, None, writes=True)
def srem(call: Call) -> Reply:
    key, *members = call.args
    if call.data.read(key, Members) is None:
        return 0
    found = call.data.change(key, Members)
    before = len(found)
    for member in members:
        found.pop(member, None)
    gone = before - len(found)
    call.data.prune(key)
    return gone


@command(1)
def scard(call: Call) -> Reply:
    return len(call.data.read(call.args[0], Members) or ())


@command(1)
def smembers(call: Call) -> Reply:
    return list(call.data.read(call.args[0], Members) or ())


@command(2)
def sismember(call: Call) -> Reply:
    return int(call.args[1] in (call.data.read(call.args[0], Members) or ()))


@command(1, None)
def sinter(call: Call) -> Reply:
    found = [call.data.read(key, Members) or Members() for key in call.args]
    return [member for member in found[0] if all(member in other for other in found[1:])]


@command(2)
def srandmember(call: Call) -> Reply:
    members, count = list(call.data.read(call.args[0], Members) or ()), integer(call.args[1])
    if count < 0:
        raise NotSimulated(b"ERR SRANDMEMBER with a negative count is not simulated")
    return members if count >= len(members) else call.random.sample(members, count)


# -- sorted sets ------------------------------------------------------------------------------------------------------

@command(3, None, writes=True)
def zadd(call: Call) -> Reply:
    key, *pairs = call.args
    if len(pairs) % 2:
        raise RedisFailure(SYNTAX)
    scores = [number(word) for word in pairs[::2]]
    found = call.data.change(key, SortedSet)
    before = len(found)
    for score, member in zip(scores, pairs[1::2], strict=True):
        found.put(member, score)
    return len(found) - before


@command(2, None, writes=True)
def zrem(call: Call) -> Reply:
    key, *members = call.args
    if call.data.read(key, SortedSet) is None:
        return 0
    found = call.data.change(key, SortedSet)
    gone = sum(found.remove(member) for member in members)
    call.data.prune(key)
    return gone


@command(1)
def zcard(call: Call) -> Reply:
    return len(call.data.read(call.args[0], SortedSet) or ())


@command(2)
def zscore(call: Call) -> Reply:
    found = call.data.read(call.args[0], SortedSet)
    return None if found is None or (score := found.scores.get(call.args[1])) is None else shown(score)


@command(3, None)
def zrange(call: Call) -> Reply:
    key, first, last, *options = call.args
    words = [option.upper() for option in options]
    is_by_score = is_reverse = has_scores = False
    offset, count, has_limit = 0, -1, False
    while words:
        word = words.pop(0)
        if word == b"BYSCORE":
            is_by_score = True
        elif word == b"REV":
            is_reverse = True
        elif word == b"WITHSCORES":
            has_scores = True
        elif word == b"LIMIT" and len(words) >= 2:
            offset, count, has_limit = integer(words.pop(0)), integer(words.pop(0)), True
        else:
            raise RedisFailure(SYNTAX)
    if has_limit and not is_by_score:
        raise RedisFailure(
            b"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
    if is_by_score:
        low, high = (last, first) if is_reverse else (first, last)
        is_above, is_below = _bound(low, is_lowest=True), _bound(high, is_lowest=False)
        found = call.data.read(key, SortedSet) or SortedSet()
        members = found.within(is_above, is_below)
        members = members[::-1] if is_reverse else members
        members = [] if offset < 0 else members[offset:] if count < 0 else members[offset:offset + count]
    else:
        start, end = integer(first), integer(last)
        found = call.data.read(key, SortedSet) or SortedSet()
        members = found.members[::-1] if is_reverse else found.members
        members = _slice(members, start, end)
    if has_scores:
        return [word for member in members for word in (member, shown(found.scores[member]))]
    return members


def _slice(members: list[bytes], start: int, end: int) -> list[bytes]:
    size = len(members)
    start, end = max(0, start + size if start < 0 else start), end + size if end < 0 else end
    return members[start:end + 1] if end >= 0 else []


def _bound(word: bytes, *, is_lowest: bool) -> Callable[[float], bool]:
    if word[:1] == b"(":
        limit = number(word[1:] or b"0", BOUND)  # Redis reads nothing as zero
        return (lambda score: score > limit) if is_lowest else (lambda score: score < limit)
    limit = number(word, BOUND)
    return (lambda score: score >= limit) if is_lowest else (lambda score: score <= limit)


@command(2, None)
def zinter(call: Call) -> Reply:
    count = integer(call.args[0])
    keys = call.args[1:]
    if len(keys) != count or count < 1:
        raise NotSimulated(b"ERR ZINTER with options is not simulated")
    found = [_scores(call, key) for key in keys]
    shared = [member for member in found[0] if all(member in other for other in found[1:])]
    return sorted(shared, key=lambda member: (sum(scores[member] for scores in found), member))


@command(2, None)
def zdiff(call: Call) -> Reply:
    count, keys = integer(call.args[0]), call.args[1:]
    if len(keys) != count or count < 1:
        raise NotSimulated(b"ERR ZDIFF with options is not simulated")
    first, *others = [_scores(call, key) for key in keys]
    left = [member for member in first if not any(member in other for other in others)]
    return sorted(left, key=lambda member: (first[member], member))


def _scores(call: Call, key: bytes) -> dict[bytes, float]:
    """The members of a sorted set, or of a set, in which each one has the score 1."""
    value = call.data.look(key)
    if isinstance(value, Members):
        return dict.fromkeys(value, 1.0)
    return (call.data.read(key, SortedSet) or SortedSet()).scores


# -- streams ----------------------------------------------------------------------------------------------------------

def entry_id(word: bytes, missing: int) -> EntryId:
    """An id whose second part may be missing."""
    first, dash, second = word.removeprefix(b"+").partition(b"-")
    if not first.isdigit() or (dash and not second.isdigit()):
        raise RedisFailure(STREAM_ID)
    return int(first), int(second) if dash else missing


@command(4, None, writes=True)
def xadd(call: Call) -> Reply:
    key, word, *fields = call.args
    if b"*" in word or word.upper() in (b"MAXLEN", b"MINID", b"NOMKSTREAM", b"LIMIT"):
        raise NotSimulated(b"ERR XADD with options or without an id is not simulated")
    made = entry_id(word, 0)
    if len(fields) % 2:
        raise wrong_number(b"xadd")
    if made == (0, 0):
        raise RedisFailure(b"ERR The ID specified in XADD must be greater than 0-0")
    found = call.data.read(key, Stream)
    if found is not None and made <= found.last:
        raise RedisFailure(b"ERR The ID specified in XADD is equal or smaller than the target stream top item")
    call.data.change(key, Stream).add(made, fields)
    return b"%d-%d" % made


@command(3, None)
def xrange(call: Call) -> Reply:
    key, first, last, *options = call.args
    low, high = _edge(first, 0), _edge(last, MOST)
    count = -1
    if options:
        if len(options) != 2 or options[0].upper() != b"COUNT":
            raise RedisFailure(SYNTAX)
        count = max(0, integer(options[1]))
    found = call.data.read(key, Stream)
    if found is None:
        return []
    if count == 0:
        return NULL_ARRAY
    page: list[Reply] = []
    for one, fields in found.between(low, high):
        page.append([b"%d-%d" % one, fields])
        if len(page) == count:
            break
    return page


def _edge(word: bytes, missing: int) -> EntryId:
    if word == b"-":
        return 0, 0
    if word == b"+":
        return MOST, MOST
    if word[:1] != b"(":
        return entry_id(word, missing)
    first, second = entry_id(word[1:], missing)
    if missing == 0:
        return first, second + 1
    return (first, second - 1) if second else (first - 1, MOST)


def wrong_number(name: bytes) -> RedisFailure:
    return RedisFailure(b"ERR wrong number of arguments for '%s' command" % name.lower())


def carry_out(data: Keyspace, random: Random, words: Sequence[bytes]) -> Reply:
    """Carry out a command on keys; raises `RedisFailure`."""
    name = words[0].upper()
    found = COMMANDS.get(name)
    if found is None:
        beginning = b"".join(b"'%s' " % word for word in words[1:])
        raise NotSimulated(b"ERR unknown command '%s', with args beginning with: %s" % (words[0], beginning))
    size = len(words) - 1
    if size < found.least or (found.most is not None and size > found.most):
        raise wrong_number(name)
    return found.run(Call(data, words[1:], random))
