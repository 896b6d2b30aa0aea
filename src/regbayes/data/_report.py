"""`model.report(...)`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class ReportMixin:
    """What every model can write about itself."""

    def report(
        self,
        X: Any,
        y: Any = None,
        path: str | os.PathLike[str] = "report.html",
        *,
        title: str | None = None,
        feature_names: Sequence[str] | None = None,
        lengths: Any = None,
    ) -> Path:
        """Write one HTML page about this fitted model, see :func:`regbayes.report.write_report`.

        Parameters
        ----------
        X, y, path, title, feature_names, lengths
            As for :func:`regbayes.report.write_report`.

        Returns
        -------
        Path
        """
        # Here, since the report knows the families; the contract of imports names this exception.
        from regbayes.report import write_report

        return write_report(
            self, X, y, path, title=title, feature_names=feature_names, lengths=lengths
        )
