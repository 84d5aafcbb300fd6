"""Measured results against floors: when a figure passes, warns, fails, or cannot be judged."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.checks.measurements import measurements
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.findings import Finding
from hwcheck.parse import take_snapshot
from hwcheck.profiles import Entry, Profile

GIB = 1 << 30
BOUNDS = {
    "baseline.nccl.all_reduce.busbw": 440,
    "baseline.nccl.all_reduce.certain": 330,
    "baseline.nccl.all_reduce.ranks": 8,
    "baseline.nccl.all_reduce.size": GIB,
    "baseline.nccl.all_reduce.several_nodes": 150,
    "baseline.h2d": 48,
    "baseline.d2h": 48,
    "baseline.p2p.read": 335,
    "baseline.p2p.write": 335,
    "baseline.ib_write_bw": 380,
}


def judge(platform: str = "hgx-test") -> Judge:
    """Make a judge with known floors; the profile's own figures are not what is tested here."""
    bounds = {id: Entry(id, {"value": value}, {}) for id, value in BOUNDS.items()} if platform != "base" else {}
    return Judge(Profile(platform, "", (), {}, bounds, ""))


def found(kind: str, text: str, platform: str = "hgx-test", command: str = "") -> dict[tuple[str, str], Finding]:
    """Parse and judge one output; findings that are no skip for want of data, by check and subject."""
    snapshot = take_snapshot(Evidence(outputs=[Output(kind, text.splitlines(), command=command)]))
    return {(one.check, str(one.subject)): one for one in judge(platform).findings(snapshot)}


def nccl(
    busbw: float, *, size: int = 4 * GIB, hosts: int = 1, per_host: int = 8, wrong: str = "0", listed: int = 0
) -> str:
    """Make an all-reduce table with one row; algbw fits busbw and the number of ranks."""
    total = hosts * per_host
    ranks = [
        f"# Rank {rank} Group 0 Pid 1{rank} on n{rank // per_host} device {rank % per_host} [0x1] NVIDIA H100 80GB HBM3"
        for rank in range(listed or total)
    ]
    algbw = busbw * total / (2 * (total - 1))
    cells = f"999.9 {algbw:.2f} {busbw:.2f} {wrong}"
    half = "time   algbw   busbw #wrong"
    head = f"#       size         count      type   redop    root     {half}     {half}"
    return "\n".join(["# Using devices", *ranks, head, f"  {size} {size // 4} float sum -1 {cells} {cells}"])


def status(result: dict[tuple[str, str], Finding], check: str, subject: str = "nccl.all_reduce") -> str:
    """Return the answer of one check."""
    return str(result[check, subject].status)


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        ({"busbw": 470}, "pass"),
        ({"busbw": 470, "size": 64 << 20}, "pass"),
        ({"busbw": 390}, "warn"),
        ({"busbw": 210}, "fail"),
        ({"busbw": 210, "size": 64 << 20}, "unknown"),
        ({"busbw": 470, "wrong": "N/A"}, "unknown"),
        ({"busbw": 360, "per_host": 4}, "unknown"),
        ({"busbw": 90, "hosts": 2}, "warn"),
        ({"busbw": 90, "hosts": 2, "wrong": "N/A"}, "warn"),
        ({"busbw": 470, "hosts": 2}, "skip"),
        ({"busbw": 470, "hosts": 1, "listed": 0, "per_host": 8, "wrong": "0"}, "pass"),
        ({"busbw": 200, "hosts": 2, "listed": 5}, "unknown"),
    ],
)
def test_all_reduce_is_judged_by_where_and_how_it_ran(run: dict[str, Any], answer: str) -> None:
    """A full node has a floor; a condition that differs makes it unknown; several nodes can only warn."""
    assert status(found("nccl-tests", nccl(**run)), "baseline.nccl") == answer


def channels(via: str) -> str:
    """Make lines of NCCL's log that say what carries the data."""
    return "\n".join(
        f"n0:1{rank}:2 [{rank}] NCCL INFO Channel 00/0 : {rank}[{rank}] -> 0[0] via {via}" for rank in (1, 2)
    )


@pytest.mark.parametrize(
    ("via", "hosts", "answer"),
    [
        ("P2P/CUMEM", 1, "pass"),
        ("SHM/direct/direct", 1, "unknown"),
        ("NET/IB/0/GDRDMA", 2, "skip"),
        ("NET/IB/0", 2, "unknown"),
    ],
)
def test_a_collective_counts_only_over_the_expected_transport(via: str, hosts: int, answer: str) -> None:
    """NCCL's own log says what carried the data: not host memory within a node, nor NICs without GPUDirect."""
    text = nccl(470, hosts=hosts)
    head, _, table = text.partition("\n")
    assert status(found("nccl-tests", f"{head}\n{channels(via)}\n{table}"), "baseline.nccl") == answer


def test_without_a_platform_no_floor_applies() -> None:
    """The figure is told with its unit, and nothing is judged."""
    answer = found("nccl-tests", nccl(90), "base")["baseline.nccl", "nccl.all_reduce"]
    assert answer.status == "skip"
    assert "90 GB/s" in answer.message


def test_wrong_sums_fail_whatever_the_speed() -> None:
    """Data corruption is a fault of its own; unchecked data is no pass."""
    assert status(found("nccl-tests", nccl(470, wrong="2")), "baseline.nccl_correct") == "fail"
    assert status(found("nccl-tests", nccl(470)), "baseline.nccl_correct") == "pass"
    assert status(found("nccl-tests", nccl(470, wrong="N/A")), "baseline.nccl_correct") == "skip"


def test_a_slow_network_names_what_to_look_at() -> None:
    """The remedy of a slow run over nodes is about GPUDirect RDMA and the NICs."""
    remedy = found("nccl-tests", nccl(90, hosts=2))["baseline.nccl", "nccl.all_reduce"].remedy
    assert remedy is not None
    for word in ("GDRDMA", "ACS", "IOMMU", "peermem", "ib_write_bw", "NCCL_IB_HCA"):
        assert word in remedy.text


def matrix(test: str, *rows: str, gpus: int = 2) -> str:
    """Make one nvbandwidth test."""
    columns = " ".join(str(i) for i in range(gpus))
    body = "\n".join(f" {i} {row}" for i, row in enumerate(rows))
    return f"Running {test}.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n   {columns}\n{body}\n"


@pytest.mark.parametrize(
    ("test", "rows", "check", "answer"),
    [
        ("host_to_device_memcpy_ce", ("55.1 55.0",), "baseline.host_copy", "pass"),
        ("device_to_host_memcpy_ce", ("55.1 27.0",), "baseline.host_copy", "warn"),
        ("device_to_device_memcpy_read_ce", ("N/A 394.0", "376.0 N/A"), "baseline.peer_copy", "pass"),
        ("device_to_device_memcpy_write_ce", ("N/A 394.0", "180.0 N/A"), "baseline.peer_copy", "fail"),
        ("all_to_host_memcpy_ce", ("27.1 27.0",), "baseline.host_copy", "skip"),
        ("host_to_device_bidirectional_memcpy_ce", ("20.1 20.0",), "baseline.result", "skip"),
        ("device_local_copy", ("1400.0 1400.0",), "baseline.result", "skip"),
    ],
)
def test_copies_are_judged_by_their_slowest_cell(test: str, rows: tuple[str, ...], check: str, answer: str) -> None:
    """Each one-way copy has the floor of its path; what is shared or counted otherwise has none."""
    assert status(found("nvbandwidth", matrix(test, *rows)), check, f"nvbandwidth.{test}") == answer


def test_shared_host_copies_count_for_a_single_gpu() -> None:
    """With one GPU nothing is shared, so the floor of a single copy applies."""
    text = matrix("host_to_all_memcpy_ce", "55.0", gpus=1)
    assert status(found("nvbandwidth", text), "baseline.host_copy", "nvbandwidth.host_to_all_memcpy_ce") == "pass"


def test_a_sum_is_not_held_against_the_floor_of_one() -> None:
    """A SUM line says nothing about the slowest pair."""
    result = found("nvbandwidth", "SUM device_to_device_memcpy_read_ce 765.0")
    assert status(result, "baseline.peer_copy", "nvbandwidth.device_to_device_memcpy_read_ce") == "skip"


def test_copies_without_peer_access_are_no_nvlink_figures() -> None:
    """P2P=Disabled goes through host memory and is slow by nature."""
    body = "   D\\D     0      1\n     0 2800.0  37.0\n     1  36.5 2810.0\n"
    text = f"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n{body}"
    result = found("p2pbandwidth", text)
    assert status(result, "baseline.result", "p2pbandwidth.unidirectional_disabled") == "skip"


def transfer(test: str, rate: float, doubt: str = "") -> str:
    """Make a perftest table."""
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    return f"                    RDMA_{test} BW Test\n{head}\n{doubt} 65536 5000 {rate} {rate} 0.7\n"


@pytest.mark.parametrize(
    ("text", "check", "name", "answer"),
    [
        (transfer("Write", 391.0), "baseline.rdma_write", "ib_write_bw", "pass"),
        (transfer("Write", 196.0), "baseline.rdma_write", "ib_write_bw", "skip"),
        (transfer("Write", 140.0), "baseline.rdma_write", "ib_write_bw", "warn"),
        (transfer("Write", 391.0, "CPU Frequency is not max.\n"), "baseline.rdma_write", "ib_write_bw", "unknown"),
        (transfer("Read", 328.0), "baseline.result", "ib_read_bw", "skip"),
    ],
)
def test_rdma_writes_have_a_floor_and_reads_have_none(text: str, check: str, name: str, answer: str) -> None:
    """A result that fits a slower link is no fault; one that fits none warns; a doubted clock makes it unknown."""
    assert status(found("perftest", text), check, f"perftest.{name}") == answer


def test_a_run_that_broke_off_warns_with_its_words() -> None:
    """The message of the tool is the finding; which side failed is not known."""
    result = found("nccl-tests", "n3: Test NCCL failure common.cu:303 'internal error'")
    assert "internal error" in result["baseline.run", "nccl"].message
    assert status(result, "baseline.run", "nccl") == "warn"


def diag(*rows: tuple[str, str]) -> str:
    """Make a dcgmi diag table."""
    rule = "+---------------------------+------------------------------------------------+"
    head = "| Diagnostic                | Result                                         |"
    return "\n".join([rule, head, rule, *(f"| {name:<26}| {cell:<47}|" for name, cell in rows), rule])


def test_each_diag_test_is_a_finding_at_its_line() -> None:
    """Pass, fail and skip keep their meaning, and the evidence is the test's own row."""
    result = found(
        "dcgmi-diag", diag(("PCIe", "Pass - All"), ("GPU Memory", "Fail - GPU: 3"), ("EUD Test", "Skip - All"))
    )
    answers = {str(one.subject): str(one.status) for (check, _), one in result.items() if check == "baseline.dcgm_diag"}
    assert answers == {"dcgm.pcie": "pass", "dcgm.gpu_memory": "fail", "dcgm.eud_test": "skip"}
    failed = result["baseline.dcgm_diag", "dcgm.gpu_memory"]
    assert failed.origin is not None
    assert failed.origin.line == 5
    assert "GPU 3" in failed.message


def test_a_diag_test_that_could_not_start_is_unknown_and_cuda_leads() -> None:
    """A memory test without CUDA says nothing of the memory; the fabric manager is the cause."""
    words = "Error using CUDA API cuInit. Unable to initialize CUDA library: 'system not yet initialized'."
    pieces = [words[at : at + 45] for at in range(0, len(words), 45)]
    rows = [("Warning" if number == 0 else "", piece) for number, piece in enumerate(pieces)]
    result = found("dcgmi-diag", diag(("GPU Memory", "Fail - All"), *rows))
    assert status(result, "baseline.dcgm_diag", "dcgm.gpu_memory") == "unknown"
    lead = result["driver.cuda_init", ""]
    assert lead.status == "fail"
    assert "fabric manager" in lead.message


def test_refused_gpu_memory_names_peermem() -> None:
    """Error 14 with GPU buffers is the missing peer-memory path, and no limit of locked memory."""
    log = "initializing CUDA\nCouldn't allocate MR with error=14\n"
    outputs = [
        Output("lsmod", ["nvidia_uvm 4943872 0", "nvidia 54566912 1 nvidia_uvm"], command="lsmod | grep nvidia"),
        Output("perftest", log.splitlines(), command="ib_write_bw --use_cuda=0"),
    ]
    answers = judge().findings(take_snapshot(Evidence(outputs=outputs)))
    (refused,) = [one for one in answers if one.check == "rdma.gpu_memory_registration"]
    assert refused.status == "fail"
    assert "nvidia_peermem is not loaded" in refused.message
    assert not [one for one in answers if one.check.startswith("limits.") and one.status in ("warn", "fail")]


@pytest.mark.parametrize(("word", "answer"), [("Healthy", "pass"), ("Warning", "warn"), ("Failure", "fail")])
def test_dcgm_health_is_taken_at_its_word(word: str, answer: str) -> None:
    """Healthy passes, Warning warns, Failure fails."""
    document = f'{{"body": {{"Overall Health": {{"value": "{word}"}}}}}}'
    assert status(found("dcgmi-health.json", document), "gpu.dcgm_health", "") == answer


def test_a_link_that_dcgm_sees_down_fails() -> None:
    """One D among the letters is a fault, X is a link the board does not use."""
    head = "|  NvLink Link Status  |\nGPUs:\n    gpuId 0:\n"
    assert status(found("dcgmi-nvlink", f"{head}        U U X"), "nvlink.dcgm_links", "") == "pass"
    assert status(found("dcgmi-nvlink", f"{head}        U D X"), "nvlink.dcgm_links", "") == "fail"


def test_measurements_carry_unit_and_conditions() -> None:
    """The report's list has each figure once, under the name of the test."""
    snapshot: Snapshot = take_snapshot(Evidence(outputs=[Output("nccl-tests", nccl(470).splitlines())]))
    (one,) = measurements(snapshot)
    assert (one.name, one.value, one.unit, one.conditions["ranks"]) == ("nccl.all_reduce", 470, "GB/s", 8)


@pytest.mark.parametrize("wrong", ["0", "N/A"])
@pytest.mark.parametrize("words", ["4 FAILED", "FAILED"])
def test_the_tools_own_verdict_counts_whatever_the_column_says(wrong: str, words: str) -> None:
    """Out of bounds values that FAILED are wrong results, though #wrong is 0 or N/A."""
    result = found("nccl-tests", nccl(470, wrong=wrong) + f"\n# Out of bounds values : {words}\n")
    assert status(result, "baseline.nccl_correct") == "fail"
    assert words in result["baseline.nccl_correct", "nccl.all_reduce"].message


def test_the_verdict_counts_without_its_table() -> None:
    """The last lines of a log are enough to tell wrong results; OK alone passes nothing."""
    result = found("nccl-tests", "# Out of bounds values : 2 FAILED\n# Avg bus bandwidth    : 353.1 \n", "base")
    assert status(result, "baseline.nccl_correct", "nccl.collective") == "fail"
    result = found("nccl-tests", "# Out of bounds values : 0 OK\n", "base")
    assert not any(finding.status == "pass" and finding.check != "evidence.read" for finding in result.values())


def test_no_line_of_ok_makes_an_unvalidated_run_right() -> None:
    """The tool prints OK also when nothing was checked."""
    result = found("nccl-tests", nccl(470, wrong="N/A") + "\n# Out of bounds values : 0 OK\n")
    assert status(result, "baseline.nccl_correct") == "skip"
