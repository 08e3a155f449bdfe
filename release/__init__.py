"""Makes a release: artefacts that anybody can build again byte for byte, their bill of materials, and the next version."""
