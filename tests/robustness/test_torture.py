"""Whatever comes in: finite numbers, or an error that says what to do; never anything else."""

import faulthandler
import signal
import warnings
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone, is_regressor
from sklearn.preprocessing import MaxAbsScaler

from regbayes import _files
from regbayes.data import SequenceFeatures, SequenceQuantizer, SequenceWords, StepTransformer
from regbayes.harmonium import (
    DiscriminativeRBM,
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
    MaxMarginHarmoniumRegressor,
)
from regbayes.hmm import (
    CategoricalHMM,
    GaussianHMM,
    InfiniteHMM,
    LargeMarginHMM,
    MarkovSwitchingMED,
    MaxMarginInfiniteHMM,
)
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM
from regbayes.scores import (
    FisherKernelLearning,
    FisherScore,
    FreeEnergyScore,
    MarginClassifier,
    MaxMarginScore,
    MaxMarginScoreClassifier,
    PosteriorDivergenceScore,
    Preprocessed,
    SideBySide,
    SufficientStatisticsScore,
    TOPScore,
)
from regbayes.topics import LatentDirichlet, MaxMarginTopics
from tests.robustness.torture import DOCUMENTS, SEQUENCES, SYMBOLS, TABLES, VIEWS

few = {"n_draws": 3, "burn_in": 2, "n_chains": 1, "random_state": 0}
some = {"max_iter": 2, "random_state": 0}
normal = GaussianHMM(2, n_iter=3, random_state=0)
full = GaussianHMM(2, "full", n_iter=3, random_state=0)
symbols = CategoricalHMM(2, n_iter=3, random_state=0)
moves = Preprocessed(SequenceFeatures(use="velocities"), full)
topics = LatentDirichlet(2, **few)
chosen = {"segments": (1,), "C": (3, 10), "cv": 2, "random_state": 0}


class Kind(NamedTuple):
    """Inputs of a kind, estimators that read them, and the worst of them for the fast suite."""

    inputs: dict
    estimators: dict
    worst: tuple


def scores(model):
    """Every score map on a model."""
    plain = (
        SufficientStatisticsScore, FisherScore, FreeEnergyScore, PosteriorDivergenceScore, TOPScore
    )  # fmt: skip
    return {
        **{each.__name__: each(model) for each in plain},
        "MaxMarginScore": MaxMarginScore(model, n_iter=2, random_state=0),
        "MaxMarginScore, em": MaxMarginScore(model, solver="em", multi_class="ovr", n_iter=2),
        "FisherKernelLearning": FisherKernelLearning(model, n_iter=2, random_state=0),
    }


KINDS = {
    "table": Kind(
        TABLES,
        {
            "GibbsInfiniteSVM": GibbsInfiniteSVM(**few),
            "GibbsInfiniteSVM, full": GibbsInfiniteSVM(covariance="full", pooling="none", **few),
            "GibbsInfiniteSVM, iterated": GibbsInfiniteSVM(
                prediction="iterated", n_rounds=2, **few
            ),
            "DPMultinomialLogit": DPMultinomialLogit(**few),
            "InfiniteSVM": InfiniteSVM(max_components=30, **some),
            "MarginClassifier": MarginClassifier(),
            "Harmonium": Harmonium(4, **some),
            "Harmonium, real, lbfgs": Harmonium(
                4, units="real", solver="lbfgs", learn_variance=True, **some
            ),
            "Harmonium, gaussian": Harmonium(4, visible="gaussian", **some),
            "Harmonium, count": Harmonium(4, visible="count", **some),
            "InfiniteHarmonium": InfiniteHarmonium(8, **some),
            "MaxMarginHarmonium": MaxMarginHarmonium(4, **some),
            "MaxMarginHarmonium, lbfgs": MaxMarginHarmonium(4, solver="lbfgs", **some),
            "InfiniteMaxMarginHarmonium": InfiniteMaxMarginHarmonium(8, missing="infer", **some),
            "MaxMarginHarmoniumRegressor": MaxMarginHarmoniumRegressor(8, **some),
            "DiscriminativeRBM": DiscriminativeRBM(4, generative=0.1, **some),
        },
        ("one row", "both ends of the numbers"),
    ),
    "view": Kind(
        VIEWS,
        {
            "Harmonium": Harmonium(4, **some),
            "InfiniteHarmonium": InfiniteHarmonium(8, missing="infer", **some),
            "MaxMarginHarmonium": MaxMarginHarmonium(4, early_stopping=True, **some),
            "InfiniteMaxMarginHarmonium": InfiniteMaxMarginHarmonium(8, units="real", **some),
            "MaxMarginHarmoniumRegressor": MaxMarginHarmoniumRegressor(8, **some),
        },
        ("an empty view",),
    ),
    "sequence": Kind(
        SEQUENCES,
        {
            "GaussianHMM": normal,
            "GaussianHMM, full": full,
            "GaussianHMM, left to right": clone(normal).set_params(topology="left-to-right"),
            "InfiniteHMM": InfiniteHMM(**few),
            "InfiniteHMM, diagonal": InfiniteHMM("diag", **few),
            "InfiniteHMM, counts": InfiniteHMM("poisson", **few),
            "MaxMarginInfiniteHMM": MaxMarginInfiniteHMM(**few),
            "MaxMarginInfiniteHMM, no emission": MaxMarginInfiniteHMM(None, **few),
            "MarkovSwitchingMED": MarkovSwitchingMED(3, **some),
            "MarkovSwitchingMED, no emission": MarkovSwitchingMED(3, emission=None, **some),
            "LargeMarginHMM": LargeMarginHMM(normal, max_iter=2),
            "LargeMarginHMM, full": LargeMarginHMM(full, max_iter=2),
            **scores(normal),
            "SufficientStatisticsScore, side by side": SufficientStatisticsScore(
                SideBySide([normal, moves]), scaling="variance"
            ),
            "MaxMarginScoreClassifier": MaxMarginScoreClassifier(normal, **chosen),
            "SequenceFeatures": SequenceFeatures(use="both", center=True, scale=True),
            "SequenceFeatures, shapes": SequenceFeatures(use="shapes", window=3),
            "SequenceQuantizer": SequenceQuantizer(4, random_state=0),
            "StepTransformer": StepTransformer(MaxAbsScaler()),
        },
        ("values at 1e150", "one sequence of one step"),
    ),
    "symbol": Kind(
        SYMBOLS,
        {
            "CategoricalHMM": symbols,
            "CategoricalHMM, bare": CategoricalHMM(
                2, n_iter=3, pseudocount=0.0, symbol_concentration=0.0, random_state=0
            ),
            "InfiniteHMM": InfiniteHMM("categorical", **few),
            "MaxMarginInfiniteHMM": MaxMarginInfiniteHMM("categorical", **few),
            "LargeMarginHMM": LargeMarginHMM(symbols, max_iter=2),
            **scores(symbols),
            "MaxMarginScoreClassifier": MaxMarginScoreClassifier(
                clone(symbols).set_params(unknown="missing"), **chosen
            ),
            "SequenceWords": SequenceWords(2),
        },
        ("one symbol",),
    ),
    "document": Kind(
        DOCUMENTS,
        {
            "LatentDirichlet": topics,
            "MaxMarginTopics": MaxMarginTopics(3, **few),
            "MaxMarginTopics, auto": MaxMarginTopics("auto", max_topics=6, **few),
            "SufficientStatisticsScore": SufficientStatisticsScore(topics),
            "MaxMarginScore": MaxMarginScore(topics, n_iter=2, random_state=0),
        },
        ("all zeros", "a count of two thousand million"),
    ),
}
ALL = [
    (kind, estimator, case)
    for kind, (inputs, estimators, _) in KINDS.items()
    for estimator in estimators
    for case in inputs
]
WORST = [triple for triple in ALL if triple[2] in KINDS[triple[0]].worst]
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "decode", "score_samples")


class Hang(BaseException):
    """Nothing came for too long; no `except Exception` may hide it."""


@contextmanager
def no_hang(seconds=120):
    """An end to what takes for ever, by the processor's clock: a busy machine is no hang.

    A loop in compiled code hears no signal: it ends the process.
    """

    def stop(number, frame):
        raise Hang(f"still at it after {seconds} s")

    usual = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(30 * seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)


class Refused(Exception):
    """An error as ours are."""


def ask(call, *data):
    """The answer; any error that is not ours is a failure."""
    try:
        return call(*data)
    except (ValueError, TypeError) as error:
        if "To mend it" not in str(error):
            raise AssertionError(f"no remedy in {error!r}") from error
        raise Refused(str(error)) from None


def bad_numbers(value, path=""):
    """Where a fitted model has NaN, or infinities but for logarithms of zero."""
    if issparse(value):
        value = value.data
    if isinstance(value, (float, np.floating)):
        value = np.array(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        logarithms = "log" in path or "parameters" in path
        fine = np.isfinite(value) | (np.isneginf(value) if logarithms else False)
        if not fine.all():
            yield f"{path}: {value[~fine].ravel()[:3]}"
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from bad_numbers(each, f"{path}.{name}")
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for i, each in enumerate(value[:50]):
            yield from bad_numbers(each, f"{path}[{i}]")
    elif _files.is_record(type(value)):
        for name in _files._field_names(type(value)):
            yield from bad_numbers(getattr(value, name), f"{path}.{name}")
    elif hasattr(value, "get_params") or type(value).__name__ == "Trace":
        yield from bad_numbers(vars(value), path)


def check_answer(model, name, answer, gaps):
    # A law without pseudocounts may rule a sequence out.
    impossible = name == "score_samples"
    parts = answer if isinstance(answer, list) else [answer]
    for part in map(np.asarray, parts):
        if name == "predict" and hasattr(model, "classes_"):
            assert np.isin(part, model.classes_).all()
        elif part.dtype.kind == "f":
            fine = np.isfinite(part) | (np.isneginf(part) & impossible)
            assert (fine | (np.isnan(part) & gaps)).all(), f"{name} gives {part[~fine][:3]}"


def endure(model, case, labels):
    """Fit, look at the numbers, ask everything; True if it was all answered."""
    target = {"none": (), "step": (case.steps,), "sequence": (case.y,)}[labels]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # of overflow, division by zero...
        try:
            ask(model.fit, case.X, *target)
        except Refused:
            return False
        found = {k: v for k, v in vars(model).items() if k not in model.get_params(deep=False)}
        assert not list(bad_numbers(found))
        new = case.X if case.new is None else case.new
        # Transformers of sequences leave steps that are not observed so.
        gaps = type(model) in (SequenceFeatures, StepTransformer)
        for name in ANSWERS:
            if hasattr(model, name):
                try:
                    check_answer(model, name, ask(getattr(model, name), new), gaps)
                except Refused:
                    assert case.new is not None, "refused what it was trained on"
        lone = is_regressor(model) and len(case.y) < 2  # R^2 is not defined
        if hasattr(model, "score") and case.new is None and not lone:
            with suppress(Refused):  # perplexity needs documents of two words
                assert not np.isnan(ask(model.score, case.X, *(target or (None,))))
    return True


def labels_of(kind, model):
    if isinstance(model, StepTransformer):
        return "none"
    if kind in ("sequence", "symbol"):
        return model._sequence_tags().labels
    return "sequence"  # a label for each row


def run(kind, estimator, case):
    model = clone(KINDS[kind].estimators[estimator])
    with no_hang():
        return endure(model, KINDS[kind].inputs[case](), labels_of(kind, model))


@pytest.mark.parametrize(("kind", "estimator", "case"), WORST, ids=map(" | ".join, WORST))
def test_the_worst(kind, estimator, case):
    run(kind, estimator, case)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "estimator", "case"), ALL, ids=map(" | ".join, ALL))
def test_everything(kind, estimator, case):
    run(kind, estimator, case)


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_enough_of_it(kind):
    assert len(KINDS[kind].inputs) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_plain_inputs_are_answered(kind):
    """That all is refused would be no good."""
    for estimator in KINDS[kind].estimators:
        if estimator not in ("Harmonium, count", "InfiniteHMM, counts"):
            assert run(kind, estimator, "plain"), estimator
