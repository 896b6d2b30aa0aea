"""Walks with a made-up wrist sensor, a file of the package: for a first try without a network."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

FEATURES = ("forward", "up", "turn")
_ACTIVITIES = ("stand", "walk", "run")
_PERIOD = {"stand": 1, "walk": 8, "run": 4}  # steps of the sensor to a stride
_SWING = {"stand": 0.0, "walk": 1.0, "run": 2.2}
_N_WALKS = 8


def load_walks(return_X_y: bool = False) -> Any:
    """Eight walks with a wrist sensor (made up): whether one stands, walks or runs, step by step.

    An arm swings forward and back, so walking and running have several hidden states each. It
    ships with the package.

    Parameters
    ----------
    return_X_y : bool, default=False

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of eight arrays (n_steps, 3); ``target``: list of arrays (n_steps,) of
        names; ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple, if `return_X_y`

    Examples
    --------
    >>> from regbayes.datasets import load_walks
    >>> walks = load_walks()
    >>> len(walks.data), walks.data[0].shape[1], walks.target_names
    (8, 3, ['run', 'stand', 'walk'])
    """
    with (files("regbayes.datasets") / "tables" / "walks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    of = np.array([int(row["walk"]) for row in rows])
    steps = np.array([[float(row[name]) for name in FEATURES] for row in rows])
    labels = np.array([row["activity"] for row in rows])
    data = [steps[of == w] for w in range(_N_WALKS)]
    target = [labels[of == w] for w in range(_N_WALKS)]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(FEATURES),
        target_names=sorted(_ACTIVITIES),
        DESCR=load_walks.__doc__,
    )


def draw_walks(rng: np.random.Generator) -> list[list[Any]]:
    """The rows of tables/walks.csv, whose generator had seed 0."""
    rows = []
    for walk in range(_N_WALKS):
        n_steps, activity, left, phase = int(rng.integers(100, 140)), "stand", 0, 0.0
        for _ in range(n_steps):
            if left == 0:
                activity = str(rng.choice([a for a in _ACTIVITIES if a != activity]))
                left = int(rng.integers(15, 40))
            left -= 1
            phase += 2 * np.pi / _PERIOD[activity]
            swing = _SWING[activity] * np.array([np.sin(phase), abs(np.cos(phase)), 0.3])
            noise = rng.normal(size=3) * [0.35, 0.25, 0.5]
            rows.append([walk, *(round(float(v), 2) for v in swing + noise), activity])
    return rows
