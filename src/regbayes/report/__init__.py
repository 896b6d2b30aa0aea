"""One page about a fitted model: what it learned, how sure it is, and where it fails."""

from regbayes.report.page import write_report

__all__ = ["write_report"]
