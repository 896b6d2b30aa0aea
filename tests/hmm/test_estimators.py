"""InfiniteHMM and MaxMarginInfiniteHMM from the user's side."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regbayes.data import StepTransformer
from regbayes.datasets import make_switching_labels
from regbayes.hmm import InfiniteHMM, MaxMarginInfiniteHMM
from tests.helpers import contract

FEW = {"n_draws": 4, "burn_in": 3, "random_state": 0}
UNLABELLED = {
    name: InfiniteHMM(name, **FEW) for name in ("gaussian", "diag", "categorical", "poisson")
}
LABELLED = {
    str(name): MaxMarginInfiniteHMM(name, **FEW)
    for name in ("gaussian", "diag", "categorical", "poisson", None)
} | {
    "iterated": MaxMarginInfiniteHMM(prediction="iterated", n_rounds=3, **FEW),
    "single": MaxMarginInfiniteHMM(prediction="single", n_rounds=3, **FEW),
    "pooled": MaxMarginInfiniteHMM(pooling="partial", init="labels", stickiness=(1, 1), **FEW),
}
CASES = contract(
    {f"ihmm-{name}": model for name, model in UNLABELLED.items()}
    | {f"m2ihmm-{name}": model for name, model in LABELLED.items()},
    besides=["ihmm-diag", *(f"m2ihmm-{name}" for name in ("diag", "poisson", "single", "pooled"))],
)


@pytest.mark.parametrize("check", CASES)
def test_sequence_contract(check):
    check()


def switching(n_states=3, n_steps=400, gap=6.0, seed=0, stay=0.9):
    rng = np.random.default_rng(seed)
    z = np.zeros(n_steps, dtype=int)
    for t in range(1, n_steps):
        z[t] = z[t - 1] if rng.random() < stay else rng.integers(n_states)
    return rng, z, gap * z


@pytest.fixture(scope="module")
def gaussian():
    rng, z, means = switching()
    X = np.column_stack([means, -means]) + rng.standard_normal((len(z), 2))
    return X, z, InfiniteHMM(random_state=0).fit([X])


def test_finds_the_states_and_their_number(gaussian):
    X, z, model = gaussian
    assert model.n_states_ == 3
    assert adjusted_rand_score(model.decode([X])[0], z) > 0.98
    assert adjusted_rand_score(model.states_[0], z) > 0.98


def test_parameters_are_in_the_users_units(gaussian):
    _, _, model = gaussian
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[order], [[0, 0], [6, -6], [12, -12]], atol=0.5)
    np.testing.assert_allclose(model.covariances_[order], [np.eye(2)] * 3, atol=0.5)
    np.testing.assert_allclose(np.diag(model.transitions_), 0.93, atol=0.06)
    np.testing.assert_allclose(model.start_.sum(), 1.0)


def test_counts_and_symbols():
    rng, z, _ = switching(2)
    counts = rng.poisson(np.where(z, 20.0, 2.0))[:, None]
    model = InfiniteHMM("poisson", random_state=0).fit([counts])
    assert adjusted_rand_score(model.decode([counts])[0], z) > 0.95
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [2, 20], rtol=0.2)
    symbols = np.where(rng.random(len(z)) < 0.95, np.where(z, "a", "b"), "c")
    model = InfiniteHMM("categorical", random_state=0).fit([symbols])
    assert model.categories_.tolist() == ["a", "b", "c"]
    assert adjusted_rand_score(model.decode([symbols])[0], z) > 0.7
    sample, states = model.sample(50, random_state=1)
    assert set(sample) <= set("abc")
    assert len(states) == 50
    with pytest.raises(AttributeError, match="no means"):
        model.means_  # noqa: B018


def test_predictive_density_is_that_of_the_draws(gaussian):
    """By enumeration of the paths, in the units of the data."""
    X, _, model = gaussian
    x = X[:3]
    unit, center = model._frame.unit, model._frame.center
    total = []
    for draw in model.trace_:
        rows = draw["rows"][:, :-1] / draw["rows"][:, :-1].sum(axis=1, keepdims=True)
        density = np.array(
            [
                stats.multivariate_normal.logpdf(x, m * unit + center, f @ f.T * unit**2)
                for m, f in zip(draw["means"], draw["factors"])
            ]
        ).T
        paths = itertools.product(range(len(rows) - 1), repeat=3)
        total.append(
            logsumexp(
                [
                    np.log(rows[0, a] * rows[1 + a, b] * rows[1 + b, c])
                    + density[0, a] + density[1, b] + density[2, c]
                    for a, b, c in paths
                ]
            )
        )  # fmt: skip
    expected = logsumexp(total) - np.log(len(total))
    np.testing.assert_allclose(model.score([x]), expected, rtol=1e-10)
    np.testing.assert_allclose(model.score([x, x]), 2 * expected, rtol=1e-10)


def test_a_sample_looks_like_the_data(gaussian):
    X, _, model = gaussian
    new, states = model.sample(3000, random_state=0)
    assert states.max() < 6
    np.testing.assert_allclose(
        np.percentile(new, [10, 90], 0), np.percentile(X, [10, 90], 0), atol=1
    )
    same, _ = model.sample(3000, random_state=0)
    np.testing.assert_array_equal(new, same)


def test_unobserved_steps_take_the_state_of_their_neighbours(gaussian):
    X, z, model = gaussian
    gaps = X.copy()
    middle = np.flatnonzero((z[1:-1] == z[:-2]) & (z[1:-1] == z[2:])) + 1
    gaps[middle[::7]] = np.nan
    path, full = model.decode([gaps])[0], model.decode([X])[0]
    assert np.mean(path[middle[::7]] == full[middle[::7]]) > 0.95
    assert model.predict_proba([gaps])[0][middle[::7]].max(axis=1).min() > 0.5


def test_causal_state_probabilities_use_the_past_only(gaussian):
    X, _, model = gaussian
    X = X.copy()
    X[30:40] = np.nan  # or the future would have nothing to add
    short, long = model.predict_proba([X[:50], X[:80]], causal=True)
    np.testing.assert_allclose(short, long[:50], atol=1e-12)
    smooth = model.predict_proba([X[:80]])[0]
    assert np.abs(smooth[:50] - short).max() > 1e-6


def test_stickiness_asks_for_states_that_last():
    """With little data the prior shows: a sticky one has larger self-transitions."""
    rng, _, means = switching(3, 60, gap=2.0, stay=0.5)
    X = [means[:, None] + rng.standard_normal((60, 1))]
    stays = [
        np.mean([np.diag(d["rows"][1:, :-1]).mean() for d in
                 InfiniteHMM(alpha=5.0, stickiness=s, random_state=0).fit(X).trace_])
        for s in (0.0, 0.9)
    ]  # fmt: skip
    assert stays[1] > stays[0] + 0.2


@pytest.mark.parametrize("bad", [1.0, -0.1, (1, 0), (1, 2, 3), "a lot"])
def test_bad_stickiness_is_refused(bad):
    with pytest.raises(ValueError, match="stickiness"):
        InfiniteHMM(stickiness=bad).fit([np.zeros((5, 1))])


@pytest.fixture(scope="module")
def labelled():
    data = make_switching_labels((400, 1000), "positive", means=[-3, 0, 3], random_state=1)
    model = MaxMarginInfiniteHMM(random_state=0).fit(data.data[:1], data.target[:1])
    return data, model


def test_labels_follow_the_states(labelled):
    data, model = labelled
    x, y = data.data[1], data.target[1]
    assert model.score([x], [y]) > 0.9
    assert model.score([x], [y]) == np.mean(model.predict([x])[0] == y)
    assert adjusted_rand_score(model.decode([x])[0], data.states[1]) > 0.6


def test_causal_labels_are_nearly_as_good(labelled):
    data, model = labelled
    x, y = data.data[1], data.target[1]
    causal = model.predict([x], causal=True)[0]
    assert 0.85 < np.mean(causal == y) <= model.score([x], [y])


def test_stream_gives_the_causal_labels(labelled):
    data, model = labelled
    x = data.data[1][:200].copy()
    x[50] = np.nan
    expected = model.predict([x], causal=True)[0]
    assert list(model.predict_stream(x)) == expected.tolist()


def test_stream_answers_before_the_next_step_is_known(labelled):
    data, model = labelled
    asked = []

    def steps():
        for x in data.data[1]:
            asked.append(x)
            yield x

    stream = model.predict_stream(steps())
    next(stream), next(stream)
    assert len(asked) == 2


def test_stream_of_symbols():
    y = np.array([0, 0, 1, 1] * 10)
    symbols = np.where(y, "b", "a")
    model = MaxMarginInfiniteHMM("categorical", **FEW).fit([symbols], [y])
    assert (
        list(model.predict_stream(["a", "b"]))
        == model.predict([["a", "b"]], causal=True)[0].tolist()
    )


@pytest.mark.parametrize("way", ["iterated", "single"])
def test_the_papers_prediction(labelled, way):
    data, model = labelled
    x, y = data.data[1], data.target[1]
    model = MaxMarginInfiniteHMM(
        prediction=way, n_draws=20, n_rounds=20, random_state=0
    ).fit(data.data[:1], data.target[:1])  # fmt: skip
    assert model.score([x], [y]) > (0.88 if way == "iterated" else 0.75)
    with pytest.raises(ValueError, match="causal=True needs prediction='marginal'"):
        model.predict([x], causal=True)


def test_without_an_emission_the_labels_make_the_states():
    """Two classifiers that take turns: one linear classifier is no better than a coin."""
    rng, z, _ = switching(2, 600)
    X = rng.standard_normal((600, 2))
    y = (X[:, 0] > 0) ^ (z == 1)
    model = MaxMarginInfiniteHMM(None, random_state=0).fit([X], [y])
    assert adjusted_rand_score(model.states_[0], z) > 0.7
    assert list(model.predict_stream(X[:50])) == model.predict([X], causal=True)[0][:50].tolist()
    # The trace has nothing of an emission.
    with_one = MaxMarginInfiniteHMM(n_draws=1, burn_in=0, random_state=0).fit([X], [y])
    assert set(with_one.trace_.names) - set(model.trace_.names) == {"means", "factors"}
    assert set(model.trace_.names) < set(with_one.trace_.names)
    with pytest.raises(AttributeError, match="has no attribute 'sample'") as caught:
        model.sample(3)
    assert "no law of the observations" in str(caught.value.__cause__)


def test_partly_labelled_sequences_train(labelled):
    data, _ = labelled
    rng = np.random.default_rng(0)
    some = np.where(rng.random(400) < 0.3, data.target[0], -1)
    partly = MaxMarginInfiniteHMM(random_state=0).fit(data.data[:1], [some])
    assert partly.score(data.data[1:], data.target[1:]) > 0.85
    named = np.array(["low", "high"], dtype=object)[data.target[0]]
    named[some < 0] = None
    again = MaxMarginInfiniteHMM(random_state=0).fit(data.data[:1], [named])
    assert again.classes_.tolist() == ["high", "low"]


def test_unlabelled_sequences_teach_the_states():
    """Fifteen labelled steps do not tell where the states are; the unlabelled ones do."""
    data = make_switching_labels((15, 600, 2000), "positive", means=[-4, 0, 4], random_state=3)
    x, y = data.data, data.target
    alone = MaxMarginInfiniteHMM(random_state=0).fit(x[:1], y[:1])
    helped = MaxMarginInfiniteHMM(random_state=0).fit(x[:2], [y[0], None])
    assert helped.score(x[2:], y[2:]) > alone.score(x[2:], y[2:])


def test_a_label_unseen_in_training_counts_as_wrong(labelled):
    data, model = labelled
    assert model.score([data.data[1][:4]], [[7, 7, 7, 7]]) == 0.0


def test_frequent_classes_from_labels_as_first_states():
    rng = np.random.default_rng(0)
    y = [rng.integers(6, size=40) for _ in range(10)]
    X = [np.eye(6)[labels] * 4 + rng.standard_normal((40, 6)) for labels in y]
    model = MaxMarginInfiniteHMM(init="labels", n_draws=10, burn_in=10, random_state=0).fit(X, y)
    assert model.n_states_ == 6
    assert model.score(X, y) > 0.9


def test_labels_that_have_parts():
    """Each label has two places: a state for each of them, from the first sweep."""
    rng = np.random.default_rng(0)
    parts = [rng.integers(4, size=50) for _ in range(6)]
    X = [np.eye(4)[z] * 6 + rng.standard_normal((50, 4)) for z in parts]
    y = [z % 2 for z in parts]
    model = MaxMarginInfiniteHMM(
        init="labels", n_label_states=2, n_draws=5, burn_in=0, random_state=0
    ).fit(X, y)
    assert model.trace_["n_states"].min() >= 4
    pairs = {(z, s) for zs, ss in zip(parts, model.states_) for z, s in zip(zs, ss)}
    assert len(pairs) == 4


def test_step_transformer_in_a_pipeline(labelled):
    data, _ = labelled
    X = [
        np.column_stack([x, 1e4 * np.random.default_rng(0).standard_normal(len(x))])
        for x in data.data
    ]
    steps = StepTransformer(make_pipeline(StandardScaler(), PCA(2)))
    model = make_pipeline(steps, MaxMarginInfiniteHMM(random_state=0)).fit(X[:1], data.target[:1])
    assert model.score(X[1:], data.target[1:]) > 0.85
    supervised = StepTransformer(LinearDiscriminantAnalysis()).fit(X, data.target)
    assert supervised.transform(X)[0].shape == (400, 1)


def test_step_transformer_keeps_unobserved_steps():
    X = [np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]), np.full((2, 2), np.nan)]
    out = StepTransformer(PCA(1)).fit_transform(X)
    assert np.isnan(out[0]).ravel().tolist() == [False, True, False]
    assert np.isnan(out[1]).all()
    assert out[1].shape == (2, 1)
    assert np.isnan(StepTransformer(PCA(1)).fit(X).transform(X[1:])[0]).all()


def test_classifiers_of_the_states_are_in_the_users_units(labelled):
    data, model = labelled
    x = data.data[1]
    states = model.decode([x])[0]
    scores = np.einsum("tlm,tm->tl", model.weights_[states], x) + model.intercepts_[states]
    assert np.mean(model.classes_[scores.argmax(axis=1)] == model.predict([x])[0]) > 0.9
    # The rule of a state turns at its mean.
    gap = model.weights_[:, 1, 0] - model.weights_[:, 0, 0]
    turn = -(model.intercepts_[:, 1] - model.intercepts_[:, 0]) / gap
    np.testing.assert_allclose(np.sort(turn), np.sort(model.means_[:, 0]), atol=0.7)
