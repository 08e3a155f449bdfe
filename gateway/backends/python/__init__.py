"""The `python` kind: a user's function as the agent, `settings: {agent: my_module:reply}`."""

from collections.abc import Callable, Mapping

import gateway.model as m

from ..kinds import BackendContext, BackendKind, FeatureSupport, MadeBackend
from .agent_function import PythonSettings, checked_function, load_function
from .backend import PythonBackend


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    wanted = PythonSettings.model_validate(settings)
    function = load_function(wanted, context.folder)
    backend = PythonBackend(
        function, threads=wanted.threads, blocked_seconds=wanted.blocked_seconds, addresses=context.addresses,
    )
    return MadeBackend(backend, module=function.source)


def made_from_function(function: Callable[..., object]) -> MadeBackend:
    """An agent from a function of the program itself. Raises `Problems` if it has parameters that nobody knows."""
    return MadeBackend(PythonBackend(checked_function(function)))


KIND = BackendKind(make=_make, card=m.AgentCard(name="python", title="Python agent"), settings=PythonSettings, support={
    "skills": FeatureSupport(m.SupportLevel.FULL),
    "mcp_servers": FeatureSupport(m.SupportLevel.FULL),
    "memories": FeatureSupport(m.SupportLevel.FULL),
    "user_settings": FeatureSupport(m.SupportLevel.FULL),
})

__all__ = ["KIND", "PythonBackend", "PythonSettings", "made_from_function"]
