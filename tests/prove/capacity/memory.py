"""Measures the memory of a replica and of Redis: per session, per turn, per delta, per stream."""

from pathlib import Path

from bench.load import create_sessions
from bench.protocols import words
from gateway.capacity import MemoryCheck, RedisMemory, ReplicaMemory

from .fleet import Fleet, running_fleet
from .loads import Load, readers, turns_in_batches
from .measurement import Size, Tell


def measured_memory(folder: Path, size: Size, tell: Tell) -> tuple[ReplicaMemory, RedisMemory, list[MemoryCheck]]:
    """What each thing takes, and whether twice as many take twice as much."""
    replica = _replica(folder, size)
    tell(f"memory: {replica}")
    redis = _redis(folder, size)
    tell(f"memory: {redis}")
    return replica, redis, [*_replica_checks(folder, size, replica), *_redis_check(folder, size, redis)]


def _replica(folder: Path, size: Size) -> ReplicaMemory:
    with running_fleet(folder, 1, 1) as fleet:
        process = fleet.replica_bytes()
        sessions = create_sessions(fleet.servers[0], size.memory_sessions)
        session = (fleet.replica_bytes() - process) / len(sessions)
        turn = _growth_of_turns(fleet, sessions[:size.memory_sessions // 4], size)
    running = _growth_of_streams(folder, _open_streams(size, 0)) / size.memory_streams
    watched = _growth_of_streams(folder, _open_streams(size, 2)) / size.memory_streams
    return ReplicaMemory(process=float(process), session=round(session), turn=round(turn),
                         running_turn=round(running), stream=round((watched - running) / 2))


def _growth_of_turns(fleet: Fleet, sessions: list[str], size: Size) -> float:
    """What a turn leaves in the cache: two more turns for each session, after a first one."""
    talk = words(size.deltas)
    turns_in_batches(fleet.servers[0], sessions, talk)
    before = fleet.replica_bytes()
    for _ in range(2):
        turns_in_batches(fleet.servers[0], sessions, talk)
    return max(0.0, (fleet.replica_bytes() - before) / 2 / len(sessions))


def _open_streams(size: Size, watchers: int) -> Load:
    return Load(replicas=1, streams=size.memory_streams, deltas=size.deltas, watchers=watchers)


def _growth_of_streams(folder: Path, load: Load) -> float:
    """How much a new replica grows while the turns of the load run; its sessions are made before."""
    with running_fleet(folder, 1, 1) as fleet, readers(load, fleet.servers) as found:
        before = fleet.replica_bytes()
        return float(max(fleet.replica_bytes() - before for _ in found.play()))


def _replica_checks(folder: Path, size: Size, sizes: ReplicaMemory) -> list[MemoryCheck]:
    load = Load(replicas=1, streams=2 * size.memory_streams, deltas=size.deltas, watchers=1)
    with running_fleet(folder, 1, 1) as fleet:
        create_sessions(fleet.servers[0], 2 * size.memory_sessions - load.streams)
        with readers(load, fleet.servers) as found:
            taken = max(fleet.replica_bytes() for _ in found.play())
    expected = (sizes.process + 2 * size.memory_sessions * sizes.session
                + load.streams * (sizes.running_turn + sizes.stream))
    name = (f"a replica with {2 * size.memory_sessions:,} sessions, {load.streams:,} running turns and "
            f"{load.streams:,} further streams")
    return [MemoryCheck(name=name, measured=float(taken), model=expected)]


def _redis(folder: Path, size: Size) -> RedisMemory:
    with running_fleet(folder, 1, 1) as fleet:
        process = fleet.redis_bytes()
        create_sessions(fleet.servers[0], size.memory_sessions)
        session = (fleet.redis_bytes() - process) / size.memory_sessions
        short, long = (_growth_of_redis(fleet, size.memory_streams, deltas) for deltas in (1, size.deltas))
    delta = (long - short) / (size.deltas - 1)
    turn = max(0, round(short - delta))
    return RedisMemory(process=float(process), session=round(session), turn=turn, delta=round(delta, 1))


def _growth_of_redis(fleet: Fleet, streams: int, deltas: int) -> float:
    """By how much Redis grows with a turn of so many deltas."""
    with readers(Load(replicas=1, streams=streams, deltas=deltas), fleet.servers) as found:
        before = fleet.redis_bytes()
        list(found.play())
        return (fleet.redis_bytes() - before) / streams


def _redis_check(folder: Path, size: Size, sizes: RedisMemory) -> list[MemoryCheck]:
    streams, deltas = 2 * size.memory_streams, size.deltas * 3 // 4
    with running_fleet(folder, 1, 1) as fleet:
        before = fleet.redis_bytes()
        _growth_of_redis(fleet, streams, deltas)
        taken = fleet.redis_bytes() - before
    expected = streams * (sizes.session + sizes.turn + deltas * sizes.delta)
    name = f"Redis with {streams:,} more sessions with a turn of {deltas} deltas each"
    return [MemoryCheck(name=name, measured=float(taken), model=expected)]
