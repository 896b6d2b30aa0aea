"""The checks of sequence estimators: four that pass, and many broken ones that are caught."""

import sys
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes.chains import draw_seed, streams
from regbayes.data import (
    SequenceTags,
    check_sequence_labels,
    check_sequences,
    check_step_labels,
)
from regbayes.testing import check_sequence_estimator, sequence_checks


def one_hot(batch):
    """Symbols as numbers, whose mean is their frequency."""
    table = np.eye(len(batch.categories))[batch.values]
    table[batch.values < 0] = np.nan
    return table


def centers_of(table, codes, n_classes):
    """The mean of every class; that of all where a class has no observed row."""
    seen = ~np.isnan(table[:, 0])
    rows = [table[seen & (codes == k)] for k in range(n_classes)]
    return np.array([(r if len(r) else table[seen]).mean(axis=0) for r in rows])


def shares_of(table, centers):
    """A class's share falls with the distance to its centre; rows not observed do not know."""
    unit = np.abs(centers - centers.mean(axis=0)).max() or 1.0
    distance = (((table[:, None] - centers) / unit) ** 2).sum(axis=2)
    return softmax(-np.nan_to_num(distance), axis=1)


class StepLabeller(BaseEstimator):
    """The nearest of the classes' centres, for every step; bagged, to have use for a seed."""

    _parameter_constraints: ClassVar[dict] = {
        "values": [StrOptions({"continuous", "categorical", "count"})],
        "missing": ["boolean"],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self, values="continuous", missing=True, n_draws=2, random_state=None, n_jobs=None
    ):
        self.values = values
        self.missing = missing
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _sequence_tags(self):
        return SequenceTags("step", self.values, self.missing, self.missing)

    def _check(self, X, lengths, reset):
        kept = None if reset else self._categories
        batch = check_sequences(
            self,
            X,
            lengths,
            values=self.values,
            reset=reset,
            allow_missing=self.missing,
            categories=kept,
        )
        self._categories = batch.categories
        return batch, one_hot(batch) if self.values == "categorical" else batch.values

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, lengths=None):
        batch, table = self._check(X, lengths, reset=True)
        self.classes_, codes = check_step_labels(batch, y, allow_missing=self.missing)
        self._draw_all(table, codes)
        return self

    def _draw_all(self, table, codes):
        def draw(rng):
            # A few rows twice, as if they were seen again.
            again = np.r_[np.arange(len(table)), rng.integers(len(table), size=5)]
            return centers_of(table[again], codes[again], len(self.classes_))

        rngs = streams(self.random_state, self.n_draws)
        jobs = (delayed(draw)(rng) for rng in rngs)
        self.centers_ = Parallel(n_jobs=self.n_jobs, backend="threading")(jobs)

    def _shares(self, X, lengths):
        check_is_fitted(self)
        batch, table = self._check(X, lengths, reset=False)
        return batch, np.mean([shares_of(table, centers) for centers in self.centers_], axis=0)

    def predict_proba(self, X, lengths=None):
        batch, shares = self._shares(X, lengths)
        return batch.give_back(shares)

    def predict(self, X, lengths=None):
        batch, shares = self._shares(X, lengths)
        return batch.give_back(self.classes_[shares.argmax(axis=1)])

    def score(self, X, y, lengths=None):
        batch, shares = self._shares(X, lengths)
        _, truth = check_step_labels(batch, y, allow_missing=self.missing, classes=self.classes_)
        return float(np.mean((shares.argmax(axis=1) == truth)[truth != -1]))


class StepClusterer(BaseEstimator):
    """k-means on the steps."""

    _parameter_constraints: ClassVar[dict] = {
        "n_states": [Interval(Integral, 1, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(self, n_states=3, spread=1.0, random_state=None):
        self.n_states = n_states
        self.spread = spread
        self.random_state = random_state

    def _sequence_tags(self):
        return SequenceTags()

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, lengths=None):
        table = check_sequences(self, X, lengths).values
        self._seed = draw_seed(self.random_state)
        seen = table[~np.isnan(table[:, 0])]
        self.centers_ = seen[np.random.default_rng(self._seed).integers(len(seen), size=3)]
        for _ in range(5):
            codes = shares_of(table, self.centers_).argmax(axis=1)
            self.centers_ = centers_of(table, codes, len(self.centers_))
        return self

    def predict_proba(self, X, lengths=None):
        check_is_fitted(self)
        batch = check_sequences(self, X, lengths, reset=False)
        return batch.give_back(shares_of(batch.values, self.centers_))

    def decode(self, X, lengths=None):
        check_is_fitted(self)
        batch = check_sequences(self, X, lengths, reset=False)
        return batch.give_back(shares_of(batch.values, self.centers_).argmax(axis=1))

    def score(self, X, y=None):
        check_is_fitted(self)
        batch = check_sequences(self, X, reset=False)
        return float(shares_of(batch.values, self.centers_).max(axis=1).mean())

    def sample(self, n_steps):
        rng = np.random.default_rng(self._seed)
        states = rng.integers(len(self.centers_), size=n_steps)
        noise = rng.normal(scale=self.spread, size=(n_steps, self.n_features_in_))
        return self.centers_[states] + noise, states


class SequenceClassifier(ClassifierMixin, BaseEstimator):
    """The nearest of the classes' centres, for the mean of a sequence."""

    def _sequence_tags(self):
        return SequenceTags(labels="sequence")

    def _means(self, batch):
        parts = np.split(batch.values, batch.starts[1:-1])
        seen = [part[~np.isnan(part[:, 0])] for part in parts]
        return np.array([s.mean(axis=0) if len(s) else p[0] for s, p in zip(seen, parts)])

    def fit(self, X, y=None, lengths=None):
        batch = check_sequences(self, X, lengths)
        self.classes_, codes = check_sequence_labels(batch, y)
        self.centers_ = centers_of(self._means(batch), codes, len(self.classes_))
        return self

    def predict_proba(self, X, lengths=None):
        check_is_fitted(self)
        batch = check_sequences(self, X, lengths, reset=False)
        return shares_of(self._means(batch), self.centers_)

    def predict(self, X, lengths=None):
        shares = self.predict_proba(X, lengths)
        return self.classes_[shares.argmax(axis=1)]


GOOD = {
    "steps": StepLabeller(),
    "fully labelled steps": StepLabeller(missing=False),
    "counts": StepLabeller("count"),
    "symbols": StepLabeller("categorical"),
    "no labels": StepClusterer(),
    "sequences": SequenceClassifier(),
}


@pytest.mark.parametrize("estimator", GOOD.values(), ids=GOOD)
def test_a_good_estimator_passes_and_is_not_changed(estimator):
    before = dict(vars(estimator))
    check_sequence_estimator(estimator)
    assert vars(estimator) == before


def test_there_are_many_checks_and_each_says_what_it_expects():
    names = [name for name, _ in sequence_checks(StepLabeller())]
    assert len(names) == len(set(names)) > 45
    for _, check in sequence_checks(StepLabeller()):
        assert check.args[0].__doc__.endswith(".")


def test_what_does_not_apply_is_told():
    skipped = {}
    check_sequence_estimator(SequenceClassifier(), on_skip=skipped.__setitem__)
    assert skipped["check_sample"] == "needs sample"
    assert skipped["check_missing_labels"] == "needs labels of steps and missing labels"
    run = {name for name, _ in sequence_checks(SequenceClassifier())}
    assert run.isdisjoint(skipped)
    tried = {name for estimator in GOOD.values() for name, _ in sequence_checks(estimator)}
    assert tried == run | set(skipped)


def test_frames_are_skipped_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    skipped = {}
    check_sequence_estimator(StepLabeller(), on_skip=skipped.__setitem__)
    assert skipped["check_frame_with_id_column"] == "needs pandas"
    assert "check_stacked_array" not in skipped


def test_an_estimator_without_tags_is_told_how_to_get_them():
    with pytest.raises(TypeError, match="_sequence_tags; give it one"):
        check_sequence_estimator(BaseEstimator())


# Broken estimators. Each differs from a good one by what a tired person might write.


class ChangesItsInput(StepLabeller):
    def fit(self, X, y=None, lengths=None):
        for x in X:
            x[np.isnan(x)] = 0
        return super().fit(X, y, lengths)


class ChangesLabels(StepLabeller):
    def fit(self, X, y=None, lengths=None):
        if isinstance(y, list) and isinstance(y[0], np.ndarray):
            y[0][0] = y[1][0]
        return super().fit(X, y, lengths)


class DependsOnOrder(StepLabeller):
    def _shares(self, X, lengths):
        batch, shares = super()._shares(X, lengths)
        return batch, np.cumsum(shares, axis=0) / np.arange(1, len(shares) + 1)[:, None]


class DependsOnCompany(StepLabeller):
    def _shares(self, X, lengths):
        batch, shares = super()._shares(X, lengths)
        return batch, (shares + shares.mean(axis=0)) / 2


class IgnoresLengths(SequenceClassifier):
    def predict_proba(self, X, lengths=None):
        return super().predict_proba(X)


class DependsOnJobs(StepLabeller):
    def _draw_all(self, table, codes):
        seed, self.random_state = self.random_state, draw_seed(self.random_state) + self.n_jobs
        super()._draw_all(table, codes)
        self.random_state = seed


class WritesToItsInput(StepLabeller):
    def fit(self, X, y=None, lengths=None):
        for x in X:
            x *= 1
        return super().fit(X, y, lengths)


class TakesInfinity(StepLabeller):
    def _check(self, X, lengths, reset):
        return super()._check([np.nan_to_num(x, posinf=0) for x in X], lengths, reset)


class WorksInInit(StepLabeller):
    def __init__(
        self, values="continuous", missing=True, n_draws=2, random_state=None, n_jobs=None
    ):
        super().__init__(values, bool(missing), n_draws, random_state, n_jobs)


class SetsMoreInInit(SequenceClassifier):
    def __init__(self):
        self.centers_ = None


class ReturnsNothing(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        super().fit(X, y, lengths)


class RemembersEarlierFits(StepLabeller):
    def _draw_all(self, table, codes):
        before = getattr(self, "centers_", [])
        super()._draw_all(table, codes)
        self.centers_ = before + self.centers_


class UsesTheGlobalSeed(StepLabeller):
    def _draw_all(self, table, codes):
        np.random.rand()  # noqa: NPY002
        super()._draw_all(table, codes)


class GuessesWhenItAnswers(StepLabeller):
    def _shares(self, X, lengths):
        batch, shares = super()._shares(X, lengths)
        noise = np.random.default_rng().random(shares.shape)
        return batch, noise / noise.sum(axis=1, keepdims=True)


class IgnoresItsSeed(StepLabeller):
    def _draw_all(self, table, codes):
        seed, self.random_state = self.random_state, None
        super()._draw_all(table, codes)
        self.random_state = seed


class LosesProbability(StepLabeller):
    def _shares(self, X, lengths):
        batch, shares = super()._shares(X, lengths)
        return batch, 0.9 * shares


class PredictsTheLeastProbable(StepLabeller):
    def predict(self, X, lengths=None):
        batch, shares = self._shares(X, lengths)
        return batch.give_back(self.classes_[shares.argmin(axis=1)])


class LeavesClassesUnsorted(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        super().fit(X, y, lengths)
        self.classes_, self.centers_ = self.classes_[::-1], self.centers_[::-1]
        return self


class ForgetsItsLayout(StepLabeller):
    def predict_proba(self, X, lengths=None):
        return self._shares(X, lengths)[1]


class AlwaysGivesLists(StepLabeller):
    def predict(self, X, lengths=None):
        answer = super().predict(X, lengths)
        return answer if isinstance(answer, list) else [answer]


class AnswersInArraysOfEqualLength(StepLabeller):
    def predict(self, X, lengths=None):
        answer = super().predict(X, lengths)
        return np.array(answer) if isinstance(X, np.ndarray) else answer


class AnswersBeforeFit(StepLabeller):
    def _shares(self, X, lengths):
        if not hasattr(self, "centers_"):
            raise AttributeError("no centers_")
        return super()._shares(X, lengths)


class DoesNotKnowUnobservedSteps(StepLabeller):
    def _shares(self, X, lengths):
        batch, shares = super()._shares(X, lengths)
        shares[np.isnan(batch.values[:, 0])] = np.nan
        return batch, shares


class TakesUnknownForAClass(StepLabeller):
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, lengths=None):
        batch, table = self._check(X, lengths, reset=True)
        y = [[-1 if label is None else label for label in labels] for labels in y]
        self.classes_, codes = check_step_labels(batch, y, allow_missing=False)
        self._draw_all(table, codes)
        return self


class CannotBePickled(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        self._function = lambda: None
        return super().fit(X, y, lengths)


class ChangesParameters(StepLabeller):
    def _draw_all(self, table, codes):
        super()._draw_all(table, codes)
        self.n_draws = 1


class NamesPoorly(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        self.means = 0
        return super().fit(X, y, lengths)


class KeepsTheLastAnswer(SequenceClassifier):
    def predict(self, X, lengths=None):
        self.last_ = super().predict(X, lengths)
        return self.last_


class SaysItIsAClassifier(ClassifierMixin, StepLabeller):
    score = StepLabeller.score


class TakesAnyParameter(StepLabeller):
    def fit(self, X, y=None, lengths=None):
        return StepLabeller.fit.__wrapped__(self, X, y, lengths)


class SortsTheSequencesOfAFrame(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        X = X.sort_values("sequence_id") if hasattr(X, "sort_values") else X
        return super().fit(X, y, lengths)


class ForgetsTheOrderOfRows(StepLabeller):
    def predict(self, X, lengths=None):
        batch, shares = self._shares(X, lengths)
        labels = self.classes_[shares.argmax(axis=1)]
        return labels if batch.stacked else batch.give_back(labels)


class ForgetsFeatureNames(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        super().fit(X, y, lengths)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self


class OverflowsInHugeUnits(StepLabeller):
    def _shares(self, X, lengths):
        batch, shares = super()._shares(X, lengths)
        with np.errstate(over="ignore"):
            return batch, shares * np.exp(np.abs(batch.values).sum() / 1e6)


class NeedsTwoSteps(StepLabeller):
    def fit(self, X, y=None, lengths=None):
        super().fit(X, y, lengths)
        if isinstance(X, list):
            self.jump_ = max(np.abs(np.diff(x, axis=0)).max() for x in map(np.asarray, X))
        return self


class TakesUnknownSymbols(StepLabeller):
    def _check(self, X, lengths, reset):
        if not reset and isinstance(X, list):
            X = [[s if s in self._categories else None for s in np.ravel(x)] for x in X]
        return super()._check(X, lengths, reset)


class TakesOneClass(SequenceClassifier):
    def fit(self, X, y=None, lengths=None):
        if y is not None and len(y) > 1 and len(set(y)) == 1:
            return self
        return super().fit(X, y, lengths)


class SamplesTooMuch(StepClusterer):
    def sample(self, n_steps):
        return super().sample(n_steps + 1)


class DecodesNames(StepClusterer):
    def decode(self, X, lengths=None):
        return [states.astype(str) for states in super().decode(X, lengths)]


class ScoresNothing(StepClusterer):
    def score(self, X, y=None):
        return float("nan")


class ScoresUnknownLabels(StepLabeller):
    def score(self, X, y, lengths=None):
        return super().score(X, [np.where(labels == -1, 0, labels) for labels in y], lengths)


class ScoresListsOnly(StepLabeller):
    def score(self, X, y, lengths=None):
        return float(np.mean(np.concatenate(self.predict(X)) == np.concatenate(y)))


BROKEN = [
    (ChangesItsInput(), "check_inputs_are_unchanged"),
    (ChangesLabels(), "check_inputs_are_unchanged"),
    (DependsOnOrder(), "check_order_of_sequences"),
    (DependsOnCompany(), "check_company_of_sequences"),
    (IgnoresLengths(), "check_stacked_array"),
    (DependsOnJobs(), "check_n_jobs"),
    (WritesToItsInput(), "check_read_only"),
    (TakesInfinity(), "check_infinity"),
    (WorksInInit(), "check_init_does_no_work"),
    (SetsMoreInInit(), "check_init_does_no_work"),
    (ReturnsNothing(), "check_fit_returns_self"),
    (RemembersEarlierFits(), "check_refit_forgets"),
    (RemembersEarlierFits(), "check_fit_is_repeatable"),
    (UsesTheGlobalSeed(), "check_global_random_state"),
    (IgnoresItsSeed(), "check_fit_is_repeatable"),
    (GuessesWhenItAnswers(), "check_answers_are_repeatable"),
    (LosesProbability(), "check_probabilities"),
    (PredictsTheLeastProbable(), "check_prediction_is_most_probable"),
    (LeavesClassesUnsorted(), "check_labels_of_any_type"),
    (ForgetsItsLayout(), "check_list_in_list_out"),
    (AlwaysGivesLists(), "check_stacked_in_stacked_out"),
    (AnswersInArraysOfEqualLength(), "check_three_dimensions_in_list_out"),
    (AnswersBeforeFit(), "check_unfitted"),
    (DoesNotKnowUnobservedSteps(), "check_missing_steps"),
    (DoesNotKnowUnobservedSteps(), "check_unobserved_sequence"),
    (TakesUnknownForAClass(), "check_missing_labels"),
    (CannotBePickled(), "check_pickle"),
    (ChangesParameters(), "check_fit_leaves_params"),
    (NamesPoorly(), "check_fitted_names"),
    (KeepsTheLastAnswer(), "check_answering_changes_nothing"),
    (SaysItIsAClassifier(), "check_cross_validation"),
    (TakesAnyParameter(), "check_invalid_parameters_are_named"),
    (SortsTheSequencesOfAFrame(), "check_frame_with_id_column"),
    (ForgetsTheOrderOfRows(), "check_frame_with_scattered_rows"),
    (ForgetsFeatureNames(), "check_feature_names_in"),
    (OverflowsInHugeUnits(), "check_huge_units"),
    (NeedsTwoSteps(), "check_sequences_of_one_step"),
    (TakesUnknownSymbols("categorical"), "check_unknown_symbol"),
    (TakesOneClass(), "check_one_class"),
    (SamplesTooMuch(), "check_sample"),
    (DecodesNames(), "check_decode"),
    (ScoresNothing(), "check_score"),
    (ScoresUnknownLabels(), "check_score_of_missing_labels"),
    (ScoresListsOnly(), "check_score_of_frame"),
]


@pytest.mark.filterwarnings("ignore:X has feature names", "ignore:X does not have valid feature")
@pytest.mark.parametrize(
    ("estimator", "name"), [pytest.param(*b, id=f"{type(b[0]).__name__}-{b[1]}") for b in BROKEN]
)
def test_a_broken_estimator_is_caught(estimator, name):
    with pytest.raises(AssertionError, match=f"{type(estimator).__name__} fails {name}: "):
        dict(sequence_checks(estimator))[name]()
    with pytest.raises(AssertionError, match=f"{type(estimator).__name__} fails check_"):
        check_sequence_estimator(estimator)
