"""Which refusals a fleet had reason for, while its servers die, sleep or are cut off; what is left was wrong."""

from collections import Counter
from collections.abc import Iterable

from tests.prove.crash.history import History, Violation, times_settled, times_there

UNREACHABLE = ("cannot be reached", "overloaded", "OVERLOADED")
"""For want of Redis, or of the server that holds the session."""
UNKNOWN = ("it is not known whether", "has no result to return", "cannot be returned here")
"""Nobody can tell whether it was done: whoever did it, or did not, cannot be asked."""
SETTLED = ("pending",)
"""An answer was given before, by a client whose ear was at a server that slept, or who was not told it was taken."""
BUSY = ("already has an active chat", "a turn is running in this session")
"""A message of the client's own runs, of which it was told nothing."""


def unexplained_refusals(found: Iterable[Violation], history: History) -> list[Violation]:
    """Those for which there was no reason. That nothing is lost or said twice is judged beside this."""
    left, unheard = list[Violation](), Counter(unacknowledged_sessions(history))
    for one in found:
        if any(why in one.words for why in BUSY):
            unheard[one.session] -= 1
            if unheard[one.session] < 0:
                left.append(one)
        elif not any(why in one.words for why in (*UNREACHABLE, *UNKNOWN, *SETTLED)) and not _answered_before(
                one, history):
            left.append(one)
    return left


def _answered_before(refusal: Violation, history: History) -> bool:
    """Whether nothing waits for this answer since an earlier one settled the ask, whose client was told nothing."""
    return any(
        f"nothing waits under '{one.request_id}'" in refusal.words and one.session == refusal.session
        and times_settled(one.request_id, history.logs.get(one.session, ())) and times > 1
        for one, times in Counter(
            one._replace(at=0.0) for one in history.answered if not one.taken).items()
    )


def unacknowledged_sessions(history: History) -> list[str]:
    """The session of each message that was carried out without its client's being told. After a message of which it
    heard nothing, a client says the next one as soon as the session rests: each is reason for one refusal at most."""
    taken = {(said.session, said.words) for said in history.said if said.taken}
    doubtful = dict.fromkeys((said.session, said.words) for said in history.said if not said.taken)
    return [
        session for session, words in doubtful
        if (session, words) not in taken and times_there(words, history.logs.get(session, ()))
    ]
