"""Reports of verdicts: terminal text, JSON, JSON lines, JUnit. Whatever comes from a node is escaped here."""
