"""The translation alone, without sockets or tasks: a model's bytes to canonical events to a dialect's bytes."""

import importlib
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import gateway.model as m
from bench.contenders import KEY
from bench.measure import BenchFailure, figure
from bench.model_service import answer
from bench.protocols import AapProtocol, Workload, words
from bench.report import Row
from gateway.backends.llm.openai import ChatCompletionsDecoder
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, SecretFilter, StreamAssembler
from gateway.client.transport.sse_decoder import SseDecoder
from gateway.ports import BackendEvent, Frame, Projector
from mappings.language import builtin_table

DIALECT, OURS = "aap", "dragoman"
READ = 16
"""So many events are read at a time, as from a busy socket."""


def translation(effort: tuple[int, int]) -> Iterator[Row]:
    deltas, rounds = effort
    talk = words(deltas)
    its = importlib.import_module(f"adapters.{DIALECT}").DIALECT
    found = [_translated(talk, its.projector(builtin_table(its), its.default_options)) for _ in range(rounds)]
    for name, place in (("model's bytes to events", 0), ("events to the dialect's bytes", 1)):
        micros = [1e6 * times[place] / deltas for times in found]
        yield Row("upstream", f"translation alone: {name}", "µs/delta", {OURS: figure(micros)})
    whole = [1e6 * sum(times) / deltas for times in found]
    yield Row("upstream", "translation alone, both", "µs/delta", {OURS: figure(whole)})


def _translated(talk: Workload, outbound: Projector) -> tuple[float, float]:
    """Seconds of CPU for each half of the way; the output is checked."""
    events = answer(talk)
    pieces = [b"".join(events[at:at + READ]) for at in range(0, len(events), READ)]
    started = time.process_time()
    said = decode_response(pieces)
    between = time.process_time()
    frames = encode_frames(said, outbound)
    ended = time.process_time()
    AapProtocol().check(b"".join([frame.body for frame in frames]), talk)
    return between - started, ended - between


def decode_response(pieces: Sequence[bytes]) -> list[BackendEvent]:
    """The model's response as canonical events, as the backend makes them."""
    numbers = count(1)
    assembler = StreamAssembler(lambda prefix: f"{prefix}_{next(numbers)}", secret_filter=SecretFilter((KEY,)))
    decoder = SseDecoder()
    reading = ChatCompletionsDecoder(assembler, Toolbox.empty(), set(), HttpClient("http://127.0.0.1"))
    said = assembler.begin(model="bench")
    for piece in pieces:
        reading.feed(decoder.feed(piece), said)
    if not reading.is_closed:
        raise BenchFailure("the answer of the model was not read to its end")
    return [*said, *assembler.finish(reading.stop, reading.usage)]


def encode_frames(said: Sequence[BackendEvent], outbound: Projector) -> list[Frame]:
    """The events as bytes of a dialect, each event in a record of its own as in the engine."""
    ended = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
    events: list[Any] = [m.TurnStarted(command_id="c"), *said, ended]  # in the root scope events are bare
    frames = list[Frame]()
    for seq, event in enumerate(events, 1):
        record = m.Record(seq=seq, at=1.7e9, session_id="sess_bench", turn_id="turn_1", event=event)
        frames += outbound.feed(record)
    return frames


