"""The `agui` kind: an agent behind an AG-UI URL."""

from collections.abc import Mapping

import gateway.model as m
from gateway.backends.kinds import BackendContext, BackendKind, FeatureSupport, MadeBackend

from .backend import AguiBackend, AguiSettings


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    return MadeBackend(AguiBackend(AguiSettings.model_validate(settings), context.addresses))


KIND = BackendKind(
    make=_make,
    card=m.AgentCard(name="agui", title="AG-UI agent", capabilities=m.AgentCapabilities(images=("data", "http"))),
    settings=AguiSettings,
    support={
        "skills": FeatureSupport(m.SupportLevel.FALLBACK, "read by a tool that the gateway runs"),
        "mcp_servers": FeatureSupport(m.SupportLevel.FALLBACK, "their tools, which the gateway runs"),
        "memories": FeatureSupport(m.SupportLevel.FULL),
        "user_settings": FeatureSupport(m.SupportLevel.PARTIAL, "forwardedProps have the model and the options"),
    },
)

__all__ = ["KIND", "AguiBackend", "AguiSettings"]
