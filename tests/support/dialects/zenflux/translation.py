"""What is known of streams that are translated to and from ZenFlux, beside what the tables declare."""

ONLY_SHOWN = {
    # ZenFlux tells the results of a message in the next one, so that more seems to wait when a turn stops in between.
    # It does not tell what a sub-agent's question was answered with.
    "aap": {"/parallel": ["permissions"], "/fork-ask": ["tool_results"]},
}
"""By target and directive, features that a stream cannot tell although ZenFlux can."""
FIRST_WORDS = b'"delta":"hello "'
"""What is in the stream as soon as the agent has begun to say hello."""
