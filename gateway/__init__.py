"""The core: knows what an agent conversation is, and no served dialect by name."""
