"""What is lost when a stream of AAP is translated, beside what the tables declare."""

ONLY_SHOWN = {
    # Blade has no id of the task that failed, and every reading makes one up.
    "blade": {"/rollback": ["rollbacks"]},
}
"""By target and directive, features that a stream cannot tell although AAP can."""
