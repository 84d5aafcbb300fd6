"""``/sys/class/infiniband`` and ``/sys/class/net`` of a lab node, and what belongs to RDMA elsewhere."""

from __future__ import annotations

from hwcheck.lab.devices import PRIORITIES, Nic
from hwcheck.lab.machine import Machine
from hwcheck.lab.render import Planter

_COUNTERS = (
    "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
    "local_link_integrity_errors", "port_rcv_constraint_errors", "port_rcv_errors",
    "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_constraint_errors",
    "port_xmit_discards", "port_xmit_wait", "symbol_error",
)  # fmt: skip
_HW_COUNTERS = (
    "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "out_of_buffer", "out_of_sequence",
    "packet_seq_err", "req_cqe_error", "req_cqe_flush_error", "resp_cqe_error", "rnr_nak_retry_err",
    "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "rx_icrc_encapsulated",
)  # fmt: skip
_ROCE_COUNTERS = ("np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled")
_GIDS = 16
_DOWN_RATE = {"InfiniBand": "10 Gb/sec (4X SDR)", "Ethernet": "40 Gb/sec (4X QDR)"}


def plant(machine: Machine, files: Planter) -> None:
    """Add every adapter."""
    for number, nic in enumerate(machine.nics, 1):
        _device(machine, nic, files)
        _port(nic, number, f"/sys/{machine.path_of(nic.address)}/infiniband/{nic.name}/ports/1", files)
        _netdev(machine, nic, files)
    files.put(
        "/proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    )


def _device(machine: Machine, nic: Nic, files: Planter) -> None:
    above = machine.path_of(nic.address)
    here = f"/sys/{above}/infiniband/{nic.name}"
    files.link(f"/sys/class/infiniband/{nic.name}", f"../../{above}/infiniband/{nic.name}")
    files.link(f"{here}/device", f"../../../{nic.address}")
    guid = _guid(nic.guid)
    for name, text in (
        ("hca_type", nic.hca), ("fw_ver", nic.firmware), ("board_id", nic.psid), ("node_guid", guid),
        ("sys_image_guid", guid), ("node_type", "1: CA"), ("node_desc", f"{machine.name} {nic.name}"),
    ):  # fmt: skip
        files.put(f"{here}/{name}", text)
    if nic.ethernet:
        files.put(f"{here}/tc/1/traffic_class", f"Global tclass={nic.traffic_class}" if nic.traffic_class else "")
        for port in ("ports/1",):
            files.put(f"/sys/kernel/config/rdma_cm/{nic.name}/{port}/default_roce_tos", nic.default_tos)
            files.put(f"/sys/kernel/config/rdma_cm/{nic.name}/{port}/default_roce_mode", "RoCE v2")
    for irq, cpu in nic.irqs.items():
        files.put(f"/sys/{above}/msi_irqs/{irq}", "msix")
        files.put(f"/proc/irq/{irq}/smp_affinity_list", cpu)
        files.link(f"/proc/irq/{irq}/effective_affinity_list", "smp_affinity_list")


def _guid(number: int) -> str:
    digits = f"{number & (1 << 64) - 1:016x}"
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4))


def _port(nic: Nic, number: int, here: str, files: Planter) -> None:
    subnet = nic.layer == "InfiniBand" and nic.up
    rate = f"{nic.rate} Gb/sec ({nic.lanes})" if nic.up else _DOWN_RATE[nic.layer]
    for name, text in (
        ("state", nic.state), ("phys_state", nic.physical), ("link_layer", nic.layer), ("rate", rate),
        ("lid", f"0x{0x100 + number:x}" if subnet else "0x0"), ("sm_lid", "0x1" if subnet else "0x0"),
    ):  # fmt: skip
        files.put(f"{here}/{name}", text)
    for name in _COUNTERS:
        files.put(f"{here}/counters/{name}", nic.counters.get(name, 0))
    for name in ("port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets"):
        files.put(f"{here}/counters/{name}", 230_539_874_932 + number)
    for name in (*_HW_COUNTERS, *(_ROCE_COUNTERS if nic.ethernet else ())):
        files.put(f"{here}/hw_counters/{name}", nic.counters.get(name, 0))
    gids = _gids(nic, number)
    for index in range(_GIDS):
        gid, kind = gids[index] if index < len(gids) else ("0000:0000:0000:0000:0000:0000:0000:0000", "")
        files.put(f"{here}/gids/{index}", gid)
        if kind:
            files.put(f"{here}/gid_attrs/types/{index}", kind)
            files.put(f"{here}/gid_attrs/ndevs/{index}", nic.netdev)


def _gids(nic: Nic, number: int) -> list[tuple[str, str]]:
    if not nic.ethernet:
        return [("fe80:0000:0000:0000:" + _guid(nic.guid), "IB/RoCE v1")]
    local = "fe80:0000:0000:0000:" + _guid(nic.guid)
    routed = f"0000:0000:0000:0000:0000:ffff:0a14:{number:02x}0b"
    return [(gid, kind) for gid in (local, routed) for kind in ("IB/RoCE v1", "RoCE v2")]


def _netdev(machine: Machine, nic: Nic, files: Planter) -> None:
    above = machine.path_of(nic.address)
    here = f"/sys/{above}/net/{nic.netdev}"
    files.link(f"/sys/class/net/{nic.netdev}", f"../../{above}/net/{nic.netdev}")
    files.link(f"{here}/device", f"../../../{nic.address}")
    speed = nic.rate * 1000 if nic.up else -1
    for name, text in (
        ("operstate", "up" if nic.up else "down"), ("mtu", nic.mtu), ("speed", speed),
        ("type", 1 if nic.ethernet else 32), ("dev_port", 0), ("carrier_changes", 2),
        ("address", _guid(nic.guid).replace(":", "")[:12]),
    ):  # fmt: skip
        files.put(f"{here}/{name}", text)
    if not nic.ethernet:
        return
    files.put(f"{here}/duplex", "full" if nic.up else "unknown")
    files.put(f"{here}/qos/trust", nic.trust)
    files.put(f"{here}/qos/pfc", "\n".join(f"{priority} {int(priority in nic.pfc)}" for priority in range(PRIORITIES)))
    files.put(f"{here}/ecn/roce_np/cnp_dscp", 48)
    files.put(f"{here}/ecn/roce_np/cnp_802p_prio", 6)
    for end in ("np", "rp"):
        for priority in range(PRIORITIES):
            files.put(f"{here}/ecn/roce_{end}/enable/{priority}", int(priority in nic.ecn))
    for leaf in ("arp_announce", "arp_ignore", "rp_filter"):
        files.put(
            f"/proc/sys/net/ipv4/conf/{nic.netdev}/{leaf}", {"arp_announce": 2, "arp_ignore": 1, "rp_filter": 2}[leaf]
        )
