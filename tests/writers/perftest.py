"""Programs with the manners of perftest and librdmacm, for nodes that have no RDMA device."""

LATENCIES = "#, usec\n1, 41.5\n2, 2.1\n3, 2.0\n4, 2.2\n"

FAKE = """#!{python} -IS
# The manners of ib_send_lat and rping: the server listens, serves one client, and ends; a client without one fails.
import os, socket, sys, time
arguments = sys.argv[1:]
port = int(arguments[arguments.index("-p") + 1])
rping = os.path.basename(sys.argv[0]) == "rping"
serves = "-s" in arguments if rping else not arguments[-1].startswith("127.")
address = arguments[arguments.index("-a") + 1] if rping else (os.environ.get("ADDRESS") if serves else arguments[-1])
mode = os.environ.get("FAKE", "")
if serves:
    if mode == "deaf":
        time.sleep(60)
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address or "127.0.0.1", port))
    server.listen(1)
    server.accept()[0].recv(1)
    if mode == "stays":
        time.sleep(60)
else:
    try:
        socket.create_connection((address, port)).send(b"x")
    except OSError:
        sys.exit("Couldn't connect to " + address)
    print({latencies!r}, end="")
"""


def program(python: str) -> str:
    """Return the text of a program for a Python; installed as ib_send_lat or rping it behaves as that."""
    return FAKE.format(python=python, latencies=LATENCIES)
