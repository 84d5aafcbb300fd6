"""
The lab's host form: each node in namespaces of its own, with the node's files at their real paths and a real sshd.

One process, the keeper, holds everything: it is the first process of a PID namespace and all nodes run below it, so
that when it ends, however it ends, the kernel ends all of them and drops every mount with their namespaces. Nothing is
mounted, set or listened on outside of them but the listening sockets of the nodes, which the keeper holds.
"""
