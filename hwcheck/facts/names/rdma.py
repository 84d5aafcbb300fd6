"""RDMA ports and devices, their links and modules, RoCE settings, NIC firmware, and what NCCL says about them."""

from hwcheck.facts.registry import declare

COUNTERS = (
    "link_downed", "link_error_recovery", "symbol_error", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors", "port_rcv_errors", "port_rcv_remote_physical_errors", "port_xmit_discards",
    "port_xmit_wait", "port_rcv_data", "port_xmit_data",
)  # fmt: skip
"""Files of ``ports/N/counters`` that become facts ``rdma.counter.NAME``."""

HW_COUNTERS = (
    "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "implied_nak_seq_err",
    "out_of_buffer", "rx_icrc_encapsulated", "roce_slow_restart", "roce_adp_retrans", "roce_adp_retrans_to",
    "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "req_cqe_error", "resp_cqe_error",
)  # fmt: skip
"""Files of ``ports/N/hw_counters`` that become facts ``rdma.counter.NAME``."""

NET_COUNTERS = (
    "rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer", "link_down_events_phy", "rx_crc_errors_phy",
    "rx_symbol_err_phy", "rx_pcs_symbol_err_phy", "rx_global_pause", "tx_global_pause", "outbound_pci_stalled_wr",
    *(f"{way}_prio{number}_{what}" for number in range(8) for way in ("rx", "tx") for what in ("pause", "discards")),
)  # fmt: skip
"""Lines of ``ethtool -S`` (mlx5) that become facts ``net.counter.NAME``."""

declare(
    "port",
    """
    rdma.port.state         | str   |      | logical state in ibstat's words: Down, Init, Armed, Active, ActiveDefer
    rdma.port.phys_state    | str   |      | Sleep, Polling, Disabled, Training, LinkUp, LinkErrorRecovery, PhyTest
    rdma.port.rate          | float | Gb/s | data rate of the link; means nothing unless the port is Active
    rdma.port.speed         | str   |      | lane speed: SDR DDR QDR FDR10 FDR EDR HDR NDR XDR
    rdma.port.width         | str   |      | number of lanes: 1X 2X 4X 8X 12X
    rdma.port.link_layer    | str   |      | InfiniBand or Ethernet
    rdma.port.lid           | int   |      | local identifier that the subnet manager gave; 0 on Ethernet
    rdma.port.sm_lid        | int   |      | LID of the subnet manager; 0 on Ethernet, and on InfiniBand without one
    rdma.port.hca_type      | str   |      | type of the device the port belongs to, e.g. MT4129 (ConnectX-7)
    rdma.port.mtu           | int   | B    | active MTU of RDMA
    rdma.port.mtu.max       | int   | B    | largest MTU the port can do
    rdma.port.netdev        | str   |      | network interface of the port
    rdma.port.netdev_up     | bool  |      | ibdev2netdev calls the interface Up
    rdma.port.gids          | tuple |      | GIDs: records of index, gid, ip ("" when none), version (v1, v2), netdev
    rdma.port.traffic_class | int   |      | traffic class byte forced on RoCE traffic (tc/N/traffic_class of OFED)
    rdma.port.default_tos   | int   |      | traffic class byte that rdma_cm gives its connections (configfs)
    rdma.link.state           | str   |     | mlxlink: state, e.g. Active, Polling, Disable
    rdma.link.phys_state      | str   |     | mlxlink: physical state, e.g. LinkUp, ETH_AN_FSM_ENABLE
    rdma.link.speed           | str   |     | mlxlink: speed as printed, e.g. IB-NDR, 400G
    rdma.link.width           | str   |     | mlxlink: width, e.g. 4x
    rdma.link.fec             | str   |     | mlxlink: forward error correction in use
    rdma.link.opcode          | int   |     | mlxlink: status opcode; 0 is no issue
    rdma.link.recommendation  | str   |     | mlxlink: what it says about the link
    rdma.link.minutes         | float | min | time since the counters were cleared
    rdma.link.effective_errors | int  |     | errors left after error correction since the counters were cleared
    rdma.link.effective_ber   | float |     | bit error rate left after error correction; 15E-255 stands for none
    rdma.link.raw_ber         | float |     | bit error rate before error correction, never 0 on PAM4
    rdma.link.raw_errors      | tuple |     | corrected and other raw errors of each lane; always there on PAM4
    rdma.link.symbol_errors   | int   |     | symbol errors since the counters were cleared
    rdma.link.symbol_ber      | float |     | symbol error rate
    rdma.link.downs           | int   |     | times the link went down since the counters were cleared
    rdma.link.recoveries      | int   |     | link error recoveries since the counters were cleared
    rdma.module.identifier    | str   |     | form of the cable or module: OSFP, QSFP112, ...
    rdma.module.technology    | str   |     | cable technology or type, e.g. Passive copper cable
    rdma.module.vendor        | str   |     | vendor name
    rdma.module.part          | str   |     | vendor part number
    rdma.module.serial        | str   |     | vendor serial number
    rdma.module.sensors       | tuple |     | records of name (with unit), values (tuple), low, high (module's limits)
    """
    + "\n".join(f"rdma.counter.{name} | int | | counters/{name}, since driver load" for name in COUNTERS)
    + "\n"
    + "\n".join(f"rdma.counter.{name} | int | | hw_counters/{name}, since driver load" for name in HW_COUNTERS),
)

declare(
    "nic",
    """
    rdma.device.hca_type   | str | | device type, e.g. MT4129 = ConnectX-7
    rdma.device.model      | str | | device type, and the PSID where the source tells it
    rdma.device.fw         | str | | firmware that runs
    rdma.device.fw_flashed | str | | firmware in flash, which runs after the next reset
    rdma.device.fw_available | str | | firmware in the update tool's package
    rdma.device.fw_status  | str | | the update tool's word: Up to date, Update required, ...
    rdma.device.psid       | str | | board id (PSID), e.g. MT_0000000838
    rdma.device.pci        | str | | PCI address
    rdma.device.guid       | str | | node GUID
    roce.cnp_dscp          | int | | DSCP of congestion notification packets (np_cnp_dscp)
    roce.cnp_prio          | int | | 802.1p priority of congestion notification packets (np_cnp_prio)
    rdma.device.part       | str | | part number of the board
    rdma.device.image_guid | str | | system image GUID: equal on all functions of one card
    """,
)

declare(
    "netdev",
    """
    net.rdma_port        | str   |      | RDMA port behind the interface, mlx5_2/1
    net.link             | bool  |      | link detected
    net.speed            | float | Gb/s | link speed; means nothing without link
    net.speed_max        | float | Gb/s | fastest of the link modes that the interface supports
    net.duplex           | str   |      | Full or Half
    net.driver           | str   |      | kernel driver
    net.firmware         | str   |      | firmware version, without the PSID
    net.psid             | str   |      | board id that stands behind the firmware version
    net.bus              | str   |      | PCI address
    net.state            | str   |      | operational state: up, down, dormant, unknown
    net.mtu              | int   | B    | MTU of the interface; 4200 or more lets RoCE use 4096
    net.carrier_changes  | int   |      | times the link came or went since driver load
    net.subnets          | tuple |      | IPv4 networks that the main routing table reaches directly by it
    net.subnet_shared    | bool  |      | another RDMA interface of the node is in one of these networks
    net.pause.rx         | bool  |      | global pause on receive
    net.pause.tx         | bool  |      | global pause on transmit
    roce.pfc             | tuple |      | PFC of priority 0 to 7: 8 times True or False
    roce.trust           | str   |      | what the NIC takes the priority from: pcp, dscp, both
    roce.dcbx            | str   |      | who rules the settings: OS controlled, Firmware controlled
    roce.ecn.np          | tuple |      | ECN notification point (receiver) of priority 0 to 7: 8 times True or False
    roce.ecn.rp          | tuple |      | ECN reaction point (sender) of priority 0 to 7: 8 times True or False
    roce.dscp_map        | dict  |      | priority of each DSCP that the DCB app table names: "26" to 3
    roce.marks           | dict  |      | what RoCE interfaces of one speed are compared by: speed, mtu, trust, np, rp
    roce.cable_length    | int   |      | length in metres that the buffers are sized for
    """
    + "\n".join(f"net.counter.{name} | int | | {name} of ethtool -S, since driver load" for name in NET_COUNTERS),
)

declare(
    "node",
    """
    rdma.port.peers         | dict  | | all ports at once, to compare one with its like: see hwcheck.parse.port_words
    rdma.device.peers       | dict  | | all devices of the node at once: builds and models, see hwcheck.parse.port_words
    gpudirect.peermem       | str   | | version of the loaded nvidia_peermem (or nv_peer_mem) module
    gpudirect.clients       | tuple | | peer memory clients registered with the kernel (old OFED): nv_mem, nv_mem_nc
    gpudirect.peer_client   | bool  | | the kernel has ib_register_peer_memory_client, as OFED's ib_core brings
    nccl.env                | dict  | | NCCL_* environment variables of a shell or job: name to text
    nccl.log.env            | dict  | | NCCL_* variables that NCCL's log says were set: name to text
    nccl.log.hcas           | tuple | | ports NCCL uses, as its log prints them: mlx5_0:1/IB
    nccl.log.gdr            | bool  | | a channel of the log goes by GDRDMA (NIC and GPU directly)
    nccl.log.completions    | tuple | | failed completions: records of status, vendor, hca ("" unsaid), peer, line
    """,
)

declare(
    "component",
    """
    firmware.component.version | str  | | version on the machine
    firmware.component.package | str  | | version in the update package
    firmware.component.build   | dict | | what components are compared by: kind (the name without its number), version
    firmware.component.current | bool | | the tool's Up-To-Date word; says nothing without a package version
    """,
)
