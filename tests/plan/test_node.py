"""From findings to the plan of a node: what is in it, what is left out and why, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.errors import PlanError
from hwcheck.facts import Missing, Reason, Subject, gpu_at
from hwcheck.findings import Act, Finding, NodeVerdict, Status, Write
from hwcheck.plan import plan_node
from tests.plan.made import BOOT, H200, balancing, finding, plan, snapshot, unit

GPUS = [gpu_at(f"{bus}:00.0") for bus in ("18", "2a")]
ARGUMENT = Write("kernel_argument", "iommu", "pt")
RESET = (Act("reset_gpu", "{subject}"),)


@pytest.mark.parametrize("status", [Status.WARN, Status.FAIL])
def test_a_finding_that_warns_or_fails_is_planned(status: Status) -> None:
    """Its write is a step of the check, with platform and boot it was seen in."""
    made = plan(finding("sysctl.numa_balancing", writes=(balancing(),), status=status))
    (step,) = made.steps
    assert (step.id, step.mechanism, step.key, step.value) == (
        "sysctl.numa_balancing", "sysctl", "kernel.numa_balancing", "0",
    )  # fmt: skip
    assert (made.boot_id, made.reboot, made.acts) == (BOOT, (), ())
    assert made.cohort.startswith("hgx-h200, driver ")


@pytest.mark.parametrize("status", [Status.PASS, Status.SKIP])
def test_what_passes_is_not_planned(status: Status) -> None:
    """A plan with nothing to do is empty."""
    assert plan(finding("sysctl.numa_balancing", writes=(balancing(),), status=status)).is_empty


def test_a_waived_finding_is_left_out_and_said() -> None:
    """The site accepts it: nothing is written, and the plan says whose waiver that is."""
    made = plan(finding("sysctl.numa_balancing", writes=(balancing(),), waived={"owner": "ops"}))
    assert made.is_empty
    assert [(one.why, one.text) for one in made.left_out] == [("waived", "waived by ops")]


def test_what_is_opt_in_is_planned_only_when_asked_for() -> None:
    """Check or family ask for it; else it is left out, with what it would write."""
    wanted = finding("pcie.max_read_request", writes=(Write("pci_bits", "max_read_request", "4096", opt_in=True),))
    made = plan(wanted)
    assert made.is_empty
    assert made.left_out[0].text == "pci_bits max_read_request = 4096"
    for asked in ("pcie.max_read_request", "pcie"):
        (step,) = plan(wanted, asked=(asked,)).steps
        assert step.opt_in
    assert plan(wanted, asked=("rdma",)).is_empty


def test_a_safe_write_beside_an_opt_in_one_is_planned() -> None:
    """ASPM by the kernel's policy is safe, by the register only on request."""
    writes = (balancing(), Write("pci_bits", "aspm", "0", opt_in=True))
    made = plan(finding("pcie.aspm", writes=writes, subject=Subject("pci", "0000:5e:00.0")))
    assert [step.mechanism for step in made.steps] == ["sysctl"]
    assert [(one.why, one.subjects) for one in made.left_out] == [("opt-in", ("0000:5e:00.0",))]


def test_equal_writes_are_one_step() -> None:
    """Forty links ask for one policy; two checks that want the same are both named."""
    links = [
        finding("pcie.aspm", writes=(balancing(),), subject=Subject("pci", f"0000:{bus:02x}:00.0")) for bus in range(40)
    ]
    (step,) = plan(*links, finding("pcie.aspm_policy", writes=(balancing(),), disturbs="node")).steps
    assert (step.id, step.also, step.subject, step.disturbs) == ("pcie.aspm", ("pcie.aspm_policy",), "", "node")


def test_a_key_that_belongs_to_a_subject_is_a_step_for_each() -> None:
    """Persistence mode is one setting a GPU."""
    writes = (Write("gpu", "persistence", "1"),)
    steps = plan(*(finding("gpu.persistence", writes=writes, subject=gpu) for gpu in GPUS)).steps
    assert [step.subject for step in steps] == ["0000:18:00.0", "0000:2a:00.0"]


def test_two_values_for_one_key_are_an_error() -> None:
    """Neither is written; both checks are named."""
    with pytest.raises(PlanError, match=r"sysctl\.one wants sysctl kernel\.numa_balancing = 0, sysctl\.two wants 1"):
        plan(finding("sysctl.one", writes=(balancing("0"),)), finding("sysctl.two", writes=(balancing("1"),)))


def test_an_argument_that_may_stand_twice_does_not_contradict_itself() -> None:
    """Several pci= arguments are several steps."""
    writes = (Write("kernel_argument", "pci", "realloc=off"), Write("kernel_argument", "pci", "noaer"))
    assert len(plan(finding("pcie.bar", writes=writes)).steps) == 2


@pytest.mark.parametrize("keeper_first", [True, False])
def test_what_only_keeps_a_value_yields_to_a_wish(keeper_first: bool) -> None:  # noqa: FBT001 - a case of the table
    """A value set by hand is kept for the next boot unless another check wants another one."""
    pair = [
        finding("sysctl.persistence", writes=(balancing("7", keeps=True),)),
        finding("sysctl.numa_balancing", writes=(balancing("0"),)),
    ]
    (step,) = plan(*(pair if keeper_first else reversed(pair))).steps
    assert (step.id, step.value) == ("sysctl.numa_balancing", "0")


def test_running_and_enabled_are_no_contradiction() -> None:
    """A unit that is to run is started at boot as well."""
    (step,) = plan(
        finding("service.enabled", writes=(Write("unit", "a.service", "enabled"),)),
        finding("service.state", writes=(Write("unit", "a.service", "running"),)),
    ).steps
    assert step.value == "running"


def test_what_persists_comes_before_what_is_volatile() -> None:
    """A restart in between reads the files that were written before it."""
    limit = Write("unit_property", "slurmd.service LimitMEMLOCK", "infinity", restart="slurmd.service")
    steps = plan(finding("sysctl.one", writes=(balancing(),)), finding("limits.service_memlock", writes=(limit,))).steps
    assert [step.mechanism for step in steps] == ["unit_property", "sysctl"]
    assert steps[0].restart == "slurmd.service"


def test_the_subject_fills_key_and_unit() -> None:
    """Nothing is evaluated: the id takes the place of the word; a dot of an interface is spelled as sysctl does."""
    writes = (Write("sysctl", "net.ipv4.conf.{subject}.arp_ignore", "1"),)
    (step,) = plan(finding("sysctl.arp_ignore", writes=writes, subject=Subject("netdev", "ens1.100"))).steps
    assert step.key == "net.ipv4.conf.ens1/100.arp_ignore"
    hostile = "{0.__class__}{{ lookup('pipe', 'id') }}"
    (step,) = plan(finding("sysctl.arp_ignore", writes=writes, subject=Subject("netdev", hostile))).steps
    assert "{0/__class__}{{ lookup('pipe', 'id') }}" in step.key


# --- reboot


@pytest.mark.parametrize(
    ("seen", "observed", "reboots"),
    [
        (None, "x", True),
        ({"running": "default", "next boot": "default"}, "default", True),
        ({"running": "pt", "next boot": "default"}, "default", False),
        ({"running": None, "next boot": "default"}, "default", False),
    ],
    ids=["a relation", "wrong now", "right now, wrong after a reboot", "an image"],
)
def test_a_kernel_argument_needs_a_reboot_where_what_runs_is_wrong(
    seen: dict[str, Any] | None,
    observed: str,
    reboots: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """The step is planned in any case: the next boot has to find it."""
    made = plan(finding("kernel.iommu", writes=(ARGUMENT,), seen=seen, observed=observed))
    assert len(made.steps) == 1
    assert made.reboot == (("kernel.iommu",) if reboots else ())


def test_an_argument_beside_a_write_that_counts_at_once_needs_no_reboot() -> None:
    """The policy of ASPM is written now, the argument keeps it."""
    made = plan(finding("pcie.aspm", writes=(balancing(), Write("kernel_argument", "pcie_aspm.policy", "performance"))))
    assert made.reboot == ()


def test_one_reboot_takes_the_place_of_what_it_does_as_well() -> None:
    """Resets and restarts before it would disturb twice; a unit that is off has to be started all the same."""
    made = plan(
        finding("gpu.recovery_action", acts=(Act("reboot"),)),
        finding("kernel.iommu", writes=(ARGUMENT,)),
        finding("hbm.remap_pending", acts=RESET, subject=GPUS[0]),
        finding("service.state", acts=(Act("start", "slurmd.service"),)),
    )
    assert made.reboot == ("gpu.recovery_action", "kernel.iommu")
    assert [act.do for act in made.acts] == ["start"]


# --- acts


def test_a_reset_on_an_nvswitch_board_is_one_of_all_its_gpus() -> None:
    """It is said once, what it disturbs, and that it cannot be undone."""
    made = plan(*(finding("hbm.remap_pending", acts=RESET, subject=gpu, disturbs="gpu") for gpu in GPUS))
    assert [(act.do, act.target, act.disturbs) for act in made.acts] == [("reset_gpu", "", "board")]
    assert made.irreversible == ("reset_gpu",)


def test_the_fabric_manager_disturbs_the_whole_board() -> None:
    """Whatever the check's remedy says of other units."""
    (act,) = plan(finding("fabric.state", acts=(Act("restart", "nvidia-fabricmanager.service"),))).acts
    assert act.disturbs == "board"
    (step,) = plan(finding("service.x", writes=(Write("unit", "nvidia-fabricmanager.service", "running"),))).steps
    assert step.disturbs == "board"


def test_a_remedy_that_nothing_can_do_is_for_a_person() -> None:
    """Reseating a card is said, and makes no plan."""
    made = plan(finding("pcie.link"))
    assert made.is_empty
    assert [(one.id, one.why) for one in made.hands] == [("pcie.link", "hands")]


# --- what the evidence says of it


def test_what_is_right_already_is_not_planned() -> None:
    """The evidence shows the key itself, whatever the check judged."""
    facts = snapshot(("kernel.cmdline", ("iommu=pt",)), ("kernel.cmdline@next", ("quiet", "iommu=pt")))
    made = plan(finding("kernel.iommu", writes=(ARGUMENT,)), facts=facts)
    assert made.is_empty
    assert [one.id for one in made.hands] == ["kernel.iommu"]


def test_the_step_says_what_was_seen_and_who_sets_it() -> None:
    """Both facets, and the file that would set it at boot; the writers' own file is nobody else."""
    record = {"value": "1", "file": "/etc/sysctl.d/99-vendor.conf"}
    facts = snapshot(("sysctl.values", {"kernel.numa_balancing": "1"}), ("sysctl.boot_values", {
        "kernel.numa_balancing": record}))  # fmt: skip
    (step,) = plan(finding("sysctl.numa_balancing", writes=(balancing(),)), facts=facts).steps
    assert step.seen == {"running": "1", "next boot": "1"}
    assert step.owner == "/etc/sysctl.d/99-vendor.conf"
    record["file"] = "/etc/sysctl.d/90-hwcheck.conf"
    (step,) = plan(finding("sysctl.numa_balancing", writes=(balancing(),)), facts=facts).steps
    assert step.owner == ""


def test_what_the_node_refuses_is_left_out() -> None:
    """Firmware that keeps ASPM: the write would only fail."""
    facts = snapshot(("pci.aspm.refused", "the firmware's FADT declares ASPM unsupported"))
    made = plan(finding("pcie.aspm", writes=(balancing(refused_by="pci.aspm.refused"),)), facts=facts)
    assert made.is_empty
    assert made.left_out[0].why == "refused"
    assert "FADT" in made.left_out[0].text


def test_a_unit_is_found_under_its_name_on_this_node() -> None:
    """Chrony is chronyd on RHEL; a unit that is not installed is left out."""
    wanted = finding("time.sync", writes=(Write("unit", "chrony.service", "running"),))
    facts = unit(snapshot(), "chrony.service", loaded="not-found", active="inactive")
    made = plan(wanted, facts=facts)
    assert [one.why for one in made.left_out] == ["by hand"]
    (step,) = plan(wanted, facts=unit(facts, "chronyd.service", loaded="loaded", active="inactive")).steps
    assert step.key == "chronyd.service"


# --- no plan at all


def test_a_node_that_was_not_reached_has_no_plan() -> None:
    """It says so, and is not taken for one with nothing to do."""
    lost = Finding("evidence.reachable", Subject("node", ""), Status.UNKNOWN, "could not be reached: refused")
    made = plan_node(NodeVerdict("gpu-9", "base", "none", [lost]), None, H200)
    assert (made.is_empty, made.refused) == (True, "could not be reached: refused")


@pytest.mark.parametrize(
    "verdict", [{"platform": "base", "confidence": "none"}, {"confidence": "hint"}, {"confidence": "none"}], ids=str
)
def test_a_node_of_unknown_platform_has_no_plan(verdict: dict[str, str]) -> None:
    """Wanted values are a platform's: nothing is written by guess."""
    made = plan(finding("sysctl.numa_balancing", writes=(balancing(),)), **verdict)
    assert made.steps == ()
    assert "platform is not known" in made.refused


def test_a_node_of_two_platforms_has_no_plan() -> None:
    """Even where the command line names a profile."""
    mixed = {"platform": "base", "confidence": "none", "basis": "different GPU models", "models": (), "mixed": True}
    facts = snapshot(("platform.identity", mixed))
    made = plan(finding("sysctl.numa_balancing", writes=(balancing(),)), facts=facts, confidence="given")
    assert (made.steps, made.refused) == ((), "different GPU models")


def test_what_could_not_be_told_is_said() -> None:
    """A check that would write and got no answer: the plan may be short of something."""
    gap = Missing(Reason.DENIED, "for root only")
    made = plan(Finding("pcie.aspm", GPUS[0], Status.UNKNOWN, "could not be told", gap=gap))
    assert [(one.id, one.why, one.text) for one in made.left_out] == [("pcie.aspm", "unknown", "denied: for root only")]
    assert plan(Finding("xid.79", GPUS[0], Status.UNKNOWN, "could not be told", gap=gap)).left_out == ()
