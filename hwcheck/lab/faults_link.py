"""Faults of PCIe and of the network: links, ACS, ASPM, adapters, RoCE settings."""

from __future__ import annotations

from hwcheck.lab.devices import DOWNSTREAM, REDIRECTING
from hwcheck.lab.faults import HGX, INFINIBAND, ROCE, X86, fault
from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import boot_up

_GEN3 = 3
_L1 = 2


@fault("pcie.gpu_width", "pcie.link", part=2, on=HGX, stays=True, figures=("h2d", "d2h"))
def gpu_link_x8(machine: Machine, part: int) -> None:
    """The PCIe link of a GPU came up with 8 lanes."""
    _narrow(machine, machine.gpus[part].address, width=8)


@fault("pcie.gpu_speed", "pcie.link", part=5, on=HGX, stays=True, figures=("h2d", "d2h"))
def gpu_link_gen3(machine: Machine, part: int) -> None:
    """The PCIe link of a GPU came up at Gen3."""
    _narrow(machine, machine.gpus[part].address, speed=_GEN3)


@fault("pcie.link", "pcie", part=1, stays=True, figures=("ib_write_bw",))
def nic_link_x8(machine: Machine, part: int) -> None:
    """The PCIe link of an adapter came up with 8 lanes."""
    _narrow(machine, machine.nics[part].address, width=8)


def _narrow(machine: Machine, address: str, width: int = 0, speed: int = 0) -> None:
    """Change both ends of a link."""
    for end in (address, machine.functions[address].above):
        function = machine.functions[end]
        function.width, function.speed = width or function.width, speed or function.speed


@fault("pcie.acs", on=HGX, stays=True, fix="write", how="pci_bits or kernel_argument", figures=("ib_write_bw",))
def acs_on(machine: Machine, part: int) -> None:
    """ACS redirects peer-to-peer traffic at every port of the PCIe switches."""
    del part
    for function in machine.functions.values():
        if function.port == DOWNSTREAM:
            function.acs = REDIRECTING


@fault("pcie.aspm", "pcie.aspm_policy", on=X86, part=3, stays=True, fix="write", how="kernel_argument")
def aspm_on(machine: Machine, part: int) -> None:
    """ASPM L1 is on at the link of an adapter, and the kernel may change it."""
    kernel, word = machine.kernel, " pcie_aspm.policy=performance"
    kernel.arguments, kernel.next_arguments = (
        text.replace(word, "") for text in (kernel.arguments, kernel.next_arguments)
    )
    boot_up(machine)
    _sleep(machine, part)


@fault("pcie.aspm", on=X86, part=3, stays=True)
def aspm_kept_by_firmware(machine: Machine, part: int) -> None:
    """ASPM L1 is on at the link of an adapter, and the firmware keeps control of it."""
    _sleep(machine, part)
    machine.kernel.firmware_keeps_aspm = True


def _sleep(machine: Machine, part: int) -> None:
    address = machine.nics[part].address
    for end in (address, machine.functions[address].above):
        machine.functions[end].aspm = _L1


@fault("pcie.max_read_request", on=X86, part=4, stays=True, fix="write", how="pci_bits")
def mrrs_512(machine: Machine, part: int) -> None:
    """An adapter asks PCIe for 512 bytes at a time."""
    machine.functions[machine.nics[part].address].read_request = 512


@fault("pcie.aer_corrected", part=1)
def pcie_corrected_errors(machine: Machine, part: int) -> None:
    """The link of a GPU corrects errors all the time."""
    gpu = machine.gpus[part]
    for number in range(600):
        machine.say(
            f"nvidia {gpu.address}: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)",
            90_000.0 + 9 * number,
        )
    machine.functions[gpu.address].counted = {"BadTLP": 48_000, "RxErr": 9_100}
    gpu.state["pcie_replays"] = 57_100


@fault("pcie.max_payload", on=X86, part=0, stays=True)
def payload_mismatch(machine: Machine, part: int) -> None:
    """A GPU sends larger packets than the port above it takes."""
    machine.functions[machine.gpus[part].address].payload = 512


@fault("numa.device", on=X86, part=6, stays=True)
def numa_unknown(machine: Machine, part: int) -> None:
    """The firmware gives an adapter no NUMA node (-1)."""
    machine.functions[machine.nics[part].address].numa = -1


@fault("numa.irqs", part=2, stays=True, fix="write", how="irq_affinity", figures=("ib_send_lat",))
def irqs_far(machine: Machine, part: int) -> None:
    """The interrupts of an adapter go to the other socket."""
    nic = machine.nics[part]
    far = 1 - machine.functions[nic.address].numa
    first = int(machine.processor.cpus_of(far).partition("-")[0])
    nic.irqs = {irq: first + step for step, irq in enumerate(nic.irqs)}


@fault("rdma.port_state", "rdma.port_down", also=("rdma.netdev", "rdma.netdev_link"), part=2)
def port_down(machine: Machine, part: int) -> None:
    """A port is down: its link does not come up."""
    nic = machine.nics[part]
    nic.state, nic.physical = "1: DOWN", "3: Disabled"


@fault("rdma.port_rate", also=("rdma.netdev_speed",), part=3, figures=("ib_write_bw",))
def port_slow(machine: Machine, part: int) -> None:
    """A port came up with half of its rate."""
    nic = machine.nics[part]
    nic.rate, nic.lanes = 200, "4X HDR"


@fault("rdma.port_link", "rdma.port_state", "rdma.subnet_manager", on=INFINIBAND)
def no_subnet_manager(machine: Machine, part: int) -> None:
    """No subnet manager runs: every port waits in state Init."""
    del part
    for nic in machine.nics:
        nic.state = "2: INIT"


@fault("rdma.link_flaps", "rdma.counters", "rdma.log_flaps", part=1)
def port_flaps(machine: Machine, part: int) -> None:
    """The link of a port goes down and up again and again."""
    nic = machine.nics[part]
    nic.counters["link_downed"] = 14
    for number in range(14):
        machine.say(f"mlx5_core {nic.address} {nic.netdev}: Link down", 300_000.0 + 600 * number)
        machine.say(f"mlx5_core {nic.address} {nic.netdev}: Link up", 300_009.0 + 600 * number)


@fault("rdma.counters", part=0)
def port_errors(machine: Machine, part: int) -> None:
    """A port has integrity errors of its link and overruns of its buffer."""
    machine.nics[part].counters.update(local_link_integrity_errors=210, excessive_buffer_overrun_errors=17)


@fault("firmware.nic_uniform", part=3, stays=True)
def nic_firmware(machine: Machine, part: int) -> None:
    """An adapter has older firmware than the others."""
    machine.nics[part].firmware = "28.39.1002"


@fault("rdma.log_fatal", part=1)
def nic_fatal(machine: Machine, part: int) -> None:
    """The driver of an adapter reports that its health is compromised."""
    nic = machine.nics[part]
    machine.say(f"mlx5_core {nic.address}: poll_health:825:(pid 0): Fatal error 1 detected")


@fault("roce.trust", "roce.peers", on=ROCE, part=5, stays=True, fix="write", how="roce")
def trust_pcp(machine: Machine, part: int) -> None:
    """An adapter takes the priority from the VLAN tag, not from the DSCP."""
    machine.nics[part].trust = "pcp"


@fault("roce.pfc", on=ROCE, part=4, deep=True, stays=True, fix="write", how="roce")
def no_pfc(machine: Machine, part: int) -> None:
    """Priority flow control is off on an adapter."""
    machine.nics[part].pfc = ()


@fault("roce.default_tos", "roce.traffic_class", on=ROCE, part=2, stays=True, fix="write", how="roce")
def wrong_tos(machine: Machine, part: int) -> None:
    """Connections of an adapter are marked with the DSCP where the whole byte belongs."""
    nic = machine.nics[part]
    nic.default_tos = nic.traffic_class = 26


@fault("roce.ecn", "roce.peers", on=ROCE, part=1, stays=True, fix="write", how="roce")
def ecn_off(machine: Machine, part: int) -> None:
    """An adapter neither answers congestion marks nor heeds them."""
    machine.nics[part].ecn = ()
