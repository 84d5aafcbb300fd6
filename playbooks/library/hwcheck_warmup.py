#!/usr/bin/python
"""Ansible module: warm neighbours and paths between peers, and measure the first message against the rest."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hwcheck_warmup
short_description: Warm neighbours and paths between peers, and measure the first message against the rest
description:
  - Runs on all peers at once. Any two of them meet once, in the rounds of a tournament, and run what both have.
  - It heats what belongs to the node and the fabric, as neighbour entries, path records and tables of switches. Queue
    pairs and memory registrations belong to a process; those of a serving process stay cold.
  - It writes nothing, and every program that it starts ends with it.
  - It runs with its action plugin, which takes peers that are not in the play out of the list.
options:
  peers:
    description: The peers, the same list in the same order on each of them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the peer.
        type: str
        required: true
      address:
        description: IP address of its interface on the fabric.
        type: str
        required: true
      device:
        description: Its RDMA device; perftest's own choice when not given.
        type: str
  name:
    description: Which of the peers this node is.
    type: str
    required: true
  methods:
    description: What two peers do, V(neighbour), V(rping) and V(send_lat).
    type: list
    elements: str
    choices: [neighbour, rping, send_lat]
    default: []
  iterations:
    description: Messages of V(send_lat) between two peers.
    type: int
    default: 100
  gid_index:
    description: GID that V(send_lat) uses; perftest's own choice when not given.
    type: int
  port:
    description: TCP port where peers agree; the programs use the 49 after it.
    type: int
    default: 18515
  round_timeout:
    description: Seconds that two peers wait for each other, and that a program may take.
    type: float
    default: 20.0
  rate:
    description: Most peers in a second that V(neighbour) asks for.
    type: float
    default: 20.0
  results_dir:
    description: Folder on the controller that gets NODE.json, with pairs and measurements.
    type: path
attributes:
  check_mode:
    support: full
    description: Says which programs are missing, and starts none.
  diff_mode:
    support: none
    description: Nothing is changed.
author:
  - The hwcheck developers
"""

EXAMPLES = r"""
- name: Warm two nodes
  hwcheck_warmup:
    name: "{{ inventory_hostname }}"
    peers:
      - {name: gpu-001, address: 10.0.0.1, device: mlx5_0}
      - {name: gpu-002, address: 10.0.0.2, device: mlx5_0}
    methods: [neighbour, send_lat]
"""

RETURN = r"""
pairs:
  description: One for each peer and method, with I(status) (warmed, missing, failed) and I(why).
  returned: always
  type: list
  elements: dict
measurements:
  description: I(peer), I(method), I(samples) in the order in which they were taken, I(first), I(steady) (median of the
    others), I(ratio) and I(unit); V(rping) has I(seconds) of the whole. Told by the client of a pair.
  returned: always
  type: list
  elements: dict
missing:
  description: Programs that are not installed on this node.
  returned: always
  type: list
  elements: str
left_out:
  description: Peers that are not in this play.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402 - documentation stands first in a module
from ansible.module_utils.hwcheck_writers.warmup.run import answer  # noqa: E402 - hwcheck/writers, packed by Ansible


def main() -> None:
    """Take part in the rounds."""
    peer = {
        "name": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "device": {"type": "str"},
    }
    methods = ["neighbour", "rping", "send_lat"]
    module = AnsibleModule(
        argument_spec={
            "peers": {"type": "list", "elements": "dict", "required": True, "options": peer},
            "name": {"type": "str", "required": True},
            "methods": {"type": "list", "elements": "str", "choices": methods, "default": []},
            "iterations": {"type": "int", "default": 100},
            "gid_index": {"type": "int"},
            "port": {"type": "int", "default": 18515},
            "round_timeout": {"type": "float", "default": 20.0},
            "rate": {"type": "float", "default": 20.0},
            "results_dir": {"type": "path"},
        },
        supports_check_mode=True,
    )
    told = answer({**module.params, "check": module.check_mode})
    if told["ok"]:
        module.exit_json(changed=False, **told)
    module.fail_json(msg=told["why"], **told)


if __name__ == "__main__":
    main()
