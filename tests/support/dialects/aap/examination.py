"""What tests of the examiners must know of AAP servers."""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from conformance.faults.aap.server import AapServer
from conformance.faults.steps import AsyncStep, Step, replace_steps
from tests.support.conformance.damage import Damage
from tests.support.conformance.examination_facts import KEY, Ask, ExaminationFacts


@dataclass
class Damaging:
    """Damages a share of the bodies and events of a server."""

    damage: Damage

    async def answer(self, step: AsyncStep[web.StreamResponse], *given: Any) -> web.StreamResponse:
        return self.damage.answer(await step(*given))

    def frame(self, step: Step[bytes], name: str, body: Any) -> bytes:
        return step(name, self.damage.perhaps(body))


def damaged_server(damage: Damage) -> AapServer:
    server = AapServer(key=KEY)
    replace_steps(server, Damaging(damage))
    return server


async def _make_foreign(ask: Ask) -> None:
    await ask("POST", "/sessions", json={"agent": {"name": "able"}})


FACTS = ExaminationFacts(
    make_foreign=_make_foreign,
    foreign_lists=("/sessions",),
    damaged=damaged_server,
    quick_requirement="AAP-META-01",
    patience=5.0,
    recorded="version-as-text option-without-default capabilities-as-booleans tool-without-parameters created-with-200 "
    "runs-on-creation secret-shown secret-listed deleted-with-200 every-tool-enabled seed-forgotten pages-overlap "
    "both-histories-at-once trimmed-messages results-forgotten open-calls-hidden empty-turns-taken "
    "options-replaced no-start two-stops words-after-the-stop start-for-every-message stream-as-text "
    "deltas-and-wholes parts-in-pieces input-as-text other-call-ids result-before-call client-results-echoed "
    "invented-reason none-drops-thinking delta-drops-blanks cut-on-failure permission-never-asked granted-not-run "
    "trust-ignored reasoning-blocks refusal-in-plain-text refusal-as-object",
    lax=(
        "created-with-200",
        "any-agent-will-do",
        "unknown-tools-taken",
        "select-takes-anything",
        "clashes-taken",
    ),
    combined_faults=(
        "option-without-default invented-reason calls-by-another-name",
        "one-id-for-all no-room-ever",
    ),
    variations={
        "wordy": "CommentsAndCarriageReturns ExtraMembers StringsAndBlocks LetterByLetter OtherRefusals ResultsAtOnce",
        "sparse": "SparseInfo ManyMessages NewestFirst ClockMovesOn NameIgnored",
    },
    passed_offline=40,
    needs_times=("AAP-TURN-04",),
)
