"""Score spaces: what their scores sum to, their slopes, scaling, names, and the maps' manners."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from regbayes.hmm import CategoricalHMM, GaussianHMM
from regbayes.scores import (
    FisherScore,
    FreeEnergyScore,
    MaxMarginScore,
    PosteriorDivergenceScore,
    SufficientStatisticsScore,
    TOPScore,
    spaces,
)
from regbayes.scores.scaling import fit_scaler
from tests.enumeration.test_chain_statistics import KINDS, SHAPES, D, random_case
from tests.helpers import contract

SCALINGS = ["none", "length", "sqrt", "variance", "standard"]
WITH_PER_CLASS = [
    SufficientStatisticsScore,
    FreeEnergyScore,
    FisherScore,
    PosteriorDivergenceScore,
]
MAPS = [*WITH_PER_CLASS, TOPScore]


def runs_or_turns(n, seed, n_classes=2):
    """Symbols in runs or in turns, and the more classes the more so."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(n) % n_classes
    for code in y:
        x, which = [], rng.integers(3)
        for _ in range(rng.integers(5, 15)):
            if rng.random() < (0.1 + 0.8 * code / (n_classes - 1)):
                which = (which + 1) % 3
            x.append("abc"[which])
        X.append(x)
    return X, y


def vectors(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return [code + rng.standard_normal((rng.integers(4, 9), D)) for code in y], y


def hmm(**options):
    return CategoricalHMM(2, n_iter=10, random_state=0, **options)


def raw_of(scores, X):
    """Scores by name."""
    return dict(zip(scores.get_feature_names_out(), scores.transform(X).T, strict=True))


# ---------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("kind", KINDS)
@given(segments=st.integers(1, 3), **SHAPES)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_scores_sum_to_the_log_likelihood(kind, segments, **shape):
    """001, Eq. 5: by eta = (alpha, 1); the terms of FESS by themselves."""
    law, batch, _ = random_case(kind=kind, **shape)
    found = law.expect(batch, segments=segments, entropies=True)
    possible = np.isfinite(found.log_likelihoods)
    expected = found.log_likelihoods[possible]
    eta = np.concatenate([law.natural(), np.ones(law.n_hidden)])
    of_ss = spaces.sufficient_statistics(law, found)
    assert of_ss.shape == (len(batch), segments, len(eta))
    of_ss = of_ss.sum(axis=1)[possible] @ eta
    np.testing.assert_allclose(of_ss, expected, rtol=1e-9, atol=1e-9)
    of_fess = spaces.free_energy(law, found).sum(axis=(1, 2))[possible]
    np.testing.assert_allclose(of_fess, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(segments=st.integers(2, 4), **SHAPES)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_segments_sum_to_the_whole(kind, segments, **shape):
    law, batch, _ = random_case(kind=kind, **shape)
    parts = law.expect(batch, segments=segments, entropies=True)
    whole = law.expect(batch, entropies=True)
    totals = whole.statistics.sum(axis=(0, 1))
    for space, others in (
        (spaces.sufficient_statistics, ()),
        (spaces.free_energy, ()),
        (spaces.fisher, ()),
        (spaces.posterior_divergence, (totals,)),
    ):
        found = space(law, parts, *others)
        expected = space(law, whole, *others)
        assert found.shape[1:] == (segments, len(spaces.NAMES[space](law)))
        np.testing.assert_allclose(found.sum(axis=1), expected[:, 0], rtol=1e-8, atol=1e-8)


def moved(kind, law, at, step):
    """The law with one of its parameters moved, in the documented parametrisation.

    Of statistics (first, moves, then by state): probabilities are theta / sum(theta); the Gaussians
    have their means, and variances or the lower triangles of covariances.
    """

    def shares(log_p, *index):
        theta = np.exp(log_p)
        theta[index] += step
        with np.errstate(divide="ignore"):
            return np.log(theta / theta.sum(axis=-1, keepdims=True))

    K = law.n_states
    if at < K:
        return replace(law, log_start=shares(law.log_start, at))
    if at < law.n_hidden:
        return replace(law, log_transitions=shares(law.log_transitions, *divmod(at - K, K)))
    k, i = divmod(at - law.n_hidden, law.emission.n_statistics)
    if kind == "symbols":
        return replace(law, parameters=(shares(law.parameters[0], k, i),))
    means, spreads = (array.copy() for array in law.parameters)
    if i == 0:  # no parameter
        return law
    if i <= D:
        means[k, i - 1] += step
    elif kind == "diagonal":
        spreads[k, i - 1 - D] = np.sqrt(spreads[k, i - 1 - D] ** 2 + step)
    else:
        row, column = list(zip(*np.tril_indices(D)))[i - 1 - D]
        covariance = spreads[k] @ spreads[k].T
        covariance[row, column] += step
        if row != column:
            covariance[column, row] += step
        spreads[k] = np.linalg.cholesky(covariance)
    return replace(law, parameters=(means, spreads))


def difference(f, step=1e-3):
    """df/dh at zero, to the fourth order."""
    one, two = ((f(s) - f(-s)) / (2 * s) for s in (step, 2 * step))
    return (4 * one - two) / 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", [False, True])
def test_fisher_scores_are_differences_of_the_log_likelihood(kind, gaps):
    law, batch, _ = random_case(5, kind, 2, "dense", (3, 1, 5, 4), gaps)
    found = spaces.fisher(law, law.expect(batch))[:, 0]
    for at, name in enumerate(law.names):

        def log_p(step, at=at):
            return moved(kind, law, at, step).expect(batch).log_likelihoods

        expected = difference(log_p, 2e-4)
        np.testing.assert_allclose(found[:, at], expected, rtol=1e-6, atol=1e-6, err_msg=name)
        assert np.abs(expected).max() > 1e-3 or name.endswith(":steps")


@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_slopes_are_differences(kind):
    """Fisher and TOP scores of the estimators, column by column, in the units of the law."""
    if kind == "symbols":
        (X, y), model = runs_or_turns(12, 0), hmm()
    else:
        X, y = vectors(12, 0)
        covariance = {"diagonal": "diag", "full": "full"}[kind]
        model = GaussianHMM(2, covariance_type=covariance, n_iter=5, random_state=0)
    fs = FisherScore(model, scaling="none").fit(X, y)
    top = TOPScore(model, scaling="none").fit(X, y)
    by_fs, by_top, batch = raw_of(fs, X), raw_of(top, X), fs.model_.read(X)

    def log_odds(laws, c):
        joint = [law.expect(batch).log_likelihoods + np.log(0.5) for law in laws]
        return joint[c] - joint[1 - c]

    for c, law in enumerate(fs.laws_):
        np.testing.assert_allclose(by_top[f"log-odds({c})"], log_odds(top.laws_, c), rtol=1e-9)
        for at, name in enumerate(law.names):
            if (column := f"{c}|d/d({name})") not in by_fs:
                assert name.endswith(":steps")  # no parameter
                continue

            def odds(step, at=at, c=c):
                laws = list(top.laws_)
                laws[c] = moved(kind, laws[c], at, step)
                return log_odds(laws, c)

            expected = difference(
                odds, 2e-4 * np.exp(law.natural()[at]) if kind == "symbols" else 1e-5
            )
            tol = 1e-6 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(by_fs[column], expected, atol=tol, err_msg=column)
            np.testing.assert_array_equal(by_top[column], by_fs[column])


def test_log_odds():
    joint = np.log([[0.2, 0.3, 0.1], [0.5, 0.25, 0.25]])
    expected = np.log([[0.2 / 0.4, 0.3 / 0.3, 0.1 / 0.5], [1.0, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(spaces.log_odds(joint), expected, atol=1e-12)
    two = spaces.log_odds(joint[:, :2])
    np.testing.assert_allclose(two[:, 0], -two[:, 1])


def test_log_odds_know_the_sizes_of_the_classes():
    X, y = runs_or_turns(12, 0)
    X, y = X[:9] + X[10::2], np.append(y[:9], y[10::2])  # 6 and 4
    scores = TOPScore(hmm(), scaling="none").fit(X, y)
    one, other = (law.expect(scores.model_.read(X)).log_likelihoods for law in scores.laws_)
    expected = one - other + np.log(np.mean(y == 0) / np.mean(y == 1))
    np.testing.assert_allclose(raw_of(scores, X)["log-odds(0)"], expected, rtol=1e-9)


def test_what_is_impossible_has_odds():
    """Where nothing is added to the counts, a class may rule out the symbols of the others."""
    X, y = [list("aab"), list("aba"), list("ccd"), list("dcd"), list("dd")], [0, 0, 1, 1, 1]
    model = hmm(pseudocount=0.0, symbol_concentration=0.0)
    for scaling in SCALINGS:
        scores = TOPScore(model, scaling=scaling)
        assert np.isfinite(scores.fit_transform(X, y)).all()
        odds = raw_of(scores, X)["log-odds(0)"]
        assert odds[:2].min() > odds[2:].max()
    for score_map in WITH_PER_CLASS:
        assert np.isfinite(score_map(model).fit_transform(X, y)).all()


@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize("segments", [1, 2])
def test_posterior_divergence_is_a_change_of_the_bound(per_class, segments):
    X, y = runs_or_turns(10, 0)
    new, _ = runs_or_turns(4, 1)
    scores = PosteriorDivergenceScore(hmm(), per_class, segments, scaling="none").fit(X, y)
    by_name, batch, more = raw_of(scores, new), scores.model_.read(X), scores.model_.read(new)
    for c, law in enumerate(scores.laws_):
        own = law.expect(batch.take(y == c) if per_class else batch, entropies=True)
        totals, doubt = own.statistics.sum(axis=(0, 1)), own.entropies.sum()
        before = totals @ law.natural() + doubt
        np.testing.assert_allclose(before, own.log_likelihoods.sum(), rtol=1e-9)  # it is tight
        prefix = f"{c}" if per_class else "all"
        found = sum(column for name, column in by_name.items() if name.startswith(prefix))
        kinds = {"moved": 0.0, "entropy": 0.0}
        for name, column in by_name.items():
            if name.startswith(prefix):
                for kind in kinds:
                    kinds[kind] += column if f"|{kind}(" in name else 0.0
        joined = law.expect(more, entropies=True)
        for s in range(len(new)):
            after = law.maximize(totals + joined.statistics[s, 0])
            bound = (totals + joined.statistics[s, 0]) @ after.natural()
            bound += doubt + joined.entropies[s].sum()
            np.testing.assert_allclose(found[s], bound - before, rtol=1e-8, atol=1e-8)
            # It is a bound, and no worse than without the step.
            together = after.expect(batch.take(y == c) if per_class else batch)
            alone = after.expect(more.take(np.array([s])))
            assert bound <= together.log_likelihoods.sum() + alone.log_likelihoods.sum() + 1e-9
            gone = totals @ (after.natural() - law.natural())
            np.testing.assert_allclose(kinds["moved"][s], gone, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(kinds["entropy"][s], joined.entropies[s].sum(), atol=1e-9)


# -------------------------------------------------------------------------------------- scaling


def some_scores(seed=0, n=12, m=5):
    rng = np.random.default_rng(seed)
    return 3 * rng.standard_normal((n, m)), rng.integers(1, 50, n)


def test_scalings_are_what_they_say():
    raw, sizes = some_scores()
    per_step = raw / sizes[:, None]
    np.testing.assert_array_equal(fit_scaler(raw, sizes, "none")(raw, sizes), raw)
    found = fit_scaler(raw, sizes, "variance")(raw, sizes)
    np.testing.assert_allclose(found, (per_step - per_step.mean(axis=0)) / per_step.std(axis=0))
    rooted = np.sign(per_step) * (np.sqrt(np.abs(per_step) + 1e-3) - np.sqrt(1e-3))
    found = fit_scaler(raw, sizes, "standard")(raw, sizes)
    np.testing.assert_allclose(found, (rooted - rooted.mean(axis=0)) / rooted.std(axis=0))
    for scaling, shaped in (("length", per_step), ("sqrt", rooted)):
        found = fit_scaler(raw, sizes, scaling)(raw, sizes)
        centred = shaped - shaped.mean(axis=0)
        np.testing.assert_allclose(found, centred / np.sqrt(np.mean(centred**2)), atol=1e-12)
        np.testing.assert_allclose(np.mean(found**2), 1.0)  # of unit size all together


def test_square_roots_have_a_slope_at_zero():
    raw, sizes = np.array([[-1e-6], [0.0], [1e-6], [5.0]]), np.ones(4)
    scaler = fit_scaler(raw, sizes, "sqrt")
    assert np.isfinite(scaler.slopes(raw, sizes)).all()
    np.testing.assert_allclose(np.diff(scaler(raw, sizes)[:3, 0], 2), 0.0, atol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_slopes_are_differences(scaling, seed):
    raw, sizes = some_scores(seed)
    raw[:, 2] = 7.0 * sizes  # a constant per step; by itself it varies
    raw[:, 3] = 0.0
    scaler = fit_scaler(raw, sizes, scaling)
    assert scaler.kept.tolist() == [True, True, scaling == "none", False, True]
    slopes = scaler.slopes(raw, sizes)
    assert slopes.shape == (len(raw), scaler.kept.sum())
    for j, column in enumerate(np.flatnonzero(scaler.kept)):
        step = np.zeros(raw.shape[1])
        step[column] = 1e-6
        found = (scaler(raw + step, sizes) - scaler(raw - step, sizes)) / 2e-6
        np.testing.assert_allclose(found[:, j], slopes[:, j], rtol=1e-5, atol=1e-8)
        assert not np.delete(found, j, axis=1).any()


@pytest.mark.parametrize("scaling", SCALINGS)
def test_what_never_varies_goes(scaling):
    raw, sizes = some_scores()
    raw[:, 1] = 5 * sizes if scaling != "none" else 5
    raw[:, 4] = 0
    scaler = fit_scaler(raw, sizes, scaling)
    assert scaler.kept.tolist() == [True, False, True, True, False]
    assert scaler(raw, sizes).shape == (12, 3)
    none = fit_scaler(np.zeros((3, 2)), np.ones(3), scaling)
    assert none(np.ones((4, 2)), np.ones(4)).shape == (4, 0)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_new_samples_are_scaled_as_training_was(scaling):
    X, y = runs_or_turns(20, 0)
    plain = SufficientStatisticsScore(hmm(), scaling="none").fit(X, y)
    scores = SufficientStatisticsScore(hmm(), scaling=scaling).fit(X, y)
    new, _ = runs_or_turns(6, 1)
    raw, sizes = plain._raw(plain.model_.read(X)), np.array([len(x) for x in X])
    scaler = fit_scaler(raw, sizes, scaling)
    more, more_sizes = plain._raw(plain.model_.read(new)), np.array([len(x) for x in new])
    np.testing.assert_allclose(scores.transform(new), scaler(more, more_sizes), atol=1e-12)
    each = np.concatenate([scores.transform([x]) for x in new])
    np.testing.assert_allclose(each, scores.transform(new), atol=1e-12)


# ---------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("score_map", MAPS)
@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("per_class", [True, False])
def test_names_say_which_score_is_which(score_map, segments, per_class):
    """Every column is what its name says: the class's law, the segment, the statistic."""
    X, y = runs_or_turns(12, 0, n_classes=3)
    y = np.array(["x", "y", "z"])[y]
    if score_map is TOPScore and not per_class:
        pytest.skip("TOP has a law for every class")
    options = {} if score_map is TOPScore else {"per_class": per_class}
    scores = score_map(hmm(), segments=segments, scaling="none", **options).fit(X, y)
    names = scores.get_feature_names_out()
    assert len(set(names)) == len(names) == scores.transform(X).shape[1]
    batch = scores.model_.read(X)
    owners = ["x", "y", "z"] if per_class else ["all"]
    assert len(scores.laws_) == len(owners)
    expected = {}
    if score_map is TOPScore:
        joint = [
            law.expect(batch).log_likelihoods + np.log(np.mean(y == owner))
            for law, owner in zip(scores.laws_, owners)
        ]
        for owner, column in zip(owners, spaces.log_odds(np.transpose(joint)).T):
            expected[f"log-odds({owner})"] = column
    for owner, law in zip(owners, scores.laws_):
        found = law.expect(batch, segments=segments, entropies=True)
        own = law.expect(batch.take(y == owner) if per_class else batch).statistics.sum(axis=(0, 1))
        for s in range(segments):
            place = f"{owner}[{s}]|" if segments > 1 else f"{owner}|"
            part = found.statistics[:, s]
            after = np.array(
                [law.maximize(own + t).natural() for t in found.statistics.sum(axis=1)]
            )
            for i, name in enumerate(law.names):
                if score_map is SufficientStatisticsScore:
                    expected[place + name] = part[:, i]
                elif score_map is FreeEnergyScore:
                    expected[place + name] = part[:, i] * law.natural()[i]
                elif score_map is PosteriorDivergenceScore:
                    expected[place + name] = part[:, i] * after[:, i]
                    change = own[i] * (after[:, i] - law.natural()[i])
                    expected[f"{place}moved({name})"] = change * (s == 0)
                else:
                    expected[f"{place}d/d({name})"] = law.gradient(part)[:, i]
            if score_map not in (FisherScore, TOPScore):
                for i, name in enumerate(law.names[: law.n_hidden]):
                    expected[f"{place}entropy({name})"] = found.entropies[:, s, i]
    assert set(names) <= set(expected)
    for name, column in raw_of(scores, X).items():
        np.testing.assert_allclose(column, expected[name], rtol=1e-9, atol=1e-9, err_msg=name)
    for name in set(expected) - set(names):  # left out, since it never varies
        np.testing.assert_allclose(expected[name], expected[name][0], rtol=1e-6, err_msg=name)


def test_a_symbol_moves_the_column_that_has_its_name():
    """With one state, expected counts are counts."""
    X = [list("abcabc"), list("aab"), list("bcc"), list("ccab")]
    scores = SufficientStatisticsScore(
        CategoricalHMM(1, random_state=0), per_class=False, segments=2, scaling="none"
    ).fit(X)
    before, after = raw_of(scores, [list("abca")]), raw_of(scores, [list("abcb")])
    moved = {name: after[name][0] - before[name][0] for name in before}
    assert {name: change for name, change in moved.items() if abs(change) > 1e-12} == {
        "all[1]|0:a": -1.0,
        "all[1]|0:b": 1.0,
    }


def test_frames_come_out_on_demand():
    pd = pytest.importorskip("pandas")
    X, y = runs_or_turns(12, 0)
    for score_map in MAPS:
        scores = score_map(hmm()).set_output(transform="pandas")
        found = scores.fit_transform(X, y)
        assert isinstance(found, pd.DataFrame)
        assert found.columns.tolist() == scores.get_feature_names_out().tolist()
        again = scores.transform(X)
        np.testing.assert_array_equal(again.to_numpy(), scores.set_output().transform(X))
        pd.testing.assert_frame_equal(again, found)


# -------------------------------------------------------------------------------------- manners


@pytest.mark.parametrize("score_map", WITH_PER_CLASS)
def test_one_law_for_all_needs_no_labels(score_map):
    X, y = runs_or_turns(12, 0)
    without = score_map(hmm(), per_class=False)
    found = without.fit_transform(X)
    assert len(without.laws_) == 1
    np.testing.assert_array_equal(score_map(hmm(), per_class=False).fit_transform(X, y), found)
    assert not hasattr(without, "classes_")
    assert not get_tags(without).target_tags.required
    # The law is that of the model, fitted to all sequences.
    np.testing.assert_array_equal(without.laws_[0].natural(), hmm().fit(X).law_.natural())


@pytest.mark.parametrize("score_map", MAPS)
def test_every_class_has_its_law(score_map):
    X, y = runs_or_turns(12, 0)
    scores = score_map(hmm()).fit(X, y)
    assert scores.classes_.tolist() == [0, 1]
    batch = scores.model_.read(X)
    for c, law in enumerate(scores.laws_):
        expected = scores.model_.learn(batch.take(y == c)).natural()
        np.testing.assert_array_equal(law.natural(), expected)
    assert get_tags(scores).target_tags.required


@pytest.mark.parametrize("score_map", [*MAPS, MaxMarginScore])
def test_labels_are_needed(score_map):
    X, _ = runs_or_turns(6, 0)
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match="pass a label for each sequence"):
            getattr(score_map(hmm()), method)(X)


@pytest.mark.parametrize("score_map", MAPS)
def test_a_class_may_have_one_sequence(score_map):
    X, y = runs_or_turns(9, 0)
    y[4] = 2
    scores = score_map(hmm()).fit(X, y)
    assert scores.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(scores.transform(X)).all()


@pytest.mark.parametrize("score_map", MAPS)
def test_symbols_that_training_did_not_have(score_map):
    X, y = runs_or_turns(12, 0)
    strict = score_map(hmm()).fit(X, y)
    with pytest.raises(
        ValueError, match=r"(?s)symbol 'z' at sequence 1, step 0.*unknown=\"missing\""
    ):
        strict.transform([list("ab"), list("za")])
    lenient = score_map(hmm(unknown="missing")).fit(X, y)
    found = lenient.transform([list("azb"), ["a", None, "b"], ["z"]])
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("score_map", MAPS)
def test_sequences_may_be_short(score_map):
    X, y = [["a"], ["b"], ["b"], ["a"], ["c"]], [0, 1, 1, 0, 1]
    scores = score_map(hmm(), segments=3)
    assert np.isfinite(scores.fit_transform(X, y)).all()
    assert np.isfinite(scores.transform([list("abcabcabc"), ["a"]])).all()


@pytest.mark.parametrize("score_map", [*MAPS, MaxMarginScore])
def test_sequences_that_are_all_alike_have_no_scores(score_map):
    for model in (hmm(), CategoricalHMM(1)):
        with pytest.raises(ValueError, match=r"(?s)no score varies.*check that they differ"):
            score_map(model).fit([list("abc")] * 6, [0, 1] * 3)


def test_errors_say_the_remedy():
    X, y = runs_or_turns(4, 0)
    scores = SufficientStatisticsScore(hmm())
    with pytest.raises(ValueError, match=r"(?s)sequence 1 is empty.*drop it"):
        scores.fit([["a"], [], ["b"]], [0, 1, 1])
    with pytest.raises(ValueError, match=r"(?s)mixes .*text.*number.*make all of one type"):
        scores.fit([["a", 1], ["b", 2]], [0, 1])
    with pytest.raises(
        ValueError, match=r"(?s)3 labels, but X has 4 sequences.*one label for each"
    ):
        scores.fit(X, y[:3])
    with pytest.raises(NotFittedError):
        SufficientStatisticsScore(hmm()).transform(X)
    with pytest.raises(NotFittedError):
        SufficientStatisticsScore(hmm()).get_feature_names_out()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": object()}, "'model' parameter"),
        ({"segments": 0}, "'segments' parameter"),
        ({"scaling": "log"}, "'scaling' parameter"),
        ({"per_class": "yes"}, "'per_class' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"model": CategoricalHMM(0)}, "'n_states' parameter"),
    ],
)
def test_errors_name_the_culprit(options, message):
    X, y = runs_or_turns(4, 0)
    for method in ("fit", "fit_transform"):
        scores = SufficientStatisticsScore(**{"model": hmm(), **options})
        with pytest.raises(ValueError, match=message):
            getattr(scores, method)(X, y)


@pytest.mark.parametrize("score_map", MAPS)
def test_fit_transform_is_fit_and_transform(score_map):
    X, y = runs_or_turns(12, 0)
    model = hmm()
    found = score_map(model).fit_transform(X, y)
    scores = score_map(model).fit(X, y)
    np.testing.assert_array_equal(scores.transform(X), found)
    assert not hasattr(model, "categories_")  # a clone was fitted
    copied = pickle.loads(pickle.dumps(scores))
    np.testing.assert_array_equal(copied.transform(X), found)
    np.testing.assert_array_equal(clone(scores).fit(X, y).transform(X), found)


@pytest.mark.parametrize("score_map", MAPS)
def test_threads_change_nothing(score_map):
    X, y = runs_or_turns(30, 0)
    one, *others = (
        score_map(hmm(), segments=2, n_jobs=n).fit_transform(X, y) for n in (None, 2, 3)
    )
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_in_company():
    X, y = runs_or_turns(60, 0)
    for score_map in MAPS:
        pipeline = make_pipeline(score_map(hmm()), LinearSVC())
        assert cross_val_score(pipeline, X, y, cv=3, error_score="raise").mean() > 0.8
    grid = {
        "sufficientstatisticsscore__model__n_states": [1, 2],
        "sufficientstatisticsscore__scaling": ["sqrt", "length"],
    }
    pipeline = make_pipeline(SufficientStatisticsScore(hmm()), LinearSVC())
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_params_["sufficientstatisticsscore__model__n_states"] == 2


SYMBOLS = CategoricalHMM(2, n_iter=3, random_state=0)
VECTORS = GaussianHMM(2, n_iter=3, random_state=0)


@pytest.mark.parametrize(
    "check",
    contract(
        {
            f"{type(scores).__name__}-{type(scores.model).__name__}": scores
            for scores in [
                *(score_map(SYMBOLS) for score_map in MAPS),
                MaxMarginScore(SYMBOLS, n_iter=2, n_folds=2, n_referees=1),
                SufficientStatisticsScore(VECTORS),
                MaxMarginScore(VECTORS, n_iter=2, solver="em"),
            ]
        },
        besides=["FreeEnergyScore-CategoricalHMM", "FisherScore-CategoricalHMM"],
    ),
)
def test_manners(check):
    check()
