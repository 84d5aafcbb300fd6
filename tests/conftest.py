"""Set-up for all tests: the place of the checkout, and a skip where an outside evidence collection is needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.lab.compiler import BuildError
from hwcheck.lab.nvml.build import build
from tests.transports.sshd import MISSING, SSHD, Server, start_sshd

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked ``shared`` where the collection does not lie beside the checkout."""
    if (SHARED / "cases").is_dir():
        return
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="no evidence collection in ../shared"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the outside evidence collection; tests that use it are marked ``shared``."""
    return SHARED


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the lab's libnvidia-ml.so.1; skips where there is no C compiler."""
    try:
        return build(tmp_path_factory.mktemp("nvml")).parent
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run an sshd for the whole session, so that the tests' children are counted beside it."""
    if SSHD is None:
        pytest.skip(MISSING)
    server = start_sshd(tmp_path_factory.mktemp("sshd") / "ssh")
    yield server
    server.stop()
