"""From continuous sequences to symbols: a codebook of typical steps."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import _fit_context
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from regbayes.data._features import Use, _SequenceTransformer
from regbayes.data._sequences import check_sequences
from regbayes.data._table import Frame


class SequenceQuantizer(_SequenceTransformer):
    """Write continuous sequences in symbols: every step becomes its nearest entry of a codebook.

    The codebook comes from k-means on the steps of all training sequences together.

    Parameters
    ----------
    n_symbols : int, default=20
        Size of the codebook. If training has fewer distinct steps, each of them is a symbol.
    use : {"positions", "velocities", "both", "shapes"}, default="positions"
        What a step is described by: its values, its difference to the step before, both, or the
        shape of the steps about it. See `SequenceFeatures`, also for the next five.
    center : bool, default=False
        Subtract its mean from every sequence: its place stops to matter.
    scale : bool, default=False
        Divide every sequence by its root mean square deviation, one number for all features: its
        size stops to matter. Together with `center` it is the remedy when sequences differ in
        level and size and only their shape counts.
    window : int, default=10
        How far a shape reaches to either side.
    level : float, default=None
        Divide every shape by its size plus this.
    closed : bool, default=False
        Sequences are contours: shapes go round.
    standardize : bool, default=True
        Divide every feature of the description by its standard deviation over all training steps,
        so that positions and velocities weigh alike. Otherwise features keep their proportions.
    random_state : int, RandomState, Generator or None, default=None
        Where k-means starts.

    Attributes
    ----------
    codebook_ : ndarray of shape ``(n_symbols_, n_described)``
        The entries, sorted by their first feature, then the second, and so on. They are in
        standardised units; in those of `SequenceFeatures`, ``codebook_ * deviations_ + means_``.
    means_, deviations_ : ndarray of shape (n_described,)
        Mean and standard deviation of the description over the training steps; for a constant
        feature its size. Without `standardize` the deviation is the same number for all features.
    n_symbols_ : int
    n_features_in_ : int

    See Also
    --------
    SequenceFeatures : the description alone, for models of continuous values.

    Notes
    -----
    Steps that are not observed stay so: None among the symbols, as estimators of symbols take it.
    An observed step between two that are not has no velocity, and becomes None too unless only
    positions are used; so does one whose shape has an unobserved value.

    Every symbol occurs in training, so a model of symbols in the same pipeline knows them all.

    Of very many training steps a random part goes into k-means, 60 for each symbol but not fewer
    than 20000: the means of more would hardly differ. Large codebooks start once, not four times.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from regbayes.data import SequenceQuantizer
    >>> from regbayes.hmm import InfiniteHMM
    >>> X = [np.array([0.0, 0.1, 5.0, 5.1]), np.array([9.0, np.nan, 0.2])]
    >>> SequenceQuantizer(n_symbols=3, random_state=0).fit_transform(X)
    [array([0, 0, 1, 1]), array([2, None, 0], dtype=object)]

    Down or up, wherever and whatever the size:

    >>> waves = [np.array([0.0, 1.0, 2.0, 1.0, 0.0]), np.array([90.0, 80.0, 70.0, 80.0, 90.0])]
    >>> SequenceQuantizer(use="velocities", scale=True).fit_transform(waves)
    [array([1, 1, 1, 0, 0]), array([0, 0, 0, 1, 1])]

    >>> pipeline = make_pipeline(SequenceQuantizer(), InfiniteHMM("categorical"))
    """

    _parameter_constraints: ClassVar[dict] = {
        **_SequenceTransformer._parameter_constraints,
        "n_symbols": [Interval(Integral, 1, None, closed="left")],
        "standardize": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_symbols: int = 20,
        *,
        use: Use = "positions",
        center: bool = False,
        scale: bool = False,
        window: int = 10,
        level: float | None = None,
        closed: bool = False,
        standardize: bool = True,
        random_state: Any = None,
    ):
        self.n_symbols = n_symbols
        self.use = use
        self.center = center
        self.scale = scale
        self.window = window
        self.level = level
        self.closed = closed
        self.standardize = standardize
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> SequenceQuantizer:
        """Make the codebook from all observed steps.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout.
        y : ignored
        lengths : array-like of int, optional

        Returns
        -------
        self
        """
        described = self._describe(check_sequences(self, X, lengths))
        described = described[~np.isnan(described[:, 0])]
        if len(described) == 0:
            raise ValueError(
                "no step has its neighbours: no two in a row, or no whole shape, is observed.\n"
                'To mend it: fill the gaps, or choose use="positions".'
            )
        columns = described.T[:, :, None] if self.standardize else [described]
        frames = [Frame.of(column) for column in columns]
        self.means_ = np.concatenate([frame.center for frame in frames])
        self.deviations_ = np.ones(len(self.means_)) * [frame.unit for frame in frames]
        self.codebook_ = _codebook(
            self._frame.enter(described), self.n_symbols, _random(self.random_state)
        )
        self.n_symbols_ = len(self.codebook_)
        return self

    def transform(self, X: Any, lengths: Any = None) -> list[NDArray] | NDArray:
        """The symbol of every step.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`: integers from 0 to ``n_symbols_ - 1``. An array with steps that
            are not observed is of objects, and has None for them.
        """
        check_is_fitted(self)
        sequences = check_sequences(self, X, lengths, reset=False)
        steps = self._frame.enter(self._describe(sequences))
        symbols = np.full(len(steps), -1)
        seen = ~np.isnan(steps[:, 0])
        symbols[seen] = _nearest(steps[seen], self.codebook_)
        parts = sequences.give_back(symbols)
        return [*map(_with_gaps, parts)] if isinstance(parts, list) else _with_gaps(parts)

    @property
    def _frame(self) -> Frame:
        units: Any = self.deviations_  # one for each column, where a Frame has one for all
        return Frame(self.means_, units)


def _codebook(steps: NDArray, n_symbols: int, rng: np.random.RandomState) -> NDArray:
    some = steps
    n_enough = max(20_000, 60 * n_symbols)
    if len(steps) > n_enough:
        some = steps[rng.permutation(len(steps))[:n_enough]]
    distinct, counts = _distinct(some)
    if len(distinct) <= n_symbols and some is not steps:
        distinct, counts = _distinct(steps)  # lest a rare one be left out
    if len(distinct) <= n_symbols:
        return distinct
    # Sorted and weighted, the steps are the same in whatever order the sequences come. Several
    # starts on a part of the steps find better codebooks, and sooner, than mini-batches of all.
    # With many symbols one start is as good as the other.
    kmeans = KMeans(n_symbols, n_init=4 if n_symbols <= 66 else 1, random_state=rng)
    with threadpool_limits(limits=1):
        centers = kmeans.fit(distinct, sample_weight=counts).cluster_centers_
    codebook = np.unique(centers, axis=0)
    return codebook[np.unique(_nearest(distinct, codebook))]


def _distinct(steps: NDArray) -> tuple[NDArray, NDArray]:
    """Distinct steps and how often they occur; what differs by rounding only is the same."""
    return np.unique(np.round(steps, 12), axis=0, return_counts=True)


def _nearest(steps: NDArray, codebook: NDArray) -> NDArray:
    # Distances by themselves, not by a product of matrices: a step's symbol does not hang on which
    # others it came with.
    nearest = np.empty(len(steps), dtype=np.int64)
    for start in range(0, len(steps), 10_000):  # distances of few at a time, to save memory
        batch = slice(start, start + 10_000)
        nearest[batch] = cdist(steps[batch], codebook, "sqeuclidean").argmin(axis=1)
    return nearest


def _with_gaps(symbols: NDArray) -> NDArray:
    """None in the place of -1, if there is any."""
    gaps = symbols < 0
    if not gaps.any():
        return symbols
    out = symbols.astype(object)
    out[gaps] = None
    return out


def _random(random_state: Any) -> np.random.RandomState:
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**31))
    return check_random_state(random_state)
