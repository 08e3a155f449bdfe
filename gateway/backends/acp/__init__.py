"""The `acp` kind: an agent of the Agent Client Protocol, as a child process."""

from collections.abc import Mapping

import gateway.model as m
from gateway.backends.kinds import BackendContext, BackendKind, FeatureSupport, MadeBackend
from gateway.backends.setting_types import settings_context

from .agent import AcpSettings
from .backend import AcpBackend


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    home = context.folder.resolve()
    return MadeBackend(AcpBackend(
        AcpSettings.model_validate(settings, context=settings_context(home)), home, addresses=context.addresses,
        trust_uploads=context.trust_uploads,
    ))


KIND = BackendKind(
    make=_make,
    card=m.AgentCard(
        name="acp", title="ACP agent", capabilities=m.AgentCapabilities(images=("data", "http"), client_tools=False),
    ),
    settings=AcpSettings,
    support={
        "skills": FeatureSupport(m.SupportLevel.FALLBACK, "files in the session's folder; the first prompt names them"),
        "mcp_servers": FeatureSupport(
            m.SupportLevel.PARTIAL, "those that the agent can use, from the first prompt on; with all of their tools",
        ),
        "memories": FeatureSupport(m.SupportLevel.FALLBACK, "text before the message that they fit"),
        "user_settings": FeatureSupport(
            m.SupportLevel.PARTIAL, "the model and the options that the agent itself offers",
        ),
    },
)

__all__ = ["KIND", "AcpBackend", "AcpSettings"]
