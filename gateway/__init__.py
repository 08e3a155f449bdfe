"""The house: knows what an agent conversation is, and no dialect by name."""
