"""Section stream, contents: in every kind of turn, a stream sends each listed event once, as the list shows it."""

from conformance.cas import scenes
from conformance.cas.examination import CasExamination
from conformance.cas.object_comparison import same_events, told_as_listed, unheard
from conformance.cas.scenes import Scene
from conformance.cas.turns import carries
from conformance.kit import expect
from conformance.kit.case import requirement

SECTION = "telling"
"""The first part of the case names: reports keep it."""


def _is_told(scene: Scene) -> None:
    """Expect what was told, what is listed and what was accepted to be the same; each turn under one id."""
    runs = scene.runs
    told_as_listed(scene.listed, scene.before, scene.told)
    known = {event["id"]: event for event in scene.told}
    for event in scene.accepted:
        if event["id"] not in known:
            listed = [item["id"] for item in scene.listed]
            owner = "CAS-SSE-05" if event["id"] in listed else unheard(scene.listed, event)
            expect.fail(f"the accepted event {event['id']} on the stream", sorted(known), owner)
    same_events("the accepted events", [known[event["id"]] for event in scene.accepted], scene.accepted)
    for run in runs:
        carries(run, str(run.accepted[0].get("turn_id")))


@requirement("CAS-SSE-05", "CAS-EV-01", "CAS-EV-10")
async def thoughts_and_tools_are_told_as_listed(exam: CasExamination) -> None:
    """Turns with thoughts and with tools that run by themselves, and an outcome beside a message."""
    for scene in (await scenes.replies(exam), await scenes.words(exam)):
        _is_told(scene)


@requirement("CAS-SSE-05", "CAS-EV-01", "CAS-EV-10")
async def asks_and_answers_are_told_as_listed(exam: CasExamination) -> None:
    """Turns that wait for a permission, for a result, and for both."""
    for scene in (await scenes.decided(exam), await scenes.returned(exam), await scenes.parallel(exam)):
        _is_told(scene)


@requirement("CAS-SSE-05", "CAS-THR-03", "CAS-EV-10")
async def threads_are_told_as_listed(exam: CasExamination) -> None:
    """Turns that hand something to another agent, which answers or asks first."""
    for scene in (await scenes.forked(exam), await scenes.fork_asked(exam)):
        _is_told(scene)


@requirement("CAS-SSE-05", "CAS-EV-01", "CAS-EV-10")
async def broken_turns_are_told_as_listed(exam: CasExamination) -> None:
    """A turn that fails, one that is interrupted and, if the profile has them, one that is refused or cut off."""
    for scene in (await scenes.failed(exam), await scenes.cut(exam), await scenes.interrupted(exam)):
        _is_told(scene)
