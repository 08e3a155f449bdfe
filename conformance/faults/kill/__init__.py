"""The kill matrix: which damage to a correct server's traffic the examiners notice, fault by fault."""
