"""
Readers: what is this text? Posted files, evidence directories and bundles → evidence.

Nothing is written and nothing is extracted: archives are read as streams, in memory and within limits.
"""

from hwcheck.readers.posted import read_paths

__all__ = ["read_paths"]
