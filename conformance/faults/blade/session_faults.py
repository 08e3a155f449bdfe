"""Servers that are wrong about sessions, ids and times."""

from conformance.faults.blade.bending import bending, changing, setting, where, without
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault

LINKS = "session.links_are_of_their_types"
FOUR = ("BL-SESS-12", "BL-SESS-13", "BL-SESS-14", "BL-SESS-16")


@fault("BL-GEN-01", cases="general.what_is_not_optional_is_there")
class TurnWithoutWindow(BladeServer):
    """Turns have no context_window."""

    bends = bending({"turn": without("context_window")})


@fault("BL-GEN-02", cases="general.times_are_in_utc")
class TimesAsNumbers(BladeServer):
    """Times are seconds since 1970."""

    bends = bending({"session": setting(created_at=1767225600)})


@fault("BL-GEN-02", cases="general.times_are_in_utc")
class TimesOfShanghai(BladeServer):
    """Times are local."""

    bends = bending({"session": setting(updated_at="2026-01-01T08:00:00+08:00")})


@fault("BL-GEN-03", cases="general.ids_have_the_prefixes_of_the_examples")
class EntriesWithoutPrefix(BladeServer):
    """Entry ids are bare."""

    bends = bending({"turn": changing("id", lambda name: name.removeprefix("entry_"))})


@fault("BL-SESS-01", cases="session.a_session_is_complete")
class SessionWithoutUser(BladeServer):
    """Sessions belong to nobody."""

    bends = bending({"session": without("user_id")})


@fault("BL-SESS-02", cases="session.a_session_is_found_by_its_id")
class OneIdForAll(BladeServer):
    """Every session says it has the same id."""

    bends = bending({"session": setting(id="sess_same")})


@fault("BL-SESS-03", cases="session.the_intent_is_kept")
class IntentForgotten(BladeServer):
    """The intent is not kept."""

    bends = bending({"session": setting(intent="Untitled")})


@fault("BL-SESS-04", cases="session.a_status_is_one_of_six")
class IdleStatus(BladeServer):
    """A session that has finished is idle."""

    bends = bending({"session": where(setting(status="idle"), status="completed")})


@fault("BL-SESS-05", cases="session.a_new_session_is_created")
class NewIsCompleted(BladeServer):
    """A new session is completed."""

    bends = bending({"session": where(setting(status="completed"), status="created")})


@fault("BL-SESS-06", cases="session.a_busy_session_is_running")
class NeverRunning(BladeServer):
    """A running session looks as if it had not begun."""

    bends = bending({"session": where(setting(status="created"), status="running")})


@fault("BL-SESS-07", cases="session.a_finished_session_is_completed")
class NeverCompleted(BladeServer):
    """A finished session looks as if it still ran."""

    bends = bending({"session": where(setting(status="running"), status="completed")})


@fault("BL-SESS-08", cases="session.a_broken_session_is_failed")
class NeverFailed(BladeServer):
    """A broken session looks finished."""

    bends = bending({"session": where(setting(status="completed"), status="failed")})


@fault("BL-SESS-09", cases="session.a_stopped_session_is_interrupted")
class NeverInterrupted(BladeServer):
    """A stopped session looks finished."""

    bends = bending({"session": where(setting(status="completed"), status="interrupted")})


@fault("BL-SESS-10", cases="session.a_question_makes_a_session_wait")
class NeverWaiting(BladeServer):
    """A session with an open question looks finished."""

    bends = bending({"session": where(setting(status="completed"), status="waiting_for_input")})


@fault("BL-SESS-11", cases="session.times_go_forward")
class UpdatedBeforeCreated(BladeServer):
    """A session was updated before it was created."""

    bends = bending({"session": setting(updated_at="2020-01-01T00:00:00Z")})


@fault(*FOUR, cases=LINKS)
class SolutionAsNumber(BladeServer):
    """solution_id is a number."""

    bends = bending({"session": setting(solution_id=7)})


@fault(*FOUR, cases=LINKS)
class RoleAsList(BladeServer):
    """biz_role_id is a list."""

    bends = bending({"session": setting(biz_role_id=[])})


@fault(*FOUR, cases=LINKS)
class ModelAsObject(BladeServer):
    """model is an object."""

    bends = bending({"session": setting(model={"name": "m"})})


@fault(*FOUR, cases=LINKS)
class ReplayStateAsText(BladeServer):
    """replay_state is a word."""

    bends = bending({"session": setting(replay_state="none")})


@fault("BL-SESS-15", cases="session.flags_are_booleans")
class FlagsAsNumbers(BladeServer):
    """shared is 0 or 1."""

    bends = bending({"session": changing("shared", int)})


@fault("BL-SESS-15", cases="session.flags_are_booleans")
class PersistenceForgotten(BladeServer):
    """No session is persistent, whatever was asked for."""

    bends = bending({"session": setting(is_persistent=False)})
