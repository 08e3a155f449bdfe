"""Makes a release: artefacts that can be built again byte for byte, a bill of materials, and the next version."""
