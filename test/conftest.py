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
