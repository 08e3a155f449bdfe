"""What tests of the examiners must know of ZenFlux servers."""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from conformance.faults.steps import AsyncStep, Step, replace_steps
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from tests.support.conformance.damage import Damage
from tests.support.conformance.examination_facts import Ask, ExaminationFacts

SOMEBODY = {"user_id": "somebody-else", "title": "Not yours"}
TICK_SECONDS = 1


@dataclass
class Damaging:
    """Damages a share of the bodies, frames and events of a server."""

    damage: Damage

    async def answer(self, step: AsyncStep[web.StreamResponse], *given: Any) -> web.StreamResponse:
        return self.damage.answer(await step(*given))

    async def send(self, step: AsyncStep[None], line: Line, frame: Any) -> None:
        await step(line, self.damage.perhaps(frame))

    def chunk(self, step: Step[bytes], envelope: Any) -> bytes:
        return step(self.damage.perhaps(envelope))


def damaged_server(damage: Damage) -> ZenfluxServer:
    server = ZenfluxServer()
    replace_steps(server, Damaging(damage))
    return server


async def _make_foreign(ask: Ask) -> None:
    await ask("POST", "/api/v1/conversations", params=SOMEBODY)


FACTS = ExaminationFacts(
    make_foreign=_make_foreign,
    foreign_lists=(
        "/api/v1/conversations?user_id=somebody-else",
        "/api/v1/sessions",
        "/api/v1/human-confirmation/pending",
    ),
    damaged=damaged_server,
    quick_requirement="ZF-WS-03",
    patience=0.8,
    at_once=16,
    recorded="binary-frames unknown-frames answered-twice any-method-chats user-not-needed error-as-text "
    "no-frame-numbers ticks-in-seconds no-envelope data-as-null ids-twice numbered-from-zero words-after-messages "
    "other-conversation stale-message-ids times-go-back no-session-start no-conversation-start indexes-from-one "
    "indexes-with-gaps usage-too-late results-last words-after-the-end notes-in-blocks overlapping-blocks "
    "no-message-stop start-without-user end-without-duration flat-error no-done words-after-done role-of-an-agent "
    "stop-with-usage not-mirrored closes-the-first text-at-once call-without-input result-of-another typed-deltas "
    "stray-deltas input-in-python stream-as-text code-is-zero errors-with-data",
    lax=("message-not-needed", "any-agent", "always-new", "no-payload", "other-session"),
    combined_faults=("no-done without-user",),
    variations={
        "wordy": "Generous InTheBackground",
        "sparse": "OneMessage OtherBytes RefusesWhenBusy OtherWords",
        "terse": "Terse ReadOnly",
    },
    variations_keep_shoulds=False,
    passed_offline=194,
    needs_times=("ZF-WS-24",),
    has_destructive_cases=True,
    at_origin=True,
    own_settings={"tick_seconds": TICK_SECONDS},
    own_profile={"heartbeat": TICK_SECONDS},
    leaves_something=True,
)
