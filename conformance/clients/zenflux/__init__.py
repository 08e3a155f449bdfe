"""Clients of ZenFlux: their requirements, the scripted server that they talk to, and a small correct client."""

from pathlib import Path

from conformance.clients.suite import ClientSuite

HERE = Path(__file__).parent


def suite() -> ClientSuite:
    """Everything needed to examine a ZenFlux client."""
    from conformance.clients.judgement import collect_judgements
    from conformance.clients.zenflux import judgements
    from conformance.clients.zenflux.scripted_server import ZenfluxScriptedServer
    from conformance.clients.zenflux.situations import SITUATIONS
    from conformance.kit.requirement import read_catalogue

    catalogue = read_catalogue(HERE / "requirements.yaml")
    return ClientSuite(catalogue, SITUATIONS, collect_judgements(judgements), ZenfluxScriptedServer)
