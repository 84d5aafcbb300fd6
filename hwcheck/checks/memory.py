"""Main memory: errors the controllers counted, pages out of use, memory that went missing."""

from __future__ import annotations

from typing import Any

from hwcheck.checks.pcie import in_guest, on_grace
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_DIMM = Remedy(
    "hands",
    "Drain; find the module by its label in the BMC's event log and with edac-util or ras-mc-ctl --error-count; "
    "reseat it once, replace it when the errors come back.",
    disturbs="node",
)
_DAY = 86400


def _modules(given: Given, word: str) -> str:
    """Name the modules that have errors of this sort."""
    bad: list[dict[str, Any]] = [module for module in given.maybe("memory.edac.modules") or () if module[word]]
    bad.sort(key=lambda module: -module[word])
    names = ", ".join(f"{module['name']} ({module[word]})" for module in bad[:4])
    return f": {names}{' and others' if len(bad) > 4 else ''}" if names else ""


@relation(
    "memory.uncorrected",
    needs=("memory.edac.uncorrected",),
    uses=("memory.edac.modules", "memory.edac.controllers"),
    urgency=Urgency.NOW,
    remedy=_DIMM,
)
def no_uncorrected_errors(given: Given) -> Answer:
    """
    The memory controllers counted no uncorrected error.

    What it checks: the sum of ue_count over all controllers, and the modules it belongs to.

    Why it matters: data was lost. The next such error kills a process, or the machine.

    How to fix: replace the module.

    Applies to: machines whose EDAC driver is loaded. With firmware-first error handling the counters stay 0 and the
    BMC's event log tells.

    Source: Linux EDAC documentation.
    """
    errors = given["memory.edac.uncorrected"]
    if errors:
        text = f"{errors} uncorrected memory error{'s' * (errors != 1)}{_modules(given, 'uncorrected')}"
        return fail(text, observed=errors, expected=0)
    return ok(f"no uncorrected error on {given.maybe('memory.edac.controllers') or 'all'} controllers", observed=0)


@relation(
    "memory.corrected",
    needs=("memory.edac.corrected",),
    uses=("memory.edac.modules", "memory.edac.seconds"),
    compares=("memory.edac.corrected", "memory.edac.seconds"),
    remedy=_DIMM,
)
def few_corrected_errors(given: Given) -> Answer:
    """
    Corrected memory errors are rare.

    What it checks: the number of corrected errors a day: since the last look at this boot where there was one, else
    since the counters began. A time shorter than a day counts as a day.

    Why it matters: one cell flips now and then; a module with many is about to have an error that cannot be corrected,
    and each one stops a CPU for a moment.

    How to fix: replace the module at the next maintenance.

    Applies to: machines whose EDAC driver is loaded.

    Source: Linux EDAC documentation; see the bound.
    """
    errors, seconds = given["memory.edac.corrected"], given.maybe("memory.edac.seconds")
    most = given.bound("memory.corrected_per_day")
    if errors == 0:
        return ok("no corrected memory error", observed=0)
    if most is None or seconds is None:
        return skip(f"{errors} corrected memory errors; over which time, or how many are too many, is not known")
    before, then = given.previous("memory.edac.corrected"), given.previous("memory.edac.seconds")
    since = "since the counters began"
    if before is not None and then is not None and 0 <= before <= errors and then < seconds:
        errors, seconds, since = errors - before, seconds - then, "since the last look"
    rate = errors / max(seconds / _DAY, 1.0)
    text = f"{errors} corrected memory errors {since}, {rate:.3g} a day"
    if rate > most:
        return warn(text + _modules(given, "corrected"), observed=round(rate, 1), expected=f"at most {most} a day")
    return ok(text, observed=round(rate, 1), expected=f"at most {most} a day")


@relation("memory.pages", needs=("memory.corrupted",), remedy=_DIMM)
def no_page_out_of_use(given: Given) -> Answer:
    """
    No page of memory was taken out of use.

    What it checks: HardwareCorrupted of /proc/meminfo: pages the kernel does not use any more since boot, after an
    uncorrected error or after many corrected ones.

    Why it matters: some module has a defect. The pages come back into use with the next boot, the defect too.

    How to fix: find and replace the module.

    Applies to: kernels with memory failure handling.

    Source: Linux hwpoison documentation.
    """
    size = given["memory.corrupted"]
    if size:
        return warn(f"{size} KiB of memory were taken out of use after errors", observed=size, expected=0)
    return ok("no memory was taken out of use", observed=0)


@relation(
    "memory.total",
    needs=("memory.total",),
    uses=("platform.virtualization", "platform.lspci_names", "cpu.architecture"),
    compares=("memory.total",),
    remedy=_DIMM,
)
def memory_is_all_there(given: Given) -> Answer:
    """
    There is as much memory as the last time.

    What it checks: MemTotal against that of the previous look at this node.

    Why it matters: a module that training switched off takes its channel with it: less capacity and less bandwidth.

    How to fix: look for the missing module.

    Applies to: bare metal that was looked at before. A guest's host may take memory back; on Grace the GPUs' memory
    comes and goes with the driver.

    Source: proc(5); see the bound.
    """
    now, before, loss = given["memory.total"], given.previous("memory.total"), given.bound("memory.loss")
    if before is None or loss is None:
        return skip(f"{now} MiB of memory; how much there should be is not known", observed=now)
    if in_guest(given) or on_grace(given):
        return skip(f"{now} MiB of memory, {before} MiB before; it changes in guests and on Grace", observed=now)
    if now < before * (1 - loss / 100):
        return fail(f"{now} MiB of memory, {before - now} MiB less than before", observed=now, expected=before)
    return ok(f"{now} MiB of memory, as before", observed=now)
