"""Clients of ZenFlux: what they are held to, the stage that plays ZenFlux to them, and a small correct client."""

from pathlib import Path

from conformance.clients.suite import ClientSuite

HERE = Path(__file__).parent


def suite() -> ClientSuite:
    """Everything needed to examine a ZenFlux client."""
    from conformance.clients.judgement import collect_judgements
    from conformance.clients.zenflux import judgements
    from conformance.clients.zenflux.situations import SITUATIONS
    from conformance.clients.zenflux.stage import ZenfluxStage
    from conformance.kit.requirement import read_catalogue

    catalogue = read_catalogue(HERE / "requirements.yaml")
    return ClientSuite(catalogue, SITUATIONS, collect_judgements(judgements), ZenfluxStage)
