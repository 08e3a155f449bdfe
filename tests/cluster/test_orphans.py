"""Sessions of dead servers are found by all who live, at a cost that does not grow with the number of servers."""

from collections.abc import Sequence

from gateway.storage.redis.scripts import scripts
from tests.prove.simulation.redis_replies import Reply
from tests.prove.simulation.redis_server import RedisProtocol, SimulatedRedis

LEASE = 10.0


class Fleet(SimulatedRedis):
    """A Redis in which servers live and die, and which counts what scripts ask."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.steps = 0
        super().__init__(lambda: self.now)
        self._asker = RedisProtocol(self, 0)
        for _, text in scripts().values():
            self.answer([b"SCRIPT", b"LOAD", text.encode()], self._asker)
        self.run("begin", "1", "epoch")

    def _carry_out(self, words: Sequence[bytes]) -> Reply:
        self.steps += 1
        return super()._carry_out(words)

    def run(self, name: str, *given: str | int) -> Reply:
        words = ["EVALSHA", scripts()[name][0], "0", "p:", *map(str, given)]
        [reply] = self.answer([word.encode() for word in words], self._asker)
        assert not isinstance(reply, Exception), reply
        return reply

    def beat(self, *servers: str) -> None:
        for server in servers:
            self.run("beat", "epoch", server, round(LEASE * 1000), "1")

    def open_turn(self, server: str, session: str) -> None:
        for words in (("SADD", f"p:open:{server}", session), ("HSET", f"p:s:{session}", "holder", server)):
            self.answer([word.encode() for word in words], self._asker)

    def orphans(self, server: str) -> list[str]:
        found = self.run("orphans", "epoch", server, 32)
        assert isinstance(found, list)
        return sorted(one.decode() for one in found)


def many(count: int, word: str) -> list[str]:
    return [f"{word}{number}" for number in range(count)]


def test_a_look_costs_as_much_among_forty_servers_as_among_twenty() -> None:
    steps = []
    for count in (20, 40):
        fleet = Fleet()
        fleet.beat(*many(count, "server"))
        before = fleet.steps
        assert fleet.orphans("me") == []
        steps.append(fleet.steps - before)
    assert steps[0] == steps[1]


def test_all_dead_servers_are_found_among_many_that_live() -> None:
    fleet = Fleet()
    dead, living = many(12, "dead"), many(30, "living")
    fleet.beat(*dead)
    for server in dead:
        fleet.open_turn(server, f"of-{server}")
    fleet.now += 2 * LEASE
    fleet.beat(*living)
    found = set[str]()
    for _ in range(60):
        found |= {session for server in living for session in fleet.orphans(server)}
    assert found == {f"of-{server}" for server in dead}


def test_whoever_was_found_dead_is_looked_after_by_everybody_at_once() -> None:
    fleet = Fleet()
    fleet.beat("dead")
    fleet.open_turn("dead", "one")
    fleet.now += 2 * LEASE
    fleet.beat(*many(40, "living"))
    while not fleet.orphans("living0"):
        pass
    assert [fleet.orphans(server) for server in many(40, "living")] == [["one"]] * 40


def test_a_server_that_comes_back_is_not_looked_after_any_more_and_nobody_takes_over_its_own() -> None:
    fleet = Fleet()
    fleet.beat("slept", "other")
    fleet.open_turn("slept", "one")
    fleet.now += 2 * LEASE
    fleet.beat("other")
    assert fleet.orphans("other") == ["one"]
    assert fleet.orphans("slept") == [], "its own sessions are not those of a dead server"
    fleet.beat("slept")
    assert fleet.orphans("other") == []
