"""What all tests of Python and of whole runs share."""

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_folder_of_open_mpi() -> Iterator[None]:
    """mpirun keeps its files in one folder per user, which the last to end removes while another begins: each worker of
    these tests has a folder of its own. Its path is short, as sockets lie there.
    """
    with tempfile.TemporaryDirectory(prefix="mpi", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["OMPI_MCA_orte_tmpdir_base"] = folder
        yield


@pytest.fixture(autouse=True)
def nothing_of_a_device_is_kept(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Every process with an emulated device that comes to its end has given back what it made there."""
    held = tmp_path_factory.getbasetemp() / f"held-{os.getpid()}.txt"
    held.unlink(missing_ok=True)
    monkeypatch.setenv("GENREC_SIMT_HELD", str(held))
    yield
    assert not held.exists() or held.read_text() == ""
