"""Recognising a platform: PCI ids before names, whole names, and honest confidence."""

import pytest

from hwcheck.facts import NODE, Fact, Snapshot, gpu_at
from hwcheck.profiles import Identity, ProfileSet, identify

PLATFORMS = ProfileSet().platforms


def _node(*gpus: dict[str, str]) -> Snapshot:
    snapshot = Snapshot()
    for number, facts in enumerate(gpus):
        gpu = gpu_at(f"0000:{number + 16:02x}:00.0")
        for name, value in facts.items():
            snapshot.put(gpu, name, Fact(value))
    return snapshot


def _named(*names: str) -> Identity:
    return identify(_node(*({"gpu.name": name} for name in names)), PLATFORMS)


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("NVIDIA H100 80GB HBM3", "hgx-h100"),
        ("H100 SXM5 80GB", "hgx-h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H200", "hgx-h200"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("GH200 480GB", "gh200"),
        ("NVIDIA GH200 144G HBM3e", "gh200-144g"),
        ("NVIDIA B200", "hgx-b200"),
        ("NVIDIA B300 SXM6 AC", "hgx-b300"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA GB300", "gb300"),
    ],
)
def test_names_are_compared_whole(name: str, platform: str) -> None:
    """GH200 is no H200, GB200 no B200, and H200 never NVL; old drivers leave NVIDIA out."""
    identity = _named(name, name)
    assert (identity.platform, identity.confidence, identity.mixed) == (platform, "name", False)


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-80GB", "NVIDIA H20", "NVIDIA H100", "NVIDIA GH200 120GB"])
def test_boards_without_a_profile_are_generic(name: str) -> None:
    """A near relative's figures are the wrong ones; the sentence names the board."""
    identity = _named(name)
    assert (identity.platform, identity.confidence) == ("base", "none")
    assert name in identity.basis


def test_pci_ids_decide_over_the_name() -> None:
    """A driver older than the board prints a placeholder for its name."""
    facts = {
        "gpu.name": "NVIDIA Graphics Device",
        "gpu.pci.device_id": "10de:2901",
        "gpu.pci.subsystem_id": "10de:1999",
    }
    identity = identify(_node(facts, facts), PLATFORMS)
    assert (identity.platform, identity.confidence) == ("hgx-b200", "pci-id")


def test_the_subsystem_tells_boards_of_one_chip_apart() -> None:
    """10de:2342 is GH200 480GB and GH200 120GB; only the subsystem says which."""
    ids = {"gpu.pci.device_id": "10de:2342", "gpu.pci.subsystem_id": "10de:1809"}
    assert identify(_node(ids), PLATFORMS).platform == "gh200"
    other = {"gpu.name": "NVIDIA GH200 120GB", **ids, "gpu.pci.subsystem_id": "10de:16eb"}
    assert identify(_node(other), PLATFORMS).platform == "base"


def test_an_unlisted_subsystem_falls_back_to_the_name() -> None:
    """Makers bring out boards with new subsystem ids; the name still tells, with less confidence."""
    facts = {"gpu.name": "NVIDIA B200", "gpu.pci.device_id": "10de:2901", "gpu.pci.subsystem_id": "10de:ffff"}
    identity = identify(_node(facts), PLATFORMS)
    assert (identity.platform, identity.confidence) == ("hgx-b200", "name")


def test_a_placeholder_alone_is_no_platform() -> None:
    """NVIDIA Graphics Device is any board that is newer than its driver."""
    assert _named("NVIDIA Graphics Device").platform == "base"


def test_different_models_make_a_mixed_node() -> None:
    """No profile fits two boards."""
    identity = _named("NVIDIA H100 PCIe", "NVIDIA RTX A4000")
    assert (identity.platform, identity.mixed) == ("base", True)
    assert identity.models == ("NVIDIA H100 PCIe", "NVIDIA RTX A4000")


def test_two_boards_without_profile_are_mixed_too() -> None:
    """Unknown models differ from each other as known ones do."""
    assert _named("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB").mixed


def test_a_name_in_a_measurement_is_a_hint() -> None:
    """nccl-tests and nvbandwidth print product names without any GPU subject."""
    snapshot = Snapshot()
    snapshot.put(NODE, "platform.gpu_names", Fact(("NVIDIA H200",)))
    identity = identify(snapshot, PLATFORMS)
    assert (identity.platform, identity.confidence) == ("hgx-h200", "hint")


def test_no_gpu_is_no_platform() -> None:
    """An ibstat alone says nothing of the GPUs."""
    identity = identify(Snapshot(), PLATFORMS)
    assert (identity.platform, identity.confidence, identity.mixed) == ("base", "none", False)


def test_two_spellings_of_one_product_are_one_model() -> None:
    """Drivers before 545 left NVIDIA out; a node described by two of them is not mixed."""
    identity = _named("GH200 480GB", "NVIDIA GH200 480GB")
    assert (identity.platform, identity.mixed) == ("gh200", False)


def test_the_spelling_of_a_measurement_does_not_make_a_node_mixed() -> None:
    """A tool that prints the marketing name describes the same boards."""
    snapshot = _node({"gpu.name": "NVIDIA H100 80GB HBM3"})
    snapshot.put(NODE, "platform.gpu_names", Fact(("H100 SXM5 80GB",)))
    assert identify(snapshot, PLATFORMS).platform == "hgx-h100"


def test_a_device_id_alone_yields_to_a_name_that_says_more() -> None:
    """10de:2342 without subsystem is GH200 480GB or 120GB; the name tells."""
    assert identify(_node({"gpu.pci.device_id": "10de:2342"}), PLATFORMS).platform == "gh200"
    other = {"gpu.pci.device_id": "10de:2342", "gpu.name": "NVIDIA GH200 120GB"}
    assert identify(_node(other), PLATFORMS).platform == "base"


def test_a_placeholder_beside_a_known_board_is_not_mixed() -> None:
    """One GPU of a text may lack its ids; the placeholder contradicts nobody."""
    identity = _named("NVIDIA B200", "NVIDIA Graphics Device")
    assert (identity.platform, identity.mixed) == ("hgx-b200", False)
