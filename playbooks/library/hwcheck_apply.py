#!/usr/bin/python
"""Ansible module: bring about settings of a node, journalled before they are written."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hwcheck_apply
short_description: Bring about settings of a GPU node, each journalled before it is written
description:
  - Takes the whole list of settings of a node in one call and writes what differs, each by the mechanism that it names.
  - Reads every setting before and after; one that was written and does not count has failed, and is taken back.
  - Before the first write it takes the node's lease, proves that nobody works on the node unless nothing is disturbed,
    and writes down what was there, so that C(stage=undo) with the same I(run) restores it.
  - It runs with its action plugin, which keeps a copy of the journal on the controller (I(journal_dir)) between the
    journal and the first write.
options:
  settings:
    description:
      - What to bring about. Keys I(mechanism), I(key) and I(value) are needed; I(subject) names the device, I(id) the
        check or purpose, I(restart) the unit that must be restarted for it to count, I(disturbs) what that disturbs
        (V(nothing), V(gpu), V(board), V(network), V(node)), I(seen) what the plan saw.
      - Values are text; quote words such as V(on) and V(off), which YAML takes for booleans. With V(absent), what
        hwcheck keeps of a key for the next boot goes, and nothing else; what runs stays.
      - An entry can stand for several. I(subjects) is a list that C({subject}) in I(key) and I(restart) stands for;
        I(values), in place of I(key) and I(value), maps keys to values, and one that is null or empty there is left
        alone.
    type: list
    elements: dict
    default: []
  acts:
    description: What to do beside settings, as I(do) and I(target); see the mechanisms' documentation.
    type: list
    elements: dict
    default: []
  stage:
    description: V(apply) prepares and commits; V(undo) takes a run back; V(act) carries out I(acts) alone; V(release)
      gives back a lease.
    type: str
    choices: [apply, undo, act, release]
    default: apply
  run:
    description: Name of the run; the journal has it. Without one, the module makes a name from the time.
    type: str
  holder:
    description: Who is told to others that find the node leased.
    type: str
    default: ansible
  journal_dir:
    description: Folder on the controller where each node's journal is kept, as NODE.json, before anything is written.
    type: path
  session:
    description: Word in the C(lock) of I(journal_dir); where it differs, or the lock is free, nothing is written.
    type: str
  idle_ignore:
    description: Names of programs (as in C(/proc/PID/comm)) that hold devices and are no work.
    type: list
    elements: str
    default: []
  idle_skip:
    description: The caller vouches for it that the node is idle.
    type: bool
    default: false
  refusals_ok:
    description: Whether a setting that is refused is only told (I(refused)); else the task fails with it. The others
      are brought about in any case.
    type: bool
    default: true
  request:
    description: Used between the action plugin and the module.
    type: dict
attributes:
  check_mode:
    support: full
    description: Says what would be changed and writes nothing.
  diff_mode:
    support: full
    description: Shows files as they were and would be, and values.
author:
  - The hwcheck developers
"""

EXAMPLES = r"""
- name: Keep pages where they are, and let slurmd's jobs lock memory
  hwcheck_apply:
    settings:
      - {id: sysctl.numa_balancing, mechanism: sysctl, key: kernel.numa_balancing, value: "0"}
      - id: limits.service_memlock
        mechanism: unit_property
        key: slurmd.service LimitMEMLOCK
        value: infinity
        restart: slurmd.service
        disturbs: node

- name: Answer ARP only for the address of the interface that was asked, on each rail
  hwcheck_apply:
    settings:
      - mechanism: sysctl
        subjects: [ens1f0np0, ens2f0np0]
        values:
          net.ipv4.conf.{subject}.arp_ignore: 1
          net.ipv4.conf.{subject}.arp_announce: 2

- name: Take back what a run has changed
  hwcheck_apply:
    stage: undo
    run: 20261201-101500-4f2a
"""

RETURN = r"""
results:
  description: Each setting with status (right, changed, would change, refused, stale, failed), why, before and after.
  returned: always
  type: list
  elements: dict
journal:
  description: What the run has changed on this node; the state of every target before and after.
  returned: when something was prepared
  type: dict
run:
  description: Name of the run, which C(stage=undo) takes.
  returned: always
  type: str
refused:
  description: Settings that were not written, and why.
  returned: always
  type: list
  elements: str
reboot_required:
  description: Something that was written counts from the next boot only.
  returned: always
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402 - documentation stands first in a module
from ansible.module_utils.hwcheck_writers.stages import answer  # noqa: E402 - hwcheck/writers, packed by Ansible


def main() -> None:
    """Carry out the stage of the request."""
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "list", "elements": "dict", "default": []},
            "acts": {"type": "list", "elements": "dict", "default": []},
            "stage": {"type": "str", "choices": ["apply", "undo", "act", "release"], "default": "apply"},
            "run": {"type": "str"},
            "holder": {"type": "str", "default": "ansible"},
            "journal_dir": {"type": "path"},
            "session": {"type": "str"},
            "idle_ignore": {"type": "list", "elements": "str", "default": []},
            "idle_skip": {"type": "bool", "default": False},
            "refusals_ok": {"type": "bool", "default": True},
            "request": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    request = module.params["request"]
    if request is None:
        module.fail_json(msg="hwcheck_apply runs with its action plugin; put playbooks/action_plugins on its path")
    told = answer(request)
    if told["ok"]:
        module.exit_json(**told)
    module.fail_json(msg=told["why"] or "failed", **told)


if __name__ == "__main__":
    main()
