"""Here, so that the lowest layer can say it."""

__version__ = "0.1.0"
