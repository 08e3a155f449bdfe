"""What tests of the examiners must know of CAS servers."""

from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body
from conformance.faults.steps import AsyncStep, Step, replace_steps
from tests.support.conformance.damage import Damage
from tests.support.conformance.examination_facts import KEY, Ask, ExaminationFacts


@dataclass
class Damaging:
    """Damages a share of the bodies and events of a server."""

    damage: Damage

    async def answer(self, step: AsyncStep[web.StreamResponse], *given: Any) -> web.StreamResponse:
        return self.damage.answer(await step(*given))

    def frame(self, step: Step[bytes], body: Body) -> bytes:
        head, data, _ = step(body).partition(b"data: ")
        return head + data + orjson.dumps(self.damage.perhaps(body)) + b"\n\n"


def damaged_server(damage: Damage) -> CasServer:
    server = CasServer(KEY)
    replace_steps(server, Damaging(damage))
    return server


async def _make_foreign(ask: Ask) -> None:
    agent = await ask("POST", "/agents", json={"name": "Theirs", "model": "reference"})
    environment = await ask("POST", "/environments", json={"name": "Theirs", "config": {"type": "cloud"}})
    await ask("POST", "/sessions", json={"agent": agent["id"], "environment_id": environment["id"], "title": "Theirs"})
    await ask("POST", "/vaults", json={"display_name": "Theirs"})
    await ask("POST", "/memory_stores", json={"name": "Theirs"})
    form = aiohttp.FormData()
    form.add_field("file", b"Theirs", filename="theirs.txt")
    await ask("POST", "/files", data=form)


FACTS = ExaminationFacts(
    make_foreign=_make_foreign,
    foreign_lists=tuple(
        f"/{kind}?limit=100&include_archived=true"
        for kind in ("sessions", "agents", "environments", "files", "vaults", "memory_stores")
    ),
    damaged=damaged_server,
    quick_requirement="CAS-SESS-02",
    patience=1.0,
    recorded="bare-errors one-error-type no-request-id times-without-zone cursors-mix repetitions-executed "
    "turn-status-missing null-for-empty update-says-ok oldest-first live-agents semicolons-only paths-as-given "
    "token-returned no-schema-version answers-reversed accepted-is-200 strings-kept descending-by-default "
    "idle-of-no-turn one-turn-for-all starts-untold speaks-unasked spans-left-open spans-end-others "
    "reason-as-text thoughts-as-text results-of-nothing stream-error frames-without-id frames-without-event "
    "data-in-two-lines repeated-before-live closed-after-turns trimmed-deltas deltas-stored whole-before-pieces "
    "forms-mixed coordinator-with-parent thread-unnamed ends-swapped models-unnamed",
    lax=(
        "any-agent-taken",
        "config-optional",
        "any-name-taken",
        "empty-uploads-taken",
        "endless-metadata",
    ),
    combined_faults=("bare-errors one-turn-for-all", "closed-after-turns pages-overlap"),
    variations={
        "wordy": "ExtraFields SmallPieces ManySpans OtherStatuses Prologue Company ThreadsNamed OtherWords",
        "sparse": "Chatty ObjectsRefused PiecesReplayed PlainResults OtherSpelling OpaquePages ManyMessages "
        "ProcessedLater OtherEndings",
    },
    sparing=("Sparse", "Sparing"),
    passed_offline=62,
    needs_times=("CAS-EV-04", "CAS-EV-05", "CAS-SESS-03", "CAS-SESS-13", "CAS-SSE-06"),
)
