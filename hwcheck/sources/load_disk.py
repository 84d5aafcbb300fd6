"""
The disk behind the folder for temporary files, by fio: what it reads and writes at once, and how long one page takes.

The file has no name and vanishes with whoever has it open, so that nothing stays whatever ends the measurement.
"""

import json
import os

from hwcheck.sources import load_before, load_binding, load_figures, load_witness
from hwcheck.sources.load_figures import FigureError
from hwcheck.sources.source import Absent

_FOLDER = "/var/tmp"  # noqa: S108 - on disk, unlike /tmp on many systems; the file has no name there
_SIZE = 1 << 30
_REPEATS = 5
_FULL = 4  # times the size that must be free
_TESTS = (
    # test, unit, kind of access, block size, requests in flight
    ("disk.read", "GB/s", "read", "1M", 32),
    ("disk.write", "GB/s", "write", "1M", 32),
    ("disk.latency", "us", "randread", "4k", 1),
)


def disk(context):
    """
    Measure with fio; yields the lines.

    Raises:
        Absent: fio is not installed, or the folder has too little room.
    """
    if not any(os.access(os.path.join(folder, "fio"), os.X_OK) for folder in os.get_exec_path()):
        raise Absent("fio (package fio)")
    folder = context.root + _FOLDER
    try:
        space = os.statvfs(folder)
    except OSError as error:
        raise Absent("%s: %s" % (folder, error.strerror)) from None
    if space.f_bavail * space.f_frsize < _FULL * _SIZE:
        raise Absent("room for a file of 1 GiB in %s (four times that must be free)" % folder)
    load_binding.end_with_parent()
    return _measure(context, folder)


def _measure(context, folder):
    file = _nameless(folder)
    try:
        _fill(file)
        for test, unit, access, block, depth in _TESTS:
            yield load_figures.begins(test, _FOLDER)
            witness = load_witness.NodeWitness(context)
            conditions = load_before.host_before(context.root)
            try:
                runs = [_fio(file, access, block, depth) for _ in range(_REPEATS)]
                samples = [_figure(run, access, unit) for run in runs]
                conditions.update(where=_FOLDER, size=_SIZE, depth=depth, **witness.told())
                if unit == "us":
                    conditions.update(_spectrum(runs[-1]))
                yield load_figures.figure(test, _FOLDER, unit, samples, conditions)
            except FigureError as error:
                yield load_figures.broken(test, _FOLDER, error)
    finally:
        os.close(file)


def _nameless(folder):
    """Open a file that has no name in any folder."""
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError:  # not every file system can
        import tempfile

        file, path = tempfile.mkstemp(prefix="hwcheck-", dir=folder)
        os.unlink(path)
        return file


def _fill(file):
    """Write the file once: what was never written reads from nowhere, and fio would want to make the file anew."""
    block = os.urandom(1 << 20)
    for _ in range(_SIZE >> 20):
        os.write(file, block)
    os.fsync(file)


def _fio(file, access, block, depth):
    """
    Run fio for a second; returns what it says of the job.

    Raises:
        FigureError: it failed.
    """
    import subprocess

    argv = [
        "fio", "--name=hwcheck", "--filename=/proc/self/fd/%d" % file, "--size=%d" % _SIZE, "--rw=" + access,
        "--bs=" + block, "--iodepth=%d" % depth, "--ioengine=libaio", "--direct=1", "--runtime=1", "--time_based",
        "--thread", "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, check=False, pass_fds=[file])  # noqa: S603
    text = done.stdout.decode("utf-8", "replace")
    try:
        return json.loads(text[max(text.find("{"), 0) :])["jobs"][0]
    except (ValueError, LookupError, TypeError):
        words = (done.stderr or done.stdout)[-200:].decode("utf-8", "replace").strip().replace("\n", " ")
        raise FigureError("fio ended with status %d: %s" % (done.returncode, words)) from None


def _figure(run, access, unit):
    try:
        if run["error"]:
            raise FigureError("fio: error %s (%s)" % (run["error"], os.strerror(run["error"])))
        side = run["write" if access == "write" else "read"]
        return side["bw_bytes"] / 1e9 if unit == "GB/s" else side["clat_ns"]["mean"] / 1000
    except (LookupError, TypeError) as error:
        raise FigureError("fio's answer has no %s" % error) from None


def _spectrum(run):
    shares = run["read"]["clat_ns"].get("percentile", {})
    names = (("p50", "50.000000"), ("p99", "99.000000"), ("p999", "99.900000"))
    found = {name: shares[key] / 1000 for name, key in names if key in shares}
    found["max"] = run["read"]["clat_ns"]["max"] / 1000
    return found
