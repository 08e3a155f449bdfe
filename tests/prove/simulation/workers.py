"""Many worlds on several cores, each in a process of its own: whatever a world leaves behind goes with its process."""

import gc
import multiprocessing
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from tests.prove.simulation.plan import plan_of
from tests.prove.simulation.world import run_world, simulation

Given = TypeVar("Given")
Result = TypeVar("Result")
WORKER = ExitStack()
"""What holds for as long as a process lives that starts worlds."""


def run_many(work: Callable[[Given], Result], given: Iterable[Given], workers: int) -> Iterator[Result]:
    """Do the work for each of those given, in no certain order; the work starts worlds by `in_child`."""
    with multiprocessing.get_context("fork").Pool(workers, _begin) as pool:
        yield from pool.imap_unordered(work, given, chunksize=1)


def _begin() -> None:
    """Load what worlds have in common, by a short one: processes that are forked from this one have it."""
    WORKER.enter_context(simulation())
    for seed in (0, 1):
        run_world(replace(plan_of(seed), clients=(0, 1, 2, 3), turns=1, faults=()))
    gc.collect()
    gc.freeze()


def run_apart(work: Callable[[Given], Result], given: Given) -> Result:
    """Do the work for this one in a process that ends with it."""
    return in_child(lambda: work(given))


def in_child(work: Callable[[], Result]) -> Result:
    """Do the work in a process that ends with it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _tell(work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        content = told.read()
    os.waitpid(child, 0)
    if not content:
        raise RuntimeError("the process of a world died; what it said is above")
    return pickle.loads(content)  # type: ignore[no-any-return]


def _tell(work: Callable[[], Result], writer: int) -> None:
    """Write the result down, and end this process without any farewell."""
    try:
        with os.fdopen(writer, "wb") as out:
            out.write(pickle.dumps(work()))
    except BaseException:  # noqa: BLE001  # the process ends here, whatever happened
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
