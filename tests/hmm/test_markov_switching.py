"""iM2EDM: its chains against enumeration, its updates against the objective, its manners."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from regbayes.datasets import make_switching_labels
from regbayes.hmm import MarkovSwitchingMED, variational
from regbayes.margin import crammer_singer, label_evidence
from regbayes.mixture import variational as mixture
from regbayes.priors import Fixed, GammaPrior, NormalInverseGamma, NormalInverseWishart
from regbayes.priors.mean_field import Gaussians, make_prior
from regbayes.testing import sequence_checks

FAMILIES = [NormalInverseGamma, NormalInverseWishart, None]
LENGTHS = (12, 1, 20, 7)


def make_model(family=NormalInverseGamma, K=4, lengths=LENGTHS, gaps=True, **options):
    """Sequences with three classes, some steps without a label and some not observed."""
    rng = np.random.default_rng(1)
    n = sum(lengths)
    X = rng.standard_normal((n, 3)) * [1.0, 2.0, 0.5] + 3 * rng.integers(2, size=(n, 1))
    y = rng.integers(3, size=n)
    prior = make_prior(None if family is None else family.from_data(X, 0.3, None, 0.7))
    if gaps:
        X[[3, 12]], y[[0, 5, 6]] = np.nan, -1
    steps = variational.make_steps(X, np.cumsum([0, *lengths]), prior)
    options = {"concentration": GammaPrior(2.0, 1.5), "max_states": K, **options}
    return variational.Model(steps, y, 3, prior, **options)


def rough_state(model, seed=0):
    """A state that no update has seen: every block is away from its minimum."""
    rng = np.random.default_rng(seed)
    state = variational.init(model, rng)
    paths = variational.smooth_paths(
        state.paths.log_rows + rng.standard_normal(state.paths.log_rows.shape),
        rng.standard_normal(state.paths.evidence.shape),
        model.steps.starts,
    )
    shuffled = paths._replace(r=paths.r[::-1])
    weights, multipliers, margin = variational.fit_weights(
        replace(model, sweeps=3000), rng, paths.r, state.multipliers
    )
    state = variational.update_gaussians(model, replace(state, paths=shuffled))
    return replace(
        state,
        paths=paths,
        sticks=state.sticks * rng.uniform(0.5, 2, state.sticks.shape),
        weights=weights,
        multipliers=multipliers,
        margin=margin,
    )


def every_path(log_rows, evidence, starts):
    """For each sequence: all its paths, and their log potentials."""
    for low, high in pairwise(starts):
        paths = np.array(list(product(range(evidence.shape[1]), repeat=high - low)))
        total = log_rows[0][paths[:, 0]] + evidence[np.arange(low, high), paths].sum(axis=1)
        yield paths, total + log_rows[1:][paths[:, :-1], paths[:, 1:]].sum(axis=1)


def test_chains_agree_with_enumeration():
    rng = np.random.default_rng(0)
    K, starts = 3, np.array([0, 4, 5, 8])
    # Rows of any sum, as exp(E[log pi]) has them.
    log_rows, rows = -rng.exponential(1.5, (2, K + 1, K))
    evidence, likelihoods = 2 * rng.standard_normal((2, 8, K))
    found = variational.smooth_paths(log_rows, evidence, starts)

    r, counts, log_total, divergence = np.zeros((8, K)), np.zeros((K + 1, K)), 0.0, 0.0
    enumerated = zip(every_path(log_rows, evidence, starts), every_path(rows, likelihoods, starts))
    for low, ((paths, potential), (_, other)) in zip(starts, enumerated):
        total = np.logaddexp.reduce(potential)
        q = np.exp(potential - total)
        log_total += total
        divergence += np.sum(q * (potential - total - other))
        for path, p in zip(paths, q):
            r[np.arange(low, low + len(path)), path] += p
            counts[0, path[0]] += p
            np.add.at(counts[1:], (path[:-1], path[1:]), p)
    np.testing.assert_allclose(found.r, r)
    np.testing.assert_allclose(found.counts, counts)
    assert found.log_total == pytest.approx(log_total)
    # E[log q(z)] - E[log p], with the potentials of another chain for log p.
    assert variational.paths_objective(rows, likelihoods, found) == pytest.approx(divergence)


@pytest.mark.parametrize("family", FAMILIES)
def test_sequences_of_one_step_are_a_mixture(family):
    # No moves: all that is left of the chain is the stick of the first state.
    model = make_model(family, lengths=(1,) * 30, gaps=False, concentration=Fixed(0.8))
    state = rough_state(model)
    state = replace(state, sticks=variational.fit_sticks(state).sticks)
    twin = mixture.Model(
        model.steps.blocks, model.steps.inputs, model.y, 3, model.prior, Fixed(0.8), 4
    )
    mixed = mixture.State(
        np.log(state.paths.r),
        state.alpha,
        state.sticks[0],
        state.gaussians,
        state.weights,
        state.multipliers,
        state.margin,
    )
    assert variational.objective(model, state) == pytest.approx(mixture.objective(twin, mixed))


@pytest.mark.parametrize("family", FAMILIES[:2])
def test_closed_form_updates_are_minima(family):
    model = make_model(family)
    state = rough_state(model)
    rng = np.random.default_rng(3)

    def noise(array):
        return array * np.exp(0.05 * rng.standard_normal(array.shape))

    def shaken_gaussians(g):
        tilt = np.eye(g.scale.shape[-1]) + 0.05 * rng.standard_normal(g.scale.shape)
        mean = g.mean + 0.05 * rng.standard_normal(g.mean.shape)
        return Gaussians(mean, noise(g.strength), noise(g.df), tilt @ g.scale @ tilt.mT)

    updates = {
        "sticks": (variational.fit_sticks, lambda s: noise(s.sticks)),
        "alpha": (
            lambda s: variational.update_alpha(model, s),
            lambda s: GammaPrior(*noise(np.array([s.alpha.shape, s.alpha.rate]))),
        ),
        "gaussians": (
            lambda s: variational.update_gaussians(model, s),
            lambda s: shaken_gaussians(s.gaussians),
        ),
    }
    for name, (update, shake) in updates.items():
        before = variational.objective(model, state)
        state = update(state)
        least = variational.objective(model, state)
        assert least < before, name
        for _ in range(30):
            shaken = replace(state, **{name: shake(state)})
            assert variational.objective(model, shaken) > least, name


def test_the_way_of_the_chains_is_the_natural_gradient():
    # With log potentials moving from L to L + t (target - L), d/dt of the objective, minimised over
    # the weights, is minus the variance of the difference on q's own paths.
    model = make_model(K=2, lengths=(5, 1, 4), gaps=False, C=0.3, sweeps=20_000)
    state, rng = rough_state(model), np.random.default_rng(0)
    rows = variational.expected_log_rows(state.sticks)
    likelihoods = variational.log_likelihoods(model.steps, state.gaussians)
    labels = label_evidence(model.steps.inputs, state.weights, state.multipliers)
    old, starts = state.paths, model.steps.starts
    way = rows - old.log_rows, likelihoods + labels - old.evidence

    def variance(*other):
        total = 0.0
        chains = zip(
            every_path(old.log_rows, old.evidence, starts),
            every_path(*way, starts),
            every_path(*other, starts),
        )
        for (_, potential), (_, along), (_, across) in chains:
            q = np.exp(potential - np.logaddexp.reduce(potential))
            total += q @ (along * across) - (q @ along) * (q @ across)
        return total

    def value(t):
        paths = variational.smooth_paths(
            old.log_rows + t * way[0], old.evidence + t * way[1], starts
        )
        *_, margin = variational.fit_weights(model, rng, paths.r, state.multipliers)
        return variational.paths_objective(rows, likelihoods, paths) + margin

    slope = (value(0.01) - value(-0.01)) / 0.02
    assert slope == pytest.approx(-variance(*way), rel=0.02)
    # Without the labels in the target the slope would be another.
    without = -variance(way[0], likelihoods - old.evidence)
    assert abs(slope - without) > 0.1 * abs(slope)


def test_labels_pull_labelled_steps_and_no_others():
    model = make_model()
    state = rough_state(model)
    new = variational.update_paths(model, np.random.default_rng(0), state)
    target = state.paths.evidence + (new.paths.evidence - state.paths.evidence) / new.rate
    pull = target - variational.log_likelihoods(model.steps, state.gaussians)
    expected, labelled = np.zeros_like(pull), model.y >= 0
    expected[labelled] = np.einsum(
        "ty,kym,tm->tk", state.multipliers, state.weights, model.steps.inputs[labelled]
    )
    np.testing.assert_allclose(pull, expected, atol=1e-9)
    assert np.abs(expected).max() > 1


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_no_update_raises_the_objective(family, C):
    model = make_model(family, C=C)
    rng = np.random.default_rng(0)
    state = rough_state(model)
    value, moved = variational.objective(model, state), 0
    updates = [
        variational.update_sticks,
        lambda s: variational.update_alpha(model, s),
        lambda s: variational.update_gaussians(model, s),
        lambda s: variational.update_paths(model, rng, s),
        lambda s: variational.finish(model, rng, s),
    ]
    for _ in range(10):
        for update in updates:
            last, state = value, update(state)
            value = variational.objective(model, state)
            assert value <= last + 1e-9 * abs(last)
            moved += value < last
    assert moved > 15


def test_numbers_of_states_mean_nothing_but_to_the_sticks():
    model = make_model()
    state = variational.fit_sticks(rough_state(model))
    other = variational.reorder(state, np.array([2, 0, 3, 1]))
    again = variational.smooth_paths(other.paths.log_rows, other.paths.evidence, model.steps.starts)
    np.testing.assert_allclose(again.r, other.paths.r)
    np.testing.assert_allclose(again.counts, other.paths.counts)

    def rest(state):
        return variational.objective(model, state) - variational.sticks_objective(state)

    assert rest(variational.fit_sticks(other)) == pytest.approx(rest(state))
    sorted_state = variational.update_sticks(other)
    assert variational.objective(model, sorted_state) <= variational.objective(
        model, variational.fit_sticks(other)
    )


def switching(seed=0, transition="positive", lengths=(500, 2000), **options):
    data = make_switching_labels(lengths, transition, random_state=seed, **options)
    return data.data[:1], data.target[:1], data.data[1:], data.target[1:]


def test_one_state_without_emission_is_the_svm():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 2)) for n in (30, 50)]
    y = [(x[:, 0] > 0) + (x[:, 0] + x[:, 1] > 1).astype(int) for x in X]
    model = MarkovSwitchingMED(1, C=0.7, cost=1.3, nu=2.0, emission=None, random_state=0).fit(X, y)
    inputs = np.column_stack([model._frame.enter(np.concatenate(X)), np.ones(80)])
    svm = crammer_singer(
        inputs, np.concatenate(y), 3, rng=rng, C=2 * 0.7 * 2.0**2, cost=1.3, tol=1e-4
    )
    np.testing.assert_allclose(model.weights_[0], svm.weights, atol=0.05)
    found = np.concatenate(model.decision_function(X))
    np.testing.assert_allclose(found, inputs @ svm.weights.T, atol=0.1)
    assert model.n_states_ == 1
    assert model.objective_[-1] == pytest.approx(svm.objective / 2.0**2, rel=1e-3)


@pytest.mark.parametrize("transition", ["positive", "negative", "vague"])
@pytest.mark.parametrize("emission", ["gaussian", "diag"])
def test_solves_what_one_linear_svm_cannot(transition, emission):
    X, y, new_X, new_y = switching(1, transition)
    linear = LinearSVC().fit(X[0], y[0]).score(new_X[0], new_y[0])
    model = MarkovSwitchingMED(emission=emission, random_state=0).fit(X, y)
    assert model.score(new_X, new_y) > linear + 0.2
    assert np.all(np.diff(model.objective_) <= 0)
    assert model.counts_.sum() == pytest.approx(500)


def test_the_chain_helps():
    # States that last: the same model, told that all steps are sequences of their own, does worse.
    X, y, new_X, new_y = switching(1, "sticky", means=[0.5, 0.0, -0.5])
    chain = MarkovSwitchingMED(random_state=0).fit(X, y)
    alone = MarkovSwitchingMED(random_state=0).fit(list(X[0][:, None]), list(y[0][:, None]))
    steps = list(new_X[0][:, None]), list(new_y[0][:, None])
    assert chain.score(new_X, new_y) > alone.score(*steps) + 0.02


def test_fitted_attributes_agree():
    X, y, new_X, _ = switching(means=[-4, 0, 4])
    model = MarkovSwitchingMED(random_state=0).fit(X, y)
    assert model.transitions_.shape == (10, 10)
    np.testing.assert_allclose(model.transitions_.sum(axis=1), 1)
    assert model.start_.sum() == pytest.approx(1)
    assert 3 <= model.n_states_ <= 10
    (scores,), (answer,) = model.decision_function(new_X), model.predict(new_X)
    assert np.all((scores > 0) == (answer == model.classes_[1]))
    # Paths go through states near the observations, numbered as in training.
    (path,) = model.decode(new_X)
    assert np.mean(np.abs(model.means_[path] - new_X[0])) < 1.2
    assert np.mean(model.decode(X)[0] == model.states_[0]) > 0.7


def test_without_emission_states_follow_the_labels():
    X, y, new_X, _ = switching()
    model = MarkovSwitchingMED(emission=None, max_iter=300, random_state=0).fit(X, y)
    assert np.all(np.diff(model.objective_) <= 0)
    # Far from the ends nothing tells the steps of a new sequence apart.
    (scores,) = model.decision_function(new_X)
    middle = slice(100, -100)
    line = np.polynomial.Polynomial.fit(new_X[0][middle, 0], scores[middle], 1)
    np.testing.assert_allclose(line(new_X[0][middle, 0]), scores[middle], atol=1e-6)
    with pytest.raises(AttributeError, match="emission=None"):
        _ = model.means_


def test_unlabelled_steps_tell_about_states_only():
    X, y, new_X, new_y = switching(1)
    some = [np.where(np.arange(500) % 4 == 0, y[0], -1)]
    model = MarkovSwitchingMED(random_state=0).fit(X, some)
    linear = LinearSVC().fit(X[0][::4], y[0][::4]).score(new_X[0], new_y[0])
    assert model.score(new_X, new_y) > linear + 0.15
    assert model.score(new_X, [np.where(new_X[0][:, 0] > 0, new_y[0], -1)]) > linear
    # Their states are those of an unlabelled chain: no hinge term holds them.
    both = MarkovSwitchingMED(random_state=0).fit([*X, *new_X], [*some, None])
    assert both.score(new_X, new_y) > linear + 0.15


def test_unobserved_steps_are_in_the_states_of_their_neighbours():
    X, y, new_X, new_y = switching(transition="sticky", means=[-6, 0, 6])
    model = MarkovSwitchingMED(random_state=0, max_states=4).fit(X, y)
    gaps = new_X[0].copy()
    gaps[5::10] = np.nan
    (whole,), (path,) = model.decode(new_X), model.decode([gaps])
    means = model.means_[:, 0]
    assert np.mean(np.abs(means[whole] - means[path])[5::10] < 3) > 0.9
    # The classifier sees the centre there, and the rest is answered as well as before.
    rest = np.arange(len(gaps)) % 10 != 5
    score = np.mean(model.predict([gaps])[0][rest] == new_y[0][rest])
    assert score > model.score(new_X, new_y) - 0.05
    trained = MarkovSwitchingMED(max_iter=300, random_state=0).fit([gaps], new_y)
    assert trained.score(X, y) > 0.85


def test_same_seed_same_fit_and_more_starts_fit_no_worse():
    X, y, *_ = switching(lengths=(150, 10))
    first, second = (MarkovSwitchingMED(random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.objective_, second.objective_)
    best = MarkovSwitchingMED(random_state=5, n_init=3).fit(X, y)
    assert best.objective_[-1] <= first.objective_[-1]


def test_stops_early_with_a_warning():
    X, y, *_ = switching(lengths=(80, 10))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = MarkovSwitchingMED(max_iter=2, tol=0.0, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 2


class Impatient:
    """A callback that ends a fit after its first round."""

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context):
        return context.task_name == "sweep"


def test_callbacks_may_end_a_fit():
    X, y, *_ = switching(lengths=(80, 10))
    model = MarkovSwitchingMED(callbacks=[Impatient()], random_state=0).fit(X, y)
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": (1.0,)}, "For example alpha=1.0"),
        ({"C": 0.0}, "'C' parameter"),
        ({"emission": "poisson"}, "'emission' parameter"),
        ({}, "To mend it"),
    ],
)
def test_errors_name_the_culprit(options, message):
    X, y, *_ = switching(lengths=(20, 10))
    with pytest.raises(ValueError, match=message):
        MarkovSwitchingMED(**options).fit(X, y if options else [y[0][:-1]])


SMALL = MarkovSwitchingMED(max_states=3, max_iter=5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "check"), list(sequence_checks(SMALL)))
def test_manners(name, check):
    check()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("emission", ["diag", None])
def test_odd_data_with_other_emissions(emission):
    model = MarkovSwitchingMED(max_states=3, max_iter=5, emission=emission)
    odd = ("constant", "units", "far", "missing", "unlike", "one_step", "unobserved")
    for name, check in sequence_checks(model):
        if any(word in name for word in odd):
            check()
