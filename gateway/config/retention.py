"""The settings of `retention`: how long sessions, files and logs are kept."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, NonNegativeFloat, NonNegativeInt


class RetentionRule(BaseModel, extra="forbid", frozen=True):
    """Keep what has changed within so many days, and the newest so many of it; None means no such bound."""

    days: NonNegativeFloat | None = None
    newest: NonNegativeInt | None = None


def _no_bounds_if_bare(value: object) -> object:
    """Read `sessions:` with nothing after it as a rule without bounds."""
    return {} if value is None else value


Rule = Annotated[RetentionRule, BeforeValidator(_no_bounds_if_bare)]


class UserRetentionSettings(BaseModel, extra="forbid", frozen=True):
    """The rules of one user; a rule that is left out is the rule of all users."""

    sessions: Rule | None = None
    files: Rule | None = None


class RetentionSettings(BaseModel, extra="forbid", frozen=True):
    """The rules of all users, and those of single users; by default everything is kept."""

    sessions: Rule = RetentionRule()
    files: Rule = RetentionRule()
    logs: Rule = RetentionRule()
    users: dict[str, UserRetentionSettings] = {}

    def rule_of(self, user: str, kind: str) -> RetentionRule:
        """The rule for the `sessions` or the `files` of a user."""
        own: RetentionRule | None = getattr(self.users.get(user), kind, None)
        common: RetentionRule = getattr(self, kind)
        return common if own is None else own
