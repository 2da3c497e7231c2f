"""The version of this package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("genrec")
except PackageNotFoundError:  # used from the source folder without being installed
    __version__ = "0.0.0"
