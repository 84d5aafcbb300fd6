"""
Ready-made integrations of ``hwcheck gate``; ``hwcheck gate --print NAME`` writes them out.

All are shell of the POSIX kind: what they pass on from a node is an argument, never a part of a command.
"""

INTEGRATIONS: dict[str, tuple[str, ...]] = {
    "slurm-prolog": ("hwcheck-slurm-prolog.sh",),
    "slurm-health": ("hwcheck-slurm-health.sh",),
    "systemd": ("hwcheck-gate.service", "hwcheck-gate.timer"),
    "npd": ("hwcheck-npd.json", "hwcheck-npd.sh"),
    "ci": ("hwcheck-ci.yml",),
}
"""Name → its files."""
