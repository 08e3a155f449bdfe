"""The `scripted` kind: an agent that plays a scenario from a YAML file."""

from collections.abc import Mapping

import gateway.model as m
from gateway.backends.kinds import NOTHING, BackendContext, BackendKind, MadeBackend

from .backend import ScriptedBackend, ScriptedSettings
from .scenario_loader import Scenario, load_scenario


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    scenario = ScriptedSettings.model_validate(settings).scenario
    return MadeBackend(ScriptedBackend(load_scenario(context.folder / scenario)))


KIND = BackendKind(
    make=_make, card=m.AgentCard(name="scripted", title="Scripted agent"), settings=ScriptedSettings, support=NOTHING,
)

__all__ = [
    "KIND",
    "Scenario",
    "ScriptedBackend",
    "ScriptedSettings",
    "load_scenario",
]
