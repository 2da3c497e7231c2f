"""What all tests of whole runs share."""

import os
from collections.abc import Iterator

import pytest


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
