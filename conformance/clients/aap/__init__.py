"""Clients of AAP: their requirements, the scripted server that they talk to, and a small correct client."""

from pathlib import Path

from conformance.clients.suite import ClientSuite

HERE = Path(__file__).parent


def suite() -> ClientSuite:
    """Everything needed to examine an AAP client."""
    from conformance.clients.aap import judgements
    from conformance.clients.aap.scripted_server import AapScriptedServer
    from conformance.clients.aap.situations import SITUATIONS
    from conformance.clients.judgement import collect_judgements
    from conformance.kit.requirement import read_catalogue

    catalogue = read_catalogue(HERE / "requirements.yaml")
    return ClientSuite(catalogue, SITUATIONS, collect_judgements(judgements), AapScriptedServer)
