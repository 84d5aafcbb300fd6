"""
What the kernel log and Fabric Manager's log report.

Log facts are tuples of records, one for each group of like lines. Keys that all records share: ``count`` (lines),
``line`` and ``text`` (of the first one; text at most 200 characters), ``time`` and ``last_time`` (as printed, "" when
the lines carry none), ``file``.
"""

from hwcheck.facts.registry import declare

declare(
    "gpu",
    """
    xid.events | tuple | | Xids; records of code, unit, fatal (True, False or None), link (None when not said), words (hex words of the line), text, pid, name, programs (process names, at least 5 minutes apart), places (distinct GPC/TPC/SM), stale (driver loaded again since), limited (more lines were dropped)
    """,  # noqa: E501 - one name a line, for search and for explain
)

declare(
    "switch",
    """
    sxid.events                   | tuple | | SXids of the kernel log; records of code, fatal (True, False or None), link (None when not said), text, stale (driver loaded again since)
    fabricmanager.log.switch_errors | tuple | | NVSwitch errors in Fabric Manager's log; records of code, fatal, link (port), physical_id, text
    """,  # noqa: E501 - as above
)

declare(
    "node",
    """
    kernel.log.window  | dict  | | what the kernel log covers; proves (tuple of xid, sxid, kernel: kinds whose absence it proves), lines, time, last_time, truncated (groups not kept)
    kernel.log.xids    | int   | | lines of the kernel log that report an Xid
    kernel.log.sxids   | int   | | lines of the kernel log that report an SXid
    kernel.log.events  | tuple | | events of the kernel log other than Xids; records of kind, device, detail, times (s, of the last 32 link losses; else empty), stale
    kernel.log.driver_load | dict | | the last load of the NVIDIA module that the log shows; version, line, time
    kernel.log.denied  | str   | | why the kernel log could not be read
    driver.api_mismatch | dict | | user-space libraries and kernel module of two versions; client, module, line, text
    fabricmanager.log.start    | dict  | | the last start of Fabric Manager that its log shows; version, gpus (registered since), expected (GPUs of the topology; None when not said), configured (bool), settled (bool: lines go on at least two minutes), line
    fabricmanager.log.errors   | tuple | | other lines of level ERROR and above; records of level
    """,  # noqa: E501 - as above
)
