"""What launchers, mails and forums put in front of each line."""

from __future__ import annotations

import io

import pytest

from hwcheck.evidence import Evidence
from hwcheck.readers.prefixes import find_margin, find_prefix
from hwcheck.readers.recognise import openers
from hwcheck.readers.segments import split_text
from hwcheck.readers.texts import Texts

IBSTAT = """CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400"""
XID = "[  812.5] NVRM: Xid (PCI:0000:5d:00): 79, pid=77, name=train, GPU has fallen off the bus."


def nodes(text: str) -> list[Evidence]:
    """Read one posted text."""
    texts = Texts()
    texts.add(io.BytesIO(text.encode()), "posted")
    return list(texts.nodes())


def prefixed(prefix: str, text: str = IBSTAT) -> str:
    """Put a prefix in front of each line."""
    return "\n".join(prefix + line for line in text.splitlines())


def kinds(evidence: Evidence) -> list[str]:
    """Return the formats that were recognised."""
    return [output.kind for output in evidence.outputs]


@pytest.mark.parametrize("prefix", ["0: ", " 3: ", "[1,0]<stdout>:", "[1,12]<stdout>: ", "> ", "> > ", "    ", "\t"])
def test_a_prefix_of_every_line_is_taken_away(prefix: str) -> None:
    """Ranks, quoting and the indentation of a code block leave the tool's own text."""
    (evidence,) = nodes(prefixed(prefix))
    assert evidence.node == ""
    assert [output.lines for output in evidence.outputs] == [IBSTAT.splitlines()]
    assert not evidence.leftovers


@pytest.mark.parametrize(("host", "mark"), [("gpu-012", ": "), ("gpu-012.cluster", ": "), ("gpu_012", " | ")])
def test_one_host_is_the_name_of_the_node(host: str, mark: str) -> None:
    """Pdsh on one host, or container logs, name the node; there is no second one beside it."""
    (evidence,) = nodes(prefixed(host + mark))
    assert evidence.node == host
    assert kinds(evidence) == ["ibstat"]


def test_two_hosts_are_two_nodes() -> None:
    """Lines of several hosts, mixed as they came, are judged node by node, each line with its own number."""
    one, two = prefixed("n1: ").splitlines(), prefixed("n2: ").splitlines()
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    first, second = nodes(mixed)
    assert [first.node, second.node] == ["n1", "n2"]
    assert kinds(first) == kinds(second) == ["ibstat"]
    (output,) = second.outputs
    assert output.first_line == 2
    assert output.excerpt(14) == "Rate: 400"
    assert output.excerpt(13) == ""


def test_texts_of_the_same_hosts_meet() -> None:
    """Two files that name the same two hosts are two nodes, not four."""
    texts = Texts()
    for text in (IBSTAT, XID):
        both = f"{prefixed('n1: ', text)}\n{prefixed('n1: ', text)}\n{prefixed('n2: ', text)}\n{prefixed('n2: ', text)}"
        texts.add(io.BytesIO(both.encode()), "file")
    found = list(texts.nodes())
    assert [node.node for node in found] == ["n1", "n2"]
    assert all({"ibstat", "kernel.log"} == set(kinds(node)) for node in found)


def test_a_text_without_host_beside_several_hosts_is_a_node_of_its_own() -> None:
    """Nothing says whose it is, so it is given to nobody."""
    texts = Texts()
    texts.add(io.BytesIO(f"{prefixed('n1: ')}\n{prefixed('n2: ')}".encode()), "both")
    texts.add(io.BytesIO(XID.encode()), "dmesg")
    assert sorted(node.node for node in texts.nodes()) == ["", "n1", "n2"]


def test_what_the_launcher_says_of_a_host_stays_with_the_host() -> None:
    """A host that did not answer is no node without a name; srun's own lines hide no prefix."""
    text = prefixed("n1: ") + "\npdsh@mgmt: n2: ssh exited with exit code 255\npdsh@mgmt: n2: x\n" + prefixed("n3: ")
    found = {node.node: node for node in nodes(text)}
    assert set(found) == {"n1", "n2", "n3"}
    assert found["n2"].leftovers[0].excerpt == "ssh exited with exit code 255"
    (evidence,) = nodes("srun: job 4242 queued\nsrun: job 4242 has been allocated resources\n" + prefixed("0: "))
    assert kinds(evidence) == ["ibstat"]


def test_tasks_that_print_different_things_are_one_node() -> None:
    """A job's tasks, mixed line by line, are put back in order each by itself."""
    table = "CPU(s):              64\nSocket(s):           2\nNUMA node(s):        2\nModel name:          none"
    lines = [f"{rank}: {line}" for pair in zip(IBSTAT.splitlines(), table.splitlines(), strict=False)
             for rank, line in enumerate(pair)]  # fmt: skip
    rest = [f"0: {line}" for line in IBSTAT.splitlines()[4:]]
    (evidence,) = nodes("\n".join(lines + rest))
    ibstat = next(output for output in evidence.outputs if output.kind == "ibstat")
    assert [line for line in ibstat.lines if line] == IBSTAT.splitlines()


def test_tasks_that_print_the_same_are_judged_apart() -> None:
    """Two tasks may be two nodes: a healthy answer of one must not hide the sick answer of the other."""
    down = IBSTAT.replace("LinkUp", "Disabled")
    found = nodes(f"{prefixed('0: ', down)}\n{prefixed('1: ')}")
    assert [node.node for node in found] == ["task 0", "task 1"]
    assert "Disabled" in found[0].outputs[0].text
    assert "Disabled" not in found[1].outputs[0].text


@pytest.mark.parametrize(
    "text",
    [
        XID.replace("[  812.5] ", "") + "\nNVRM: loading NVIDIA UNIX x86_64 Kernel Module\nNVRM: none",
        "State: Active\nPhysical state: LinkUp\nRate: 400\nRate: 400",
        "18:00.0 3D controller: NVIDIA Corporation\n2a:00.0 3D controller: NVIDIA Corporation",
        "12:30:01 up 3 days\n12:30:02 up 3 days",
    ],
    ids=["NVRM", "fields", "lspci", "times"],
)
def test_a_word_and_a_colon_are_no_host(text: str) -> None:
    """Kernel lines, fields, addresses and times begin like a prefix and are none."""
    head = text.splitlines()
    assert find_prefix(head, openers().recognised) is None
    assert nodes(text)[0].node == ""


def test_an_indentation_of_the_text_itself_stays() -> None:
    """A piece of nvidia-smi -q is known by its indentation."""
    piece = ["    Fabric", "        State                             : Completed", "        Status : Success"]
    assert find_margin(piece, openers().recognised) is None


def test_nested_quotes_and_prompts_are_found() -> None:
    """A quoted, indented paste of a shell session is a shell session."""
    session = ["$ cat /proc/cmdline", "quiet iommu=pt"]
    evidence = Evidence()
    split_text([f"> >     {line}" for line in session], "mail", evidence)
    assert kinds(evidence) == ["proc-cmdline"]
    assert evidence.outputs[0].lines == ["quiet iommu=pt"]


def test_an_empty_head_has_no_prefix() -> None:
    """Blank lines share nothing."""
    assert find_prefix(["", "  "], openers().recognised) is None
    assert find_margin([], openers().recognised) is None
    assert find_margin(["> ", ">"], openers().recognised) is not None
