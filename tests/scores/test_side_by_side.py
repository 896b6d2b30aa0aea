"""Models side by side: the product of their laws, in every score space."""

import numpy as np
import pytest

from regbayes.data import SequenceFeatures
from regbayes.hmm import CategoricalHMM, GaussianHMM
from regbayes.scores import (
    FisherScore,
    MaxMarginScore,
    Preprocessed,
    SideBySide,
    SufficientStatisticsScore,
    TOPScore,
    spaces,
)
from regbayes.scores.tilts import covariances
from regbayes.testing import sequence_checks


def waves(n, seed):
    """Sums of steps up and down, or the same the other way round."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = [np.cumsum((1 - 2 * c) * np.sin(np.arange(rng.integers(6, 12)))) for c in y]
    return [x + 0.3 * rng.standard_normal(len(x)) for x in X], y


def places():
    return GaussianHMM(2, n_iter=5, random_state=0)


def moves(n_states=3):
    model = GaussianHMM(n_states, n_iter=5, random_state=1)
    return Preprocessed(SequenceFeatures(use="velocities"), model)


def learnt(seed=0):
    X, _ = waves(8, seed)
    model = SideBySide([places(), moves()])
    batch = model.read(X, reset=True)
    return model, batch, model.learn(batch)


def test_scores_are_those_of_each_model():
    X, y = waves(12, 0)
    both = SufficientStatisticsScore(SideBySide([places(), moves()]), scaling="none").fit(X, y)
    found = dict(zip(both.get_feature_names_out(), both.transform(X).T, strict=True))
    seen = 0
    for i, model in enumerate([places(), moves()]):
        alone = SufficientStatisticsScore(model, scaling="none").fit(X, y)
        for name, column in zip(alone.get_feature_names_out(), alone.transform(X).T, strict=True):
            whose, what = name.split("|")
            what = f"entropy({i}.{what[8:]}" if what.startswith("entropy(") else f"{i}.{what}"
            np.testing.assert_allclose(found[f"{whose}|{what}"], column, atol=1e-12)
            seen += 1
    assert seen == len(found)


@pytest.mark.parametrize("segments", [1, 2])
def test_scores_sum_to_the_log_likelihood(segments):
    """001, Eq. 5, and the log-likelihood is the sum of the parts'."""
    _, batch, law = learnt()
    found = law.expect(batch, segments=segments, entropies=True)
    eta = np.concatenate([law.natural(), np.ones(law.n_hidden)])
    of_ss = spaces.sufficient_statistics(law, found).sum(axis=1) @ eta
    np.testing.assert_allclose(of_ss, found.log_likelihoods, rtol=1e-9)
    each = [one.expect(part).log_likelihoods for one, part in zip(law.laws, batch.parts)]
    np.testing.assert_allclose(found.log_likelihoods, np.sum(each, axis=0), rtol=1e-12)


def test_a_tilt_reaches_the_law_that_it_names():
    _, batch, law = learnt()
    plain = law.expect(batch).statistics
    for which in range(2):
        tilt = np.zeros(len(law.names))
        own = np.array([name.startswith(f"{which}.") for name in law.names])
        tilt[own & (np.arange(len(own)) < law.n_hidden)] = np.linspace(-1, 1, 3)[which]
        tilt[law.names.index(f"{which}.0>1")] += 0.7
        moved = np.abs(law.expect(batch, tilt).statistics - plain).max(axis=(0, 1))
        assert moved[own].max() > 1e-3
        assert moved[~own].max() == 0


def test_m_steps_are_those_of_each_law():
    _, batch, law = learnt()
    totals = law.expect(batch).statistics.sum(axis=(0, 1))
    after = law.maximize(totals)
    for one, old, part in zip(after.laws, law.laws, batch.parts):
        alone = old.maximize(old.expect(part).statistics.sum(axis=(0, 1)))
        np.testing.assert_allclose(one.natural(), alone.natural(), atol=1e-10)


def test_covariances_are_those_of_independent_laws():
    """None between statistics of different laws; variances are not negative."""
    _, batch, law = learnt()
    raw = law.expect(batch).statistics
    first = np.array([name.startswith("0.") for name in law.names])
    directions = np.zeros_like(raw)
    directions[:, :, law.names.index("0.0>1")] = 1.0
    found = covariances(law, batch, np.zeros(len(law.names)), directions, raw, 1)
    np.testing.assert_allclose(found[:, ~first], 0, atol=1e-12)
    assert (found[:, law.names.index("0.0>1")] > 0).all()


def test_what_fisher_scores_pull_is_the_transpose_of_the_gradient():
    law = learnt()[2]
    found, v = np.random.default_rng(0).standard_normal((2, 3, 1, len(law.natural())))
    pulled = law.pull_gradient(found, v)
    np.testing.assert_allclose(np.sum(pulled * found), np.sum(v * law.gradient(found)))


@pytest.mark.parametrize("score_map", [FisherScore, TOPScore, SufficientStatisticsScore])
def test_every_space_can_be_built_on_it(score_map):
    X, y = waves(12, 0)
    found = score_map(SideBySide([places(), moves()])).fit_transform(X, y)
    assert np.isfinite(found).all()
    assert found.std(axis=0).min() > 0


def test_learnt_with_a_margin():
    X, y = waves(20, 0)
    both = SideBySide([places(), moves()])
    scores = MaxMarginScore(both, n_iter=6, n_splits=0, random_state=0).fit(X, y)
    assert np.abs(scores.tilts_).max() > 0
    assert np.isfinite(scores.transform(waves(5, 1)[0])).all()


def test_no_model_at_all():
    with pytest.raises(ValueError, match=r"models is empty(.|\n)*at least one"):
        SufficientStatisticsScore(SideBySide([])).fit(*waves(4, 0))


SYMBOLS = SideBySide([CategoricalHMM(k, n_iter=3, random_state=0) for k in (1, 2)])


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=name)
        for name, check in sequence_checks(SufficientStatisticsScore(SYMBOLS))
    ],
)
def test_manners(check):
    check()
