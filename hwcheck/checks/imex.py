"""The IMEX domain of a multi-node NVLink system."""

from __future__ import annotations

from collections import Counter

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.findings import Remedy, Urgency

_WORDS = {
    "I": "not reachable", "N": "never connected", "R": "recovering", "D": "disconnected", "A": "authenticating",
    "!V!": "of another version", "!M!": "of another node map",
}  # fmt: skip
_REMEDY = Remedy(
    "act",
    "On the nodes named: see that nvidia-imex runs, that its version equals the driver's on all nodes, and that "
    "/etc/nvidia-imex/nodes_config.cfg is the same everywhere; a restart of the domain kills running multi-node jobs, "
    "so drain the rack first.",
    role="imex",
    disturbs="board",
)


@relation(
    "imex.domain", needs=("imex.nodes",), uses=("imex.matrix", "imex.domain_state"), urgency=Urgency.NOW, remedy=_REMEDY
)
def domain_up(given: Given) -> Answer:
    """
    Every node of the IMEX domain is ready and connected to every other.

    What it checks: node states, one version, every cell of the connection matrix, the domain state.

    Why it matters: memory of other nodes cannot be mapped over NVLink where a connection is missing.

    How to fix: services, version and node list of the nodes named.

    Applies to: nodes in a multi-node NVLink domain (GB200, GB300). The legend of the tool holds the words of every
    fault and is not evidence.

    Source: NVIDIA IMEX service guide; nvidia-imex-ctl.
    """
    nodes = given["imex.nodes"]
    faults = [*_node_faults(nodes), *_matrix_faults(given.maybe("imex.matrix") or ())]
    state = given.maybe("imex.domain_state")
    if state and state != "UP":
        faults.append(f"domain state is {state}")
    if faults:
        return fail(
            f"IMEX domain of {len(nodes)} nodes: {'; '.join(faults)}", observed=faults, expected="all READY and C"
        )
    if not given.maybe("imex.matrix"):
        return unknown(f"{len(nodes)} nodes are READY; who is connected to whom is not in the evidence")
    return ok(f"IMEX domain of {len(nodes)} nodes: all READY and connected", observed=len(nodes))


_READY = ("READY", "UP")
_NOT_READY = (
    "NOT READY", "DOWN", "UNAVAILABLE", "INITIALIZING", "STARTING AUTH SERVER", "WAITING FOR PEERS",
    "WAITING FOR RECOVERY", "RECOVERING", "INIT GPU", "SHUTTING DOWN", "DEGRADED", "INVALID", "DISCONNECTED",
)  # fmt: skip


@relation("imex.state", needs=("imex.state",), urgency=Urgency.NOW, remedy=_REMEDY)
def daemon_is_ready(given: Given) -> Answer:
    """
    The IMEX daemon of this node is ready.

    What it checks: the one word that nvidia-imex-ctl -q answers.

    Why it matters: until the daemon is ready no memory of other nodes can be mapped over NVLink; multi-node jobs fail
    at their start.

    How to fix: see which peer it waits for (nvidia-imex-ctl -N), then service, version and node list there.

    Applies to: nodes in a multi-node NVLink domain (GB200, GB300). A word that is not known is not judged.

    Source: NVIDIA IMEX service guide; nvidia-imex-ctl.
    """
    state = given["imex.state"]
    if state in _READY:
        return ok(f"the IMEX daemon is {state}", observed=state, expected="READY")
    if state in _NOT_READY:
        return fail(
            f"the IMEX daemon is {state}: no NVLink to other nodes until it is READY", observed=state, expected="READY"
        )
    return unknown(f"the IMEX daemon answers {state}, a word that is not known", observed=state, expected="READY")


def _node_faults(nodes: tuple[dict[str, object], ...]) -> list[str]:
    faults = [f"node {node['index']} is {node['state']}" for node in nodes if node["state"] != "READY"][:6]
    versions = Counter(node["version"] for node in nodes if node["version"])
    if len(versions) > 1:
        faults.append("versions differ: " + ", ".join(f"{name} on {count}" for name, count in versions.most_common(4)))
    return faults


def _matrix_faults(rows: tuple[tuple[str, ...], ...]) -> list[str]:
    """Name the pairs that are not connected, the nodes with most of them first."""
    cells = [(row, column, cell) for row, line in enumerate(rows) for column, cell in enumerate(line) if cell != "C"]
    if not cells:
        return []
    row, column, cell = cells[0]
    return [f"{len(cells)} connections are not C, first node {row} to {column}: {cell} ({_WORDS.get(cell, 'unknown')})"]


@relation("imex.log", needs=("imex.log_errors",), uses=("imex.nodes",), remedy=_REMEDY)
def log_errors(given: Given) -> Answer:
    """
    The IMEX log holds no errors.

    What it checks: error lines of nvidia-imex.log, beside the present state of the domain.

    Why it matters: "No matching network interface" means that the daemon started before the network or has a wrong
    node list; it may happen again at the next boot.

    How to fix: order the unit after network-online.target; correct the node list.

    Applies to: multi-node NVLink systems. Nodes that are READY now make an old error a warning.

    Source: NVIDIA IMEX service guide.
    """
    errors = given["imex.log_errors"]
    text = f"{len(errors)} error{'s' * (len(errors) > 1)} in the IMEX log, last: {errors[-1]}"
    remedy = Remedy(
        "write",
        "Make nvidia-imex wait for the network (After=network-online.target) and check the addresses in "
        "nodes_config.cfg.",
        role="imex",
        disturbs="board",
        by_hand="An IMEX domain is set up by the operator of the rack, or by the scheduler for each job.",
    )
    if not errors:
        return skip("no error line")
    return warn(text, observed=len(errors), expected=0, remedy=remedy)
