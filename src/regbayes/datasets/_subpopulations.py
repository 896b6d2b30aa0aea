"""A table with hidden sub-populations, another rule in each."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.chains import draw_seed

_NAMES = ("north", "west", "east")
_CENTERS = np.array([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0]])
_ANGLES = np.radians([-90.0, 30.0, 150.0])  # in each group the class "yes" lies this way


def make_subpopulations(n_samples: int = 600, random_state: Any = None) -> Bunch:
    """Two classes that no straight line separates, but one does in each of three groups.

    The groups lie apart, so that they can be found; which side is "yes" differs between them.

    Parameters
    ----------
    n_samples : int, default=600
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data`` (n_samples, 2), ``target`` (n_samples,) of "yes" and "no", ``groups``
        (n_samples,), the sub-population of every row, ``group_names``, ``feature_names``.

    Examples
    --------
    >>> from regbayes.datasets import make_subpopulations
    >>> table = make_subpopulations(100, random_state=0)
    >>> table.data.shape, sorted(set(table.target.tolist())), sorted(set(table.groups.tolist()))
    ((100, 2), ['no', 'yes'], [0, 1, 2])
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}")
    known = isinstance(random_state, (Integral, np.random.Generator))
    rng = np.random.default_rng(random_state if known else draw_seed(random_state))
    groups = rng.integers(len(_NAMES), size=n_samples)
    offset = 1.3 * rng.standard_normal((n_samples, 2))
    direction = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])[groups]
    return Bunch(
        data=_CENTERS[groups] + offset,
        target=np.where((offset * direction).sum(axis=1) > 0, "yes", "no"),
        groups=groups,
        group_names=list(_NAMES),
        feature_names=["x", "y"],
    )
