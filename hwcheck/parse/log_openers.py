"""How lines of a kernel log are known: by prefix and message, or by a message that only the driver writes."""

from __future__ import annotations

from hwcheck.parse.kernel_rules import ADDRESS
from hwcheck.parse.log_prefix import KERNEL_LINE, TIME

_MESSAGE = (
    rf"(?:NVRM: |nvidia-(?:nvswitch\d{{0,3}}|nvlink|peermem|modeset|uvm):? |mlx5_core {ADDRESS}"
    rf"|(?:pcieport|nvidia|nvme) {ADDRESS}: |EDAC MC\d|mce: |\{{\d+\}}\[Hardware Error\]|watchdog: BUG: "
    r"|NMI watchdog: |INFO: task \S{1,64}:\d+ blocked for|rcu: INFO: |Kernel panic - "
    r"|(?:Memory cgroup out|Out) of memory: Kill|EXT4-fs (?:error )?\(|XFS \(|blk_update_request: |Buffer I/O error"
    r"|dmesg: read kernel buffer failed|nvidia: probe of )"
)
"""How messages of the kernel begin that need no prefix to be known as such."""
_JOURNAL = r'\{\s?"(?=.{0,16000}"_TRANSPORT"\s?:\s?"kernel")(?=.{0,16000}"MESSAGE"\s?:\s?")'
OPENS = rf"{KERNEL_LINE}|\s{{0,40}}NVRM: |(?:{TIME})?{_MESSAGE}|{_JOURNAL}"
"""Lines with a known prefix, or with none."""

SIGNATURE = (
    r"(?!.{1001})(?:(?=.{0,900}Xid \((?:PCI:)?[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:.{2,60}?\): \d)"
    r"|(?=.{0,900}fallen off the bus)(?=.{0,900}NVRM: ))"
    r"(?!\s{0,80}\"(?!(?:MESSAGE|message|msg|log)\"))"
    r"(?!.{0,900}(?:(?:(?<!:)\s|\()[\"'`]|[“\u2018«„])(?:NVRM|GPU|S?Xid|nvidia-nvswitch))"
)
"""
What only the driver writes, whatever stands in front of it: an error with address and number, within a line of usual
length. Not within quotation marks of a text that speaks about it, nor as a value of a JSON document.
"""
