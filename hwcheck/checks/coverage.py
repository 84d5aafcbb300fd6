"""What the engine itself answers: whether every source answered, and whether anything could be judged at all."""

REACHABLE = "evidence.reachable"
COMPLETE = "evidence.complete"
JUDGED = "evidence.judged"
SITE_TESTS = "evidence.site_tests"
MEASURED = "evidence.measured"
OWN_CHECKS = {
    REACHABLE: (
        "Every node that was named has answered",
        """What it checks: that the node could be reached, let us in, and ran the program that reads it.

Why it matters: a node that does not answer is not a healthy one. It stays a line of the report, and of a bundle.

How to fix: the finding says which step failed (name, network, host key, login, sudo, Python) and what to do about it.

Applies to: nodes read over the network; one that answers has no such finding.

Source: by design of this tool: could not tell is never fine.
""",
    ),
    COMPLETE: (
        "Every source that was asked has answered",
        """What it checks: that every source which was asked gave its whole answer. A source that timed out, was denied,
broke off or could not be understood is named, with the facts that it would have given.

Why it matters: what was asked and not told is unknown, and unknown is never fine. Each check that needs one of those
facts is unknown too.

How to fix: run the source again, as root where it was denied, and give its output whole. A source that never answers
is a symptom itself: look at the kernel log for a hung driver.

Applies to: all evidence. A source that was never asked, or a tool that is not there, is skipped.

Source: by design of this tool: could not tell is never fine.
""",
    ),
    JUDGED: (
        "Something could be judged",
        """What it checks: that at least one check beside those of the evidence and the platform got an answer.

Why it matters: where every check is skipped, nothing is known of the node. That must not look like a healthy one.

How to fix: give more: nvidia-smi -q, dmesg, ibstat; for a measurement, the output that names the GPU model too.

Applies to: all evidence.

Source: by design of this tool: could not tell is never fine.
""",
    ),
    MEASURED: (
        "The node was measured as it was asked to be",
        """What it checks: that a node which was to be put under load really was: it was idle, answered to the end, did
not restart meanwhile, and gave at least one figure.

Why it matters: a node that falls over under load, or on which somebody works, has no figures. That must not look like
a node whose figures are right.

How to fix: the finding says what was in the way. Wait for who works on it, or name a program that is no work
(--idle-ignore); look at the console and the kernel log of a node that restarted or fell silent.

Applies to: hwcheck baseline run, and acceptances unless --no-baseline is given.

Source: by design of this tool: could not tell is never fine.
""",
    ),
    SITE_TESTS: (
        "The site's own tests pass",
        """What it checks: that the tests which hwcheck accept --suite names pass on this node.

Why it matters: a site knows what its jobs need and no profile can say: mounts, images, a licence.

How to fix: run the test alone (pytest --hosts=ssh://NODE FILE); its own message says what it wants.

Applies to: acceptances with --suite.

Source: the site's test files.
""",
    ),
}
"""Checks that the engine answers itself: id → title and the text that explain prints."""
