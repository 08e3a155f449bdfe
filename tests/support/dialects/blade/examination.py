"""What tests of the examiners must know of Blade servers."""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.state import Session
from conformance.faults.steps import AsyncStep, replace_steps
from tests.support.conformance.damage import Damage
from tests.support.conformance.examination_facts import KEY, Ask, ExaminationFacts


@dataclass
class Damaging:
    """Damages a share of the bodies and events of a server."""

    damage: Damage

    async def answer(self, step: AsyncStep[web.StreamResponse], request: web.Request, handler: Any) -> Any:
        response = await step(request, handler)
        return response if request.path.startswith("/socket.io/") else self.damage.answer(response)

    def events(self, step: Any, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        return [(name, self.damage.perhaps(body))]


def damaged_server(damage: Damage) -> BladeServer:
    server = BladeServer(KEY)
    replace_steps(server, Damaging(damage))
    return server


async def _make_foreign(ask: Ask) -> None:
    task = {"title": "Theirs", "prompt": "Report.", "cron": "0 9 * * *", "timezone": "Asia/Shanghai"}
    await ask("POST", "/api/sessions", json={"intent": "Theirs", "is_persistent": True})
    await ask("POST", "/api/memories", json={"content": "Theirs", "type": "feedback"})
    await ask("POST", "/api/user/api-keys/", json={"name": "Theirs"})
    await ask("POST", "/api/scheduled-tasks", json=task)


FACTS = ExaminationFacts(
    make_foreign=_make_foreign,
    foreign_lists=(
        "/api/sessions?limit=100",
        "/api/memories?limit=100",
        "/api/user/api-keys/",
        "/api/scheduled-tasks",
    ),
    damaged=damaged_server,
    quick_requirement="BL-SESS-02",
    patience=2.0,
    recorded="turn-without-window session-without-user idle-status updated-before-created history-without-text "
    "one-entry-for-all counting-from-one root-is-main invented-kind role-human never-streaming null-for-empty "
    "usage-by-other-names markdown-blocks text-as-object tool-use-as-text loud-history call-without-name "
    "patch-without-session patch-in-other-loop invented-patch content-without-delta deltas-repeat "
    "content-is-the-delta result-of-no-call two-starts turns-start-twice patches-after-the-end first-delta-lost "
    "results-twice end-without-calls history-backwards parent-changes headless-is-silent output-as-text "
    "question-completes-the-turn several-for-one everybody-hears result-without-headless planning-is-doing "
    "patches-uncounted created-by-id errors-by-another-name plaintext-twice key-without-time",
    lax=("any-task", "any-kind-of-memory", "long-memory", "memory-kept-with-200", "key-without-time"),
    combined_faults=("turn-without-window history-backwards content-is-the-delta", "created-by-id history-backwards"),
    variations={
        "wordy": "ExtraMembers WholeTexts StatusPatches Chatter OtherWrappings ReorderedMembers ThinksFirst "
        "StreamedUsers ResultsAsText SeveralToolsInATurn",
        "sparse": "OtherNumbers SparseMembers EmptyDeltas SmallBlocks OneTurnForATool NoBlocksOfTools NullsInChatEnd "
        "RunsOfThePast QuietAnswers Heartbeats CompactionsAreTold",
    },
    sparing=("SeedsOnly",),
    passed_offline=153,
    has_destructive_cases=True,
    at_origin=True,
)
