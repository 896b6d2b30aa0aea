"""Synthetic sequences whose labels switch with a hidden chain."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from regbayes.chains import draw_seed

# Weights of the all-ones matrix and of the identity in a transition matrix.
_TRANSITIONS = {
    "positive": (0.05, 0.85),
    "negative": (0.45, -0.35),
    "vague": (0.3, 0.1),
    "sticky": (0.01, 0.98),
}


def _transition_matrix(transition: str | ArrayLike, n_states: int) -> NDArray[np.float64]:
    if isinstance(transition, str):
        if transition not in _TRANSITIONS:
            names = ", ".join(map(repr, _TRANSITIONS))
            raise ValueError(f"transition must be one of {names} or a matrix, got {transition!r}")
        everywhere, stay = _TRANSITIONS[transition]
        matrix = everywhere + stay * np.eye(n_states)
        return matrix / matrix.sum(axis=1, keepdims=True)
    matrix = np.asarray(transition, dtype=np.float64)
    if matrix.shape != (n_states, n_states):
        raise ValueError(
            f"transition has shape {matrix.shape}, but n_states={n_states} needs "
            f"({n_states}, {n_states})"
        )
    if np.any(matrix < 0) or not np.allclose(matrix.sum(axis=1), 1):
        raise ValueError("the rows of transition must be probabilities: none negative, sum 1")
    return matrix


def make_switching_labels(
    n_steps: Sequence[int] = (500, 5000),
    transition: str | ArrayLike = "positive",
    n_states: int = 3,
    means: ArrayLike | None = None,
    mean_range: float = 3.0,
    random_state: Any = None,
) -> Bunch:
    """Sequences in which a hidden state decides which side of a threshold has which label.

    A hidden Markov chain starts anywhere and moves by `transition`. In state k an observation is
    normal with mean m_k and variance 1, and its label says on which side of m_k it lies. Which
    side is 1 is drawn for each state, so the observation alone, without its state, says little.

    This is the synthetic data of [1]_, Section 5.2. The paper does not say how the sides were
    chosen; a fair coin is our reading.

    Parameters
    ----------
    n_steps : sequence of int, default=(500, 5000)
        Length of each sequence; all of them have the same means, sides and transitions. The
        default is the paper's one sequence to train and one to test.
    transition : {"positive", "negative", "vague", "sticky"} or array (n_states, n_states)
        With E all ones and I the identity: 0.05 E + 0.85 I, 0.45 E − 0.35 I, 0.3 E + 0.1 I
        (Table 2), 0.01 E + 0.98 I (Figure 2). Rows are divided by their sum; with three states
        this changes "sticky" only, whose published rows sum to 1.01.
    n_states : int, default=3
    means : array (n_states,), default=None
        Mean of each state; when None, uniform on [−mean_range, mean_range]. Figure 2 has
        (2.5, 1.5, −1.5).
    mean_range : float, default=3.0
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of arrays (n, 1), one for each entry of `n_steps`; ``target``: list of
        arrays (n,) of 0 and 1; ``states``: list of arrays (n,); ``means`` (n_states,),
        ``orientations`` (n_states,): 1 where label 1 lies above the mean, −1 where below;
        ``transition`` (n_states, n_states), ``start`` (n_states,).

    References
    ----------
    .. [1] Zhang, Zhu & Zhang (2014). Max-margin infinite hidden Markov models. ICML.

    Examples
    --------
    >>> from regbayes.datasets import make_switching_labels
    >>> chains = make_switching_labels((100, 20), "sticky", means=[2.5, 1.5, -1.5], random_state=0)
    >>> [X.shape for X in chains.data], chains.target[1].shape
    ([(100, 1), (20, 1)], (20,))
    >>> side = np.sign(chains.data[0][:, 0] - chains.means[chains.states[0]])
    >>> bool(np.all((side == chains.orientations[chains.states[0]]) == chains.target[0]))
    True
    """
    matrix = _transition_matrix(transition, n_states)
    rng = np.random.default_rng(draw_seed(random_state))
    start = np.full(n_states, 1 / n_states)
    drawn = rng.uniform(-mean_range, mean_range, n_states)
    centres = drawn if means is None else np.asarray(means, dtype=np.float64)
    if centres.shape != (n_states,):
        raise ValueError(f"means has shape {centres.shape}, but n_states={n_states}")
    orientations = rng.choice([-1, 1], n_states)
    data, target, states = [], [], []
    for n in n_steps:
        chain = np.empty(n, dtype=int)
        law = start
        for t in range(n):
            chain[t] = rng.choice(n_states, p=law)
            law = matrix[chain[t]]
        observed = rng.normal(centres[chain])
        data.append(observed[:, None])
        target.append((orientations[chain] * (observed - centres[chain]) > 0).astype(int))
        states.append(chain)
    return Bunch(
        data=data,
        target=target,
        states=states,
        means=centres,
        orientations=orientations,
        transition=matrix,
        start=start,
    )
