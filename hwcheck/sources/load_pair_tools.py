"""The command lines of tools that measure between two nodes; both ends have the same options, as perftest demands."""

import os
import subprocess

from hwcheck.sources.source import Absent

KINDS = {"rdma.write": "perftest", "rdma.latency": "perftest", "ucx": "ucx_perftest", "ucx.latency": "ucx_perftest"}
_PROGRAMS = {
    "rdma.write": ("ib_write_bw", "package perftest"), "rdma.latency": ("ib_send_lat", "package perftest"),
    "ucx": ("ucx_perftest", "package ucx-utils"), "ucx.latency": ("ucx_perftest", "package ucx-utils"),
}  # fmt: skip
_PLACES = ("/usr/local/bin", "/opt/mellanox/ucx/bin", "/opt/ucx/bin")
_LATENCIES, _MESSAGE, _PAIRS = 1000, 1 << 20, 4


def path_of(test):
    """
    Return where the program of a test is.

    Raises:
        Absent: it is not installed; says the package.
    """
    name, package = _PROGRAMS[test]
    for folder in (*os.get_exec_path(), *_PLACES):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise Absent("%s (%s)" % (name, package))


def words(order):
    """
    Return the command line of one end.

    Raises:
        Absent: the program is not there, or cannot do what is asked.
    """
    path = path_of(order["test"])
    line = _ucx(path, order) if order["test"].startswith("ucx") else _perftest(path, order)
    if order["role"] == "serve":
        return line
    return [line[0], order["address"], *line[1:]] if order["test"].startswith("ucx") else [*line, order["address"]]


def _perftest(path, order):
    line = [path, "-d", order["device"], "-i", str(order["number"]), "-p", str(order["port"]), "-F"]
    if order["gid"] is not None:
        line += ["-x", str(order["gid"])]
    if order["test"] == "rdma.latency":
        return [*line, "-n", str(_LATENCIES), "-U"]
    line += ["-q", str(_PAIRS), "-s", str(_MESSAGE), "-D", str(max(2, int(order["seconds"]))), "--report_gbits"]
    if order["gpu"] is not None:
        line += _gpu_memory(path, order)
    return line


def _gpu_memory(path, order):
    """
    Return the options for buffers in GPU memory.

    Raises:
        Absent: this build of perftest has none.
    """
    done = subprocess.run(  # noqa: S603 - a path that was found, and one fixed word
        [path, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10,
        check=False,
    )  # fmt: skip
    if b"--use_cuda" not in done.stdout:
        raise Absent("perftest with CUDA: %s has no --use_cuda; build it with CUDA_H_PATH" % os.path.basename(path))
    line = ["--use_cuda=%d" % order["gpu"]]
    if order["dmabuf"]:
        if b"--use_cuda_dmabuf" not in done.stdout:
            raise Absent("perftest with dma-buf: %s has no --use_cuda_dmabuf" % os.path.basename(path))
        line.append("--use_cuda_dmabuf")
    return line


def _ucx(path, order):
    line = [path, "-p", str(order["port"])]
    if order["role"] == "serve":
        return line
    if order["test"] == "ucx.latency":
        return [*line, "-t", "tag_lat", "-s", "8", "-n", str(_LATENCIES), "-w", "0", "-f"]
    rate = order["conditions"].get("link_rate") or 1.0  # Gb/s; what is not known is taken for slow
    count = min(100_000, max(200, int(order["seconds"] * rate * 1e9 / 8 / _MESSAGE)))
    return [*line, "-t", "tag_bw", "-s", str(_MESSAGE), "-n", str(count), "-w", "10", "-f"]


def environment():
    """Return the environment of a tool: words in English, GPUs in the order of the PCI bus, all of them."""
    own = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    return {**own, "LC_ALL": "C", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
