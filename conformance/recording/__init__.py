"""Recording: a proxy that passes live traffic through unchanged and writes it down without its secrets."""
