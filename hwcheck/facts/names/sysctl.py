"""
Kernel parameters that are facts of their own: one row each.

A further one is a row in :data:`KEYS`, a name below, and an entry in a profile.
"""

from hwcheck.facts.registry import declare

KEYS: dict[str, tuple[str, int]] = {
    "kernel.numa_balancing": ("sysctl.numa_balancing", 0),
    "vm.max_map_count": ("sysctl.max_map_count", 0),
    "vm.min_free_kbytes": ("sysctl.min_free_kbytes", 0),
    "vm.zone_reclaim_mode": ("sysctl.zone_reclaim_mode", 0),
    "vm.swappiness": ("sysctl.swappiness", 0),
    "vm.overcommit_memory": ("sysctl.overcommit_memory", 0),
    "vm.nr_hugepages": ("sysctl.nr_hugepages", 0),
    "net.core.somaxconn": ("sysctl.somaxconn", 0),
    "net.core.rmem_max": ("sysctl.rmem_max", 0),
    "net.core.wmem_max": ("sysctl.wmem_max", 0),
    "net.core.netdev_max_backlog": ("sysctl.netdev_max_backlog", 0),
    "net.ipv4.tcp_rmem": ("sysctl.tcp_rmem_max", 2),
    "net.ipv4.tcp_wmem": ("sysctl.tcp_wmem_max", 2),
    "net.ipv4.neigh.default.gc_thresh1": ("sysctl.gc_thresh1", 0),
    "net.ipv4.neigh.default.gc_thresh2": ("sysctl.gc_thresh2", 0),
    "net.ipv4.neigh.default.gc_thresh3": ("sysctl.gc_thresh3", 0),
}
"""Parameter → fact, and which of its numbers (tcp_rmem has three)."""

PER_INTERFACE = {"arp_announce", "arp_ignore", "rp_filter"}
"""Under net.ipv4.conf: the greater of ``all`` and the interface's own counts."""

declare(
    "node",
    """
    sysctl.zone_reclaim_mode  | int |     | vm.zone_reclaim_mode; reclaim local memory before remote memory is taken
    sysctl.swappiness         | int |     | vm.swappiness
    sysctl.overcommit_memory  | int |     | vm.overcommit_memory
    sysctl.nr_hugepages       | int |     | vm.nr_hugepages; huge pages of the default size set aside
    sysctl.somaxconn          | int |     | net.core.somaxconn; TCP listen backlog, nothing to do with RDMA
    sysctl.rmem_max           | int | B   | net.core.rmem_max; highest receive buffer a program may ask for
    sysctl.wmem_max           | int | B   | net.core.wmem_max; highest send buffer a program may ask for
    sysctl.netdev_max_backlog | int |     | net.core.netdev_max_backlog
    sysctl.tcp_rmem_max       | int | B   | third number of net.ipv4.tcp_rmem
    sysctl.tcp_wmem_max       | int | B   | third number of net.ipv4.tcp_wmem
    sysctl.gc_thresh1         | int |     | net.ipv4.neigh.default.gc_thresh1; neighbours below which none is dropped
    sysctl.gc_thresh2         | int |     | net.ipv4.neigh.default.gc_thresh2
    sysctl.gc_thresh3         | int |     | net.ipv4.neigh.default.gc_thresh3; most neighbours the table holds
    sysctl.boot_values        | dict |    | what drop-ins set at boot: parameter or pattern to record of value, file
    sysctl.overridden         | tuple |   | parameters that two drop-ins set differently: records of key, value, file, lost_value, lost_file
    sysctl.unread             | tuple |   | parameters set only in /etc/sysctl.conf, which systemd does not read: records of key, value
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare(
    "netdev",
    """
    sysctl.arp_announce | int | | net.ipv4.conf.IF.arp_announce; effective: the greater of it and of all
    sysctl.arp_ignore   | int | | net.ipv4.conf.IF.arp_ignore; effective: the greater of it and of all
    sysctl.rp_filter    | int | | net.ipv4.conf.IF.rp_filter; effective: the greater of it and of all
    """,
)
