"""Random calls of a Redis server, as gateways would make them: commands and all scripts, decided by a seed."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random

from gateway.storage.redis.scripts import scripts

Word = bytes | str | int | float
Ask = Callable[..., object]
PREFIX = "p:"
EPOCH = "e1"
REPLICAS = ("r1", "r2", "r3")
SESSIONS = tuple(f"ses_{number}" for number in range(8))
OWNERS = ("ann", "bob", "", "zoë", 'o"w/n\\er')
LABELS = ("", "work", "a/b", 'quo"te', "zoë", "tab\t", "\x7f", "\n\x01")
KINDS = ("skill", "file", "memory")
RESOURCES = tuple(f"res_{number}" for number in range(6))
TERMS = ("alpha", "beta", "gamma", "long" * 20, "über", "x" * 300)
LISTS = ("created", "updated")
KEY_HASHES = ("k1", "k2", "k3")
CHANNELS = tuple(f"{PREFIX}news:{one}" for one in SESSIONS) + tuple(f"{PREFIX}to:{one}" for one in REPLICAS)
"""What gateways publish is published here."""
PLAIN_KEYS = ("str", "num", "hash", "set", "zset", "stream", "gone")


def script_call(name: str, *given: Word) -> tuple[Word, ...]:
    return ("EVALSHA", scripts()[name][0], 0, PREFIX, *given)


class RandomCalls:
    """Makes calls; `look` says what is stored, so that tokens and heads are mostly the right ones."""

    def __init__(self, seed: int, look: Ask, ask: Ask) -> None:
        self._random = Random(seed)
        self._look, self._ask = look, ask
        self._number = 0
        self._makers = {name: getattr(self, f"_{name}") for name in scripts()}

    def first(self) -> Iterator[tuple[Word, ...]]:
        """What every gateway says first."""
        for _, text in scripts().values():
            yield ("SCRIPT", "LOAD", text)
        yield script_call("begin", "1", EPOCH)

    def next(self) -> tuple[Word, ...]:
        self._number += 1
        dice = self._random.random()
        if dice < 0.15:
            return self._plain()
        if dice < 0.40:
            return self._append()
        made: tuple[Word, ...] = self._makers[self._random.choice(list(self._makers))]()
        return made

    # -- what is chosen -------------------------------------------------------------------------------------------

    def _one(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def _some(self, choices: Sequence[str], most: int = 3) -> list[str]:
        return self._random.sample(choices, self._random.randint(0, min(most, len(choices))))

    def _epoch(self) -> str:
        return EPOCH if self._random.random() < 0.98 else "other"

    def _stored(self, key: str, field: str, otherwise: str) -> str:
        """What is stored, most of the time."""
        found = self._look("HGET", PREFIX + key, field) if self._random.random() < 0.9 else None
        return found.decode() if isinstance(found, bytes) else otherwise

    def _when(self) -> str:
        return repr(self._random.choice((1.5, 1700000000.123456, 2e9, 0.1, self._random.random() * 1e9)))

    def _limit(self, usual: int) -> str | int:
        return self._random.choice(("", usual, usual, 2))

    # -- scripts of the log ---------------------------------------------------------------------------------------

    def _append(self) -> tuple[Word, ...]:
        given: list[Word] = []
        for session_id in self._some(SESSIONS, 3) or [SESSIONS[0]]:
            head = int(self._stored(f"s:{session_id}", "head", "0"))
            token = self._stored(f"s:{session_id}", "token", "1")
            labels, words = self._some(LABELS), [f"w{self._number}_{n}" for n in range(self._random.randint(0, 2))]
            summary: list[Word] = ["", 0, 0, 0]
            if self._random.random() < 0.5:
                summary = [json.dumps({"n": self._number}), self._when(), self._when(), len(labels), *labels]
            given += [
                session_id, token, head, head + self._random.randint(1, 4), self._one(("", "0", "1")),
                self._one(OWNERS), "s" * self._random.randint(1, 90), "d\0\r\n" * self._random.randint(0, 20),
                *summary, len(words), *words,
            ]
        most, announced = self._random.choice((1000, 7)), self._one(("1", "1", "0"))
        return script_call(
            "append", self._epoch(), self._one(REPLICAS), 3, most, self._limit(1000), announced, *given)

    def _begin(self) -> tuple[Word, ...]:
        return script_call("begin", self._random.choice(("1", "2")), "e2")

    def _synced(self) -> tuple[Word, ...]:
        return ("EVALSHA", scripts()["synced"][0], 1, f"{PREFIX}synced")

    def _beat(self) -> tuple[Word, ...]:
        report = self._random.choice([(), ('{"name":"a:1"}',)])
        return script_call("beat", self._epoch(), self._one(REPLICAS), 10_000_000, *report)

    def _ask_drain(self) -> tuple[Word, ...]:
        return script_call("ask_drain", self._epoch(), self._one(REPLICAS), 10_000_000)

    def _leave(self) -> tuple[Word, ...]:
        return script_call("leave", self._epoch(), self._one(REPLICAS))

    def _claim(self) -> tuple[Word, ...]:
        step = self._random.choice([(), (1 + self._random.getrandbits(24),)])
        return script_call("claim", self._epoch(), self._one(REPLICAS), self._one(SESSIONS), *step)

    def _release(self) -> tuple[Word, ...]:
        session_id = self._one(SESSIONS)
        return script_call(
            "release", self._epoch(), self._one(REPLICAS), session_id, self._stored(f"s:{session_id}", "token", "9"))

    def _orphans(self) -> tuple[Word, ...]:
        return script_call("orphans", self._epoch(), self._one(REPLICAS), 32)

    def _forget(self) -> tuple[Word, ...]:
        session_id = self._one(SESSIONS)
        return script_call("forget", self._epoch(), session_id, self._stored(f"s:{session_id}", "token", "9"))

    def _spine(self) -> tuple[Word, ...]:
        return script_call("spine", self._one(SESSIONS), self._random.randint(0, 40), self._random.choice((1, 3, 256)))

    def _list(self) -> tuple[Word, ...]:
        if self._random.random() < 0.3:
            return script_call("list", "open", *([self._one(OWNERS)] if self._random.random() < 0.5 else []))
        place = self._random.choice(("sessions", f"owner:{self._one(OWNERS)}"))
        return script_call("list", place, *self._page(), self._one(("", "REV")))

    def _page(self) -> tuple[Word, ...]:
        low = self._random.choice(("-inf", f"({self._random.randint(0, 30)}"))
        return low, self._random.choice(("+inf", f"({self._random.randint(0, 60)}")), self._random.choice((1, 3, 50))

    def _listed(self) -> tuple[Word, ...]:
        first = self._random.randint(0, 4)
        return script_call(
            "listed", self._one(LISTS), self._one(OWNERS), self._one(LABELS), first, first + self._random.randint(0, 9))

    def _created_between(self) -> tuple[Word, ...]:
        first, last = self._random.choice(("-inf", self._when())), self._random.choice(("inf", self._when()))
        return script_call("created_between", self._one(OWNERS), first, last, self._random.choice((1, 20)))

    def _listed_all(self) -> tuple[Word, ...]:
        return script_call("listed_all", self._epoch())

    def _add_times(self) -> tuple[Word, ...]:
        return script_call("add_times", self._epoch(), self._one(OWNERS))

    def _enlist(self) -> tuple[Word, ...]:
        given: list[Word] = []
        for session_id in self._some(SESSIONS):
            labels = self._some(LABELS)
            head = self._stored(f"s:{session_id}", "head", "0")
            summary = self._random.choice(('{"s":1}', '{"created_at":1700000000.123456}'))
            given += [session_id, head, summary, self._when(), self._when(), len(labels), *labels]
            if self._random.random() < 0.5:
                self._ask("HDEL", f"{PREFIX}s:{session_id}", "summary")
        return script_call("enlist", self._epoch(), *given)

    def _unindexed(self) -> tuple[Word, ...]:
        return script_call("unindexed", self._epoch(), self._one(OWNERS), self._random.choice((1, 2, 20)))

    def _index_texts(self) -> tuple[Word, ...]:
        session_id = self._one(SESSIONS)
        head, indexed = (self._stored(f"s:{session_id}", field, "0") for field in ("head", "indexed"))
        owner = self._stored(f"s:{session_id}", "owner", OWNERS[0])
        return script_call("index_texts", self._epoch(), owner, session_id, head, indexed, *self._some(TERMS))

    def _mentioning(self) -> tuple[Word, ...]:
        return script_call("mentioning", self._one(OWNERS), *(self._some(TERMS) or TERMS[:1]))

    # -- scripts of resources -------------------------------------------------------------------------------------

    def _shelve(self) -> tuple[Word, ...]:
        parent = self._random.choice(("", "", *RESOURCES))
        return script_call(
            "shelve", self._epoch(), self._one(KINDS), self._one(RESOURCES), self._one(OWNERS), parent,
            self._random.choice((1000, 1000, 5)), f'{{"n":{self._number}}}', self._random.randint(1, 500),
            self._limit(50), self._limit(50), self._limit(50), self._limit(5000), *self._some(TERMS))

    def _seen(self) -> tuple[str, str, str]:
        kind, resource = self._one(KINDS), self._one(RESOURCES)
        return kind, resource, self._stored(f"resource:{kind}\0{resource}", "newest", "1")

    def _revise(self) -> tuple[Word, ...]:
        kind, resource, seen = self._seen()
        version = seen if self._random.random() < 0.2 else str(int(seen) + 1)
        terms = ("terms", *self._some(TERMS)) if self._random.random() < 0.5 else ()
        return script_call(
            "revise", self._epoch(), kind, resource, seen, version, self._random.choice((1000, 5)),
            f'{{"v":{self._number}}}', self._random.randint(1, 500), self._limit(50), self._limit(5000), *terms)

    def _amend(self) -> tuple[Word, ...]:
        kind, resource, seen = self._seen()
        record = self._stored(f"resource:{kind}\0{resource}", seen, "none")
        return script_call(
            "amend", self._epoch(), kind, resource, seen, record, f'{{"a":{self._number}}}',
            self._random.randint(-5, 5))

    def _unshelve(self) -> tuple[Word, ...]:
        kind, resource, _ = self._seen()
        owner = self._stored(f"resource:{kind}\0{resource}", "owner", "ann")
        return script_call("unshelve", self._epoch(), kind, resource, owner)

    def _shelf(self) -> tuple[Word, ...]:
        kind, state = self._one(KINDS), self._random.choice(("all", "live"))
        words = [kind, self._one(OWNERS), *([self._one(RESOURCES)] if self._random.random() < 0.3 else [])]
        return script_call("shelf", f"{state}:" + "\0".join(words), *self._page(), self._one(("", "REV")), kind)

    def _index(self) -> tuple[Word, ...]:
        kind, resource, seen = self._seen()
        if self._random.random() < 0.3:
            return script_call("index", self._epoch(), kind, self._one(OWNERS))
        return script_call("index", self._epoch(), kind, self._one(OWNERS), resource, seen, *self._some(TERMS))

    def _with_terms(self) -> tuple[Word, ...]:
        return script_call("with_terms", self._one(KINDS), self._one(OWNERS), *(self._some(TERMS) or TERMS[:1]))

    def _ranked(self) -> tuple[Word, ...]:
        return script_call(
            "ranked", self._one(KINDS), self._one(OWNERS), self._random.choice((1, 2, 100)),
            self._random.randint(0, 2), self._random.randint(1, 5), *self._some(TERMS))

    def _erase_owner(self) -> tuple[Word, ...]:
        """Erase a user's traces; "place" is the user whose responses are stored."""
        return script_call("erase_owner", self._epoch(), self._one((*OWNERS, "place")), *self._some(KINDS))

    # -- scripts of answers, keys and tokens ----------------------------------------------------------------------

    def _answer(self) -> tuple[Word, ...]:
        size = self._random.randint(0, 300)
        return script_call(
            "answer", self._epoch(), f"place\0{self._random.randint(0, 9)}", self._number, self._number - 2000,
            self._random.choice((100, 4)), self._random.choice((100_000, 500)), size, "b" * size)

    def _claim_key(self) -> tuple[Word, ...]:
        place = f"place\0{self._random.randint(0, 9)}"
        return script_call("claim_key", self._epoch(), self._one(REPLICAS), place, 10_000_000)

    def _release_key(self) -> tuple[Word, ...]:
        place = f"place\0{self._random.randint(0, 9)}"
        return script_call("release_key", self._epoch(), self._one(REPLICAS), place)

    def _keys_change(self) -> tuple[Word, ...]:
        removed = self._some(KEY_HASHES, 1)
        stored = [word for one in self._some(KEY_HASHES, 2) for word in (one, f"record {self._number}")]
        seen = self._look("GET", f"{PREFIX}keys.version") if self._random.random() < 0.9 else b"1"
        return script_call(
            "keys_change", self._epoch(), seen if isinstance(seen, bytes) else "0", len(removed), *removed, *stored)

    def _keys_load(self) -> tuple[Word, ...]:
        return script_call("keys_load")

    def _keys_used(self) -> tuple[Word, ...]:
        words = [word for one in self._some(KEY_HASHES) for word in (one, self._when(), "10.0.0.1")]
        return script_call("keys_used", self._epoch(), *words)

    def _tokens(self) -> tuple[Word, ...]:
        """So few tokens a second that no two servers differ by one."""
        return script_call(
            "tokens", self._epoch(), self._one(OWNERS), 0.0001, self._random.choice((5, 100)),
            self._random.randint(1, 4))

    # -- commands -------------------------------------------------------------------------------------------------

    def _plain(self) -> tuple[Word, ...]:
        key, field = "plain:" + self._one(PLAIN_KEYS), self._one(("a", "b", "c", "7", "-3"))
        number = self._random.choice((0, 1, -1, 3, 12, "+5", "01", "1.5", "x", "9223372036854775807"))
        milliseconds = self._random.choice((0, -1, 50_000_000, "+5", "x", "9223372036854775807"))
        edge = self._random.choice(("-inf", "+inf", "(2", 2, "3.5", "(x", "("))
        place = self._random.choice(("-", "+", 0, 1, "3-1", "(2", "(2-0", "x", "5-x"))
        commands: tuple[tuple[Word, ...], ...] = (
            ("GET", key), ("SET", key, number), ("SET", key, field, "NX"), ("SET", key, field, "XX"),
            ("SET", key, field, "PX", 50_000_000), ("SET", key, field, "PX", milliseconds), ("SET", key, field, "BAD"),
            ("INCR", key), ("INCRBY", key, number), ("DECRBY", key, number), ("EXISTS", key, "plain:str"),
            ("DEL", key), ("UNLINK", key, "plain:num"), ("PEXPIRE", key, milliseconds),
            ("TYPE", key), ("HGET", key, field), ("HMGET", key, field, "a"), ("HSET", key, field, number),
            ("HSET", key, field, 1, "z"), ("HDEL", key, field, "a"), ("HEXISTS", key, field),
            ("HINCRBY", key, field, number), ("HLEN", key), ("SADD", key, field, number), ("SREM", key, field),
            ("SCARD", key), ("SISMEMBER", key, field),
            ("ZADD", key, edge, field), ("ZADD", key, number, field), ("ZREM", key, field, "a"),
            ("ZCARD", key), ("ZSCORE", key, field), ("ZRANGE", key, number, self._random.choice((-1, 2, -3))),
            ("ZRANGE", key, number, 3, "REV"), ("ZRANGE", key, edge, "+inf", "BYSCORE"),
            ("ZRANGE", key, "+inf", edge, "BYSCORE", "REV", "LIMIT", self._random.randint(-1, 2), number),
            ("ZRANGE", key, 0, -1, "LIMIT", 0, 1), ("ZRANGE", key, 0, -1, "WITHSCORES"),
            ("ZINTER", 2, key, "plain:zset"), ("XADD", key, f"{self._random.randint(0, 9)}-0", "f", field),
            ("XADD", key, f"{self._number}-1", "f", field), ("XADD", key, number, "f", field),
            ("XRANGE", key, place, "+"), ("XRANGE", key, "-", place, "COUNT", number),
            ("XRANGE", key, place, "+", "COUNT", 2), ("GET",), ("HSET", key, "a"), ("ZRANGE", key, 1),
            ("PUBLISH", self._one(CHANNELS), field), ("PING",), ("ECHO", field), ("PERSIST", key),
            ("EVALSHA", "0" * 40, 0), ("EVALSHA", "0" * 40), ("SCRIPT", "EXISTS", "0" * 40, scripts()["beat"][0]),
        )
        return self._random.choice(commands)
