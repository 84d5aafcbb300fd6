#!/usr/bin/python
"""Ansible module: read what hwcheck does not change by itself, and advise."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hwcheck_advise
short_description: Read what hwcheck does not change by itself, and advise
description:
  - Compares what a node says with what is wanted, and returns what to do as sentences in their order.
  - It changes nothing and asks no server.
options:
  topic:
    description:
      - V(driver_stack) compares loaded, installed and wanted versions of the driver and what belongs to it.
      - V(nic_firmware) compares running, flashed and wanted firmware of RDMA adapters.
      - V(acs) reads access control on the ports between GPUs and adapters.
      - V(placement) says which NUMA nodes have CPUs, and where GPUs and adapters are.
    type: str
    required: true
    choices: [driver_stack, nic_firmware, acs, placement]
  versions:
    description: Wanted versions, by package (V(driver_stack)) or by PSID of the board (V(nic_firmware)). Quote them.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: It only reads.
  diff_mode:
    support: none
    description: It only reads.
author:
  - The hwcheck developers
"""

EXAMPLES = r"""
- name: Compare firmware of the adapters with what the site has agreed on
  hwcheck_advise:
    topic: nic_firmware
    versions:
      MT_0000000838: "28.43.2566"
  register: firmware

- name: Stop where something is to be done
  ansible.builtin.assert:
    that: not firmware.differs
    fail_msg: "{{ firmware.advice | join('; ') }}"
"""

RETURN = r"""
found:
  description: What the node says.
  returned: always
  type: dict
unknown:
  description: What could not be read, and why.
  returned: always
  type: list
  elements: str
differs:
  description: Whether something is to be done; null where that is not known.
  returned: always
  type: bool
advice:
  description: What to do, in order.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402 - documentation stands first in a module
from ansible.module_utils.hwcheck_writers.advice.topics import answer  # noqa: E402 - hwcheck/writers, packed by Ansible


def main() -> None:
    """Read and advise."""
    module = AnsibleModule(
        argument_spec={
            "topic": {
                "type": "str",
                "required": True,
                "choices": ["driver_stack", "nic_firmware", "acs", "placement"],
            },
            "versions": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    told = answer(module.params)
    if told["ok"]:
        module.exit_json(changed=False, **told)
    module.fail_json(msg=told["why"], **told)


if __name__ == "__main__":
    main()
