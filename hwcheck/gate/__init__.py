"""
Is this node ready for a job: what ``hwcheck gate`` decides, and what it remembers between two looks.

Two ways. The fast one (:mod:`hwcheck.gate.fast`) reads a node's raw settings and compares their digests with those of
the last full check that passed; it imports next to nothing and its only answer is "still ready". Whatever differs, or
cannot be told, leads to the full check: the pipeline of ``hwcheck check``, judged by :mod:`hwcheck.gate.decision`.
"""
