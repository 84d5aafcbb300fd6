"""
Transports: how the node program gets to a node and its stream comes back. Local, SSH by paramiko, SSH by OpenSSH.

Each takes a :class:`Request`, and gives :class:`hwcheck.evidence.Evidence` or a :class:`hwcheck.errors.TransportError`
with a reason. They never import each other.
"""
