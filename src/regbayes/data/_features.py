"""What a step of a sequence is described by: its place, its movement, or the shape about it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes.data._sequences import SequenceMixin, Sequences, SequenceTags, check_sequences
from regbayes.data._table import check_size

Use = Literal["positions", "velocities", "both", "shapes"]
_LARGEST = 1e300  # of larger ones, differences and sums do not exist
_MOST_POINTS = 8  # of a shape, on either side of its step


class _SequenceTransformer(SequenceMixin, TransformerMixin, BaseEstimator):
    """What transformers of whole sequences share; where one ends matters to them."""

    _parameter_constraints: ClassVar[dict] = {
        "use": [StrOptions({"positions", "velocities", "both", "shapes"})],
        "window": [Interval(Integral, 1, None, closed="left")],
        "center": ["boolean"],
        "scale": ["boolean"],
        "level": [Interval(Real, 0, None, closed="neither"), None],
        "closed": ["boolean"],
    }

    def fit_transform(self: Any, X: Any, y: Any = None, lengths: Any = None) -> Any:
        """Fit, and transform the same sequences.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        y : ignored
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`.
        """
        return self.fit(X, y, lengths).transform(X, lengths)  # scikit-learn's forgets the lengths

    def _describe(self: Any, sequences: Sequences) -> NDArray:
        return describe(
            sequences, self.use, self.center, self.scale, self.window, self.level, self.closed
        )

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(labels="none", values="continuous", missing_steps=True)


class SequenceFeatures(_SequenceTransformer):
    """Describe steps by values, velocities or shapes; bring sequences to one place and size.

    Nothing is learned: what a sequence becomes depends on that sequence alone.

    Parameters
    ----------
    use : {"positions", "velocities", "both", "shapes"}, default="positions"
        The values of a step, its difference to the step before, or both side by side. Where the
        step before is not there (the first step) or not observed, it is the difference to the next
        step; a sequence of one step has velocity zero. `"shapes"`: the values of `window` steps on
        either side and its own, minus their mean; beyond an end, the last value goes on, unless
        the sequence is `closed`.
    center : bool, default=False
        Subtract its mean from every sequence: its place stops to matter.
    scale : bool, default=False
        Divide every sequence by its root mean square deviation from its mean, one number for all
        features, which keeps the proportions of its shape: its size stops to matter. Velocities are
        divided too. A constant sequence is left alone.
    window : int, default=10
        How far a shape reaches to either side. Of a wide one, eight values on a side are taken,
        evenly.
    level : float, default=None
        Divide every shape by its root mean square plus this, so that a bend is the same whether
        flat or steep; what is much smaller than the level is noise, and stays small. In units of
        the values, or, with `scale`, of the sequence's size: 0.1 is a good first try. None: shapes
        keep their sizes.
    closed : bool, default=False
        Sequences are contours, the first step follows the last: shapes go round.

    Attributes
    ----------
    n_features_in_ : int

    See Also
    --------
    SequenceQuantizer : the same, then symbols.
    StepTransformer : scikit-learn's transformers on every step.

    Notes
    -----
    Steps that are not observed stay so, and count in no mean. An observed step between two that are
    not has no velocity: it becomes unobserved, unless only positions are used. So does a step whose
    shape has an unobserved value.

    Examples
    --------
    >>> from regbayes.data import SequenceFeatures
    >>> X = [np.array([1.0, 2.0, 4.0, 7.0]), np.array([10.0, 20.0, 40.0, 70.0])]
    >>> SequenceFeatures(use="both").fit_transform(X)[0]
    array([[1., 1.],
           [2., 1.],
           [4., 2.],
           [7., 3.]])
    >>> small, large = SequenceFeatures(center=True, scale=True).fit_transform(X)
    >>> np.allclose(small, large)
    True
    """

    def __init__(
        self,
        *,
        use: Use = "positions",
        center: bool = False,
        scale: bool = False,
        window: int = 10,
        level: float | None = None,
        closed: bool = False,
    ):
        self.use = use
        self.center = center
        self.scale = scale
        self.window = window
        self.level = level
        self.closed = closed

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> SequenceFeatures:
        """Check the parameters and the sequences, and remember the number of features.

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
        check_size(check_sequences(self, X, lengths).values, _LARGEST)
        return self

    def transform(self, X: Any, lengths: Any = None) -> list[NDArray] | NDArray:
        """Describe every step.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`. With ``use="both"`` positions are in the first half of the
            columns, and velocities in the second; with ``use="shapes"`` the features of the first
            value come first.
        """
        check_is_fitted(self)
        sequences = check_sequences(self, X, lengths, reset=False)
        return sequences.give_back(self._describe(sequences))


def describe(
    sequences: Sequences,
    use: Use,
    center: bool,
    scale: bool,
    window: int,
    level: float | None,
    closed: bool,
) -> NDArray:
    """The features of every step, as `SequenceFeatures` has them; rows of NaN where unobserved."""
    steps = sequences.values
    check_size(steps, _LARGEST)
    whose = np.repeat(np.arange(len(sequences)), np.diff(sequences.starts))
    positions, velocities = steps, _velocities(steps, sequences.starts)
    if center or scale:
        deviations = _deviations(sequences, whose)
        if center:
            positions = deviations
        if scale:
            units = _units(sequences, whose, deviations)[whose, None]
            positions, velocities = positions / units, velocities / units
    if use == "positions":
        return positions
    if use == "velocities":
        return velocities
    if use == "shapes":
        return _shapes(positions, sequences.starts, window, level, closed)
    both = np.column_stack([positions, velocities])
    both[np.isnan(velocities[:, 0])] = np.nan
    return both


def _deviations(sequences: Sequences, whose: NDArray) -> NDArray:
    """Every step minus the mean of its sequence."""
    steps, starts = sequences.values, sequences.starts[:-1]
    seen = ~np.isnan(steps[:, 0])
    # From the first observed step, so that a constant sequence gives zeros without rounding; that
    # of a sequence without any is another's, and the difference NaN all the same.
    first = np.minimum.reduceat(np.where(seen, np.arange(len(steps)), len(steps) - 1), starts)
    moved = steps - steps[first[whose]]
    return moved - _means(moved, starts)[whose]


def _units(sequences: Sequences, whose: NDArray, deviations: NDArray) -> NDArray:
    """Root mean square deviation of every sequence, one if it is constant."""
    starts = sequences.starts[:-1]
    largest = np.maximum.reduceat(np.nan_to_num(np.abs(sequences.values)).max(axis=1), starts)
    largest[largest == 0] = 1
    # Divided first, so that the squares of huge or tiny numbers exist.
    squares = (deviations / largest[whose, None]) ** 2
    spread = np.sqrt(_means(squares, starts).mean(axis=1))
    units = np.maximum(spread * largest, np.finfo(float).tiny)
    return np.where(spread > np.finfo(float).eps, units, 1.0)


def _means(steps: NDArray, starts: NDArray) -> NDArray:
    """Mean of the observed steps of every sequence, zero if there are none."""
    n_seen = np.add.reduceat((~np.isnan(steps[:, :1])).astype(float), starts)
    return np.add.reduceat(np.nan_to_num(steps), starts) / np.maximum(n_seen, 1)


def _shapes(
    steps: NDArray, starts: NDArray, window: int, level: float | None, closed: bool
) -> NDArray:
    """Values about every step, minus their mean, over their size if there is a level."""
    side = np.unique(np.linspace(1, window, min(window, _MOST_POINTS)).round().astype(np.int64))
    offsets = np.concatenate([-side[::-1], [0], side])
    lengths = np.diff(starts)
    first, length = np.repeat(starts[:-1], lengths)[:, None], np.repeat(lengths, lengths)[:, None]
    places = np.arange(len(steps))[:, None] - first + offsets
    places = places % length if closed else np.clip(places, 0, length - 1)
    values = steps[first + places]
    values = values - values.mean(axis=1, keepdims=True)
    if level is not None:
        largest = np.abs(values).max(axis=(1, 2), keepdims=True) + level
        sizes = largest * np.sqrt(np.mean((values / largest) ** 2, axis=(1, 2), keepdims=True))
        values = values / (sizes + level)
    return values.reshape(len(steps), -1)


def _velocities(steps: NDArray, starts: NDArray) -> NDArray:
    back = np.diff(steps, axis=0, prepend=np.nan)
    back[starts[:-1]] = np.nan
    ahead = np.roll(back, -1, axis=0)  # of the last step it is NaN, as the first has none back
    alone = starts[:-1][np.diff(starts) == 1]
    ahead[alone] = steps[alone] - steps[alone]  # zero, or NaN if not observed
    return np.where(np.isnan(back), ahead, back)
