"""Wrong servers that take a program: what rows of faults.yaml cannot say."""
