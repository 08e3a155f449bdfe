"""Where the demo agent acts: its pen, its tools, and the few things its directives have in common.

Replays: the turns of a recorded session happen again in a new one, at their own pace or faster.
"""

from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]
