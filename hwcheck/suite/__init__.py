"""
The suite: findings as pytest tests, over whatever back end pytest-testinfra reaches a node by.

``pytest --pyargs hwcheck.suite --hosts=ssh://gpu-001`` runs it; a test file of the site next to it uses the same
fixtures (:mod:`.plugin`). A node is read once a session, however many tests ask.
"""
