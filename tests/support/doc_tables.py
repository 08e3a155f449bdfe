"""Tables of the documentation that follow from the mapping tables."""

from collections.abc import Mapping

from mappings.language import FEATURES
from tests.support.dialect_tables import DIALECTS, table


def support_table(titles: Mapping[str, str] | None = None) -> str:
    """What each dialect can carry, in Markdown; the columns are the dialects by their titles."""
    names = titles if titles is not None else {name: name for name in DIALECTS}
    rows = [["feature", *names], *(
        [f"`{feature}`", *(str(table(name).support[feature]) for name in names.values())] for feature in FEATURES)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
