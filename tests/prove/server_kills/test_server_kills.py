"""The tests of servers that die, with servers in processes of their own that are killed (SIGKILL)."""


__all__ = [
]
