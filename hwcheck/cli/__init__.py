"""The command line: the composition root. It alone knows all adapters."""
