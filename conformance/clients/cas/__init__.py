"""Clients of CAS: their requirements, the scripted server that they talk to, and a small correct client."""

from pathlib import Path

from conformance.clients.suite import ClientSuite

HERE = Path(__file__).parent


def suite() -> ClientSuite:
    """Everything needed to examine a CAS client."""
    from conformance.clients.cas import judgements
    from conformance.clients.cas.scripted_server import CasScriptedServer
    from conformance.clients.cas.situations import SITUATIONS
    from conformance.clients.judgement import collect_judgements
    from conformance.kit.requirement import read_catalogue

    catalogue = read_catalogue(HERE / "requirements.yaml")
    return ClientSuite(catalogue, SITUATIONS, collect_judgements(judgements), CasScriptedServer)
