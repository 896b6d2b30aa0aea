"""What was drawn, read back from the artists."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.svm import LinearSVC

from regbayes.chains import Trace
from regbayes.datasets import make_switching_labels
from regbayes.hmm import InfiniteHMM
from regbayes.mixture import GibbsInfiniteSVM
from regbayes.plot import (
    plot_activations,
    plot_co_assignment,
    plot_component_counts,
    plot_confusion,
    plot_decision_regions,
    plot_signal,
    plot_states,
    plot_topic_words,
    plot_trace,
    plot_transitions,
)
from regbayes.plot._regions import component_shapes


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def table():
    """Two clusters, (100, -30) apart, in the second of which the rule is reversed."""
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 2)) * [10.0, 1.0] + np.where(z[:, None], [100.0, -30.0], 0.0)
    y = np.where((X[:, 0] > 100.0 * z) == (z == 0), "up", "down")
    return X, y, z


@pytest.fixture(scope="module", params=["full", "diag"])
def model(request, table):
    X, y, _ = table
    model = GibbsInfiniteSVM(
        C=0.1, nu=5.0, covariance=request.param, n_draws=20, burn_in=30, random_state=0
    )
    return model.fit(X, y)


def make_trace(partitions, **scalars):
    return Trace(
        [
            [
                {"z": np.array(z), "n_components": len(set(z)), "log_joint": -float(i), **scalars}
                for i, z in enumerate(chain)
            ]
            for chain in partitions
        ]
    )


def test_bars_are_shares_of_draws_of_all_chains(ax):
    trace = make_trace([[[0, 0, 0], [0, 1, 0], [0, 1, 1]], [[0, 1, 2]]])
    assert plot_component_counts(trace, ax) is ax
    bars = {round(bar.get_center()[0]): bar for bar in ax.patches}
    assert {k: bar.get_height() for k, bar in bars.items()} == {1: 0.25, 2: 0.5, 3: 0.25}
    accented = [k for k, bar in bars.items() if bar.get_facecolor()[:3] == to_rgb("tab:blue")]
    assert accented == [2]
    assert list(ax.get_xticks()) == [1, 2, 3]


def test_bars_of_states_when_the_draws_have_states(ax):
    numbers = [[3, 3, 4], [5, 3, 4]]
    trace = Trace([[{"n_states": n, "log_joint": 0.0} for n in chain] for chain in numbers])
    assert plot_component_counts(trace, ax) is ax
    heights = {round(bar.get_center()[0]): bar.get_height() for bar in ax.patches}
    assert heights == {3: 3 / 6, 4: 2 / 6, 5: 1 / 6}
    assert ax.get_xlabel() == "states"


def test_bars_of_topics_and_draws_without_a_size(ax):
    plot_component_counts(Trace([[{"alpha": 1.0, "n_topics": n} for n in (7, 7)]]), ax)
    assert ax.get_xlabel() == "topics"
    with pytest.raises(ValueError, match="no number of parts, only alpha"):
        plot_component_counts(Trace([[{"alpha": 1.0}]]), ax)


def test_a_line_for_each_chain(ax):
    trace = make_trace([[[0, 1], [0, 0]], [[0, 0], [0, 0]]])
    assert plot_trace(trace, "n_components", ax) is ax
    assert [line.get_ydata().tolist() for line in ax.lines] == [[2, 1], [1, 1]]
    assert ax.get_ylabel() == "n_components"
    assert [text.get_text() for text in ax.get_legend().texts] == ["chain 0", "chain 1"]


def test_a_line_needs_numbers(ax):
    with pytest.raises(ValueError, match="needs one number"):
        plot_trace(make_trace([[[0, 1], [0, 0]]]), "z", ax)


def test_co_assignment_is_ordered_by_the_best_draw(ax):
    best, other = [0, 1, 1, 2, 1, 0], [0, 0, 0, 0, 0, 1]
    assert plot_co_assignment(make_trace([[best, other]]), ax) is ax
    together = (np.equal.outer(best, best) + np.equal.outer(other, other) * 1.0) / 2
    order = [1, 2, 4, 0, 5, 3]  # sizes 3, 2, 1
    np.testing.assert_array_equal(ax.images[0].get_array(), together[np.ix_(order, order)])
    assert ax.images[0].get_clim() == (0, 1)


def test_co_assignment_keeps_equal_sizes_apart_and_takes_an_order(ax):
    trace = make_trace([[[0, 1, 0, 1]]])
    plot_co_assignment(trace, ax)
    blocks = np.kron(np.eye(2), np.ones((2, 2)))
    np.testing.assert_array_equal(ax.images[0].get_array(), blocks)
    plot_co_assignment(trace, ax, order=[0, 1, 2, 3])
    np.testing.assert_array_equal(ax.images[1].get_array()[0], [1, 0, 1, 0])


def test_ellipses_have_the_moments_of_the_members(model, table, ax):
    X, y, _ = table
    assert plot_decision_regions(model, X, y, ax) is ax
    counts = model.best_draw_["counts"]
    assert len(ax.patches) == len(counts)
    means, covariances = component_shapes(model)
    for k in np.flatnonzero(counts > 30):
        ellipse, members = ax.patches[k], X[model.labels_ == k]
        np.testing.assert_allclose(ellipse.center, means[k])
        np.testing.assert_allclose(means[k], members.mean(axis=0), atol=1.0)
        radii = np.sort([ellipse.width, ellipse.height]) / 2
        np.testing.assert_allclose(radii**2, 4 * np.linalg.eigvalsh(covariances[k]))
        # The long axis lies along the first feature, as the data's does.
        long = ellipse.angle + (90 if ellipse.height > ellipse.width else 0)
        assert abs((long + 90) % 180 - 90) < 20
        # Two standard deviations hold 86 % of a Gaussian, and here the prior is wider still.
        inside = ellipse.get_patch_transform().inverted().transform(members)
        assert np.mean(np.linalg.norm(inside, axis=1) < 1) > 0.75


def test_expected_covariance_is_that_of_the_posterior(model, table):
    """From the members of a component, by the conjugate update written out."""
    X = table[0]
    frame, base = model._frame, model._base
    k = int(np.argmax(model.best_draw_["counts"]))
    members = frame.enter(X)[model.labels_ == k]
    n, strength = len(members), base.strength
    shift = members.mean(axis=0) - base.mean
    scatter = np.cov(members.T, bias=True) * n
    scatter += strength * n / (strength + n) * np.outer(shift, shift)
    if model.covariance == "full":
        expected = (base.factor @ base.factor.T + scatter) / (base.df + n - 3)
    else:
        expected = np.diag(base.factor[0] + np.diag(scatter)) / (base.df + n - 2)
    np.testing.assert_allclose(component_shapes(model)[1][k], expected * frame.unit**2)


def test_regions_have_the_colour_of_the_predicted_class(model, table, ax):
    X, y, _ = table
    plot_decision_regions(model, X, y, ax)
    (image,) = ax.images
    left, right, bottom, top = image.get_extent()
    pixels = image.get_array()
    names = [text.get_text() for text in ax.get_legend().texts]
    inks = 1 - np.array([to_rgb(group.get_facecolor()[0]) for group in ax.collections])
    inks /= np.linalg.norm(inks, axis=1, keepdims=True)
    assert names == ["down", "up"]
    for x in ([12.0, 0.0], [-12.0, 0.0], [112.0, -30.0], [88.0, -30.0]):
        column = int((x[0] - left) / (right - left) * len(pixels))
        row = int((x[1] - bottom) / (top - bottom) * len(pixels))
        ink = 1 - pixels[row, column]  # a pale region has the hue of its points
        assert ink.max() > 0.1
        assert names[np.argmax(inks @ ink)] == model.predict([x])[0]
    assert [len(group.get_offsets()) for group in ax.collections] == [
        np.sum(y == name) for name in model.classes_
    ]


def test_other_classifiers_have_regions_but_no_ellipses(table, ax):
    X, y, _ = table
    plot_decision_regions(LinearSVC().fit(X, y), X, y, ax)
    assert len(ax.patches) == 0
    assert len(np.unique(ax.images[0].get_array().reshape(-1, 3), axis=0)) == 2


def test_data_frames_name_the_axes(table, ax):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(table[0], columns=["length", "width"])
    model = GibbsInfiniteSVM(n_draws=3, burn_in=3, random_state=0).fit(X, table[1])
    plot_decision_regions(model, X, table[1], ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")


def test_three_features_are_refused(ax):
    X = np.random.default_rng(0).normal(size=(10, 3))
    y = X[:, 0] > 0
    with pytest.raises(ValueError, match="two features"):
        plot_decision_regions(LinearSVC().fit(X, y), X, y, ax)


def test_strips_are_steps_by_states(ax):
    strips = {"truth": [0, 0, 1, 2], "found": np.array([1, 1, 0, 0], dtype=np.int32)}
    assert plot_states(strips, ax) is ax
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), [[0, 0, 1, 2], [1, 1, 0, 0]])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["truth", "found"]
    assert ax.get_xlabel() == "step"
    assert image.get_extent() == [-0.5, 3.5, 1.5, -0.5]  # a step is as wide as one
    assert len(ax.lines) == 1  # between the strips


def test_one_strip_needs_no_name(ax):
    plot_states([0, 1, 1], ax)
    assert ax.images[0].get_array().tolist() == [[0, 1, 1]]
    assert len(ax.lines) == 0


def test_colours_of_states_do_not_depend_on_the_others(ax):
    plot_states([0, 1], ax)
    plot_states([1, 7], ax)
    plot_states([21, 7], ax)  # there are twenty colours
    few, many, more = (image.to_rgba(image.get_array()) for image in ax.images)
    np.testing.assert_array_equal(few[0, 1], many[0, 0])
    np.testing.assert_array_equal(many, more)
    assert not np.array_equal(many[0, 0], many[0, 1])


def test_strips_of_unequal_lengths_are_refused(ax):
    with pytest.raises(ValueError, match=r"unequal lengths, \{'a': 2, 'b': 3\}"):
        plot_states({"a": [0, 1], "b": [0, 1, 1]}, ax)


def test_strips_lie_under_the_signal_step_by_step(ax):
    X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    assert plot_signal(X, {"state": [0, 0, 1], "label": [1, 1, 0]}, ax, ["a", "b"]) is ax
    assert [line.get_ydata().tolist() for line in ax.lines] == X.T.tolist()
    assert [text.get_text() for text in ax.get_legend().texts] == ["a", "b"]
    (under,) = ax.child_axes
    np.testing.assert_array_equal(under.images[0].get_array(), [[0, 0, 1], [1, 1, 0]])
    assert under.get_xlim() == ax.get_xlim() == (-0.5, 2.5)
    ax.set_xlim(0.5, 1.5)  # they zoom together
    assert under.get_xlim() == (0.5, 1.5)


def test_a_signal_and_a_strip_of_unequal_length_are_refused(ax):
    with pytest.raises(ValueError, match="3 steps and the strips have 2"):
        plot_signal([0.0, 1.0, 2.0], [0, 1], ax)


def test_rows_of_a_confusion_are_labels(ax):
    truth = ["a", "a", "a", "b"]
    assert plot_confusion(truth, ["a", "b", "c", "b"], ax) is ax
    np.testing.assert_allclose(
        ax.images[0].get_array(), [[1 / 3, 1 / 3, 1 / 3], [0, 1, 0], [0, 0, 0]]
    )
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[2, 0] == "1"  # (column, row)
    assert written[0, 2] == "0"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("answer", "label")


def test_many_classes_have_no_numbers_in_their_cells(ax):
    names = np.arange(30)
    plot_confusion(names, names[::-1], ax)
    assert len(ax.texts) == 0
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(30)[::-1])


@pytest.mark.parametrize(("truth", "answers"), [([0, 1], [0]), ([[0, 1]], [[0, 1]]), ([], [])])
def test_labels_without_answers_are_refused(ax, truth, answers):
    with pytest.raises(ValueError, match="a label and an answer for each item"):
        plot_confusion(truth, answers, ax)


def test_activations_are_about_the_mean_of_the_classes(ax):
    values = np.array([[1.0, 0.5, 2.0], [3.0, 0.5, 0.0]])
    assert plot_activations(values, ["x", "y"], ax, names=["f", "g", "h"]) is ax
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), [[-1, 0, 1], [1, 0, -1]])
    assert image.get_clim() == (-1, 1)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x", "y"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["f", "g", "h"]
    with pytest.raises(ValueError, match="a row for each class"):
        plot_activations(values.T, ["x", "y"], ax)


def test_topics_without_classes_are_in_order(ax):
    words = [["oak"], ["elm"], ["ash"]]
    assert plot_topic_words(words, [0.1, 0.2, 0.7], ax=ax) is ax
    assert [text.get_text() for text in ax.get_yticklabels()] == ["ash", "elm", "oak"]
    assert [bar.get_width() for bar in ax.patches] == [0.7, 0.2, 0.1]
    low, high = ax.get_ylim()
    assert low > high  # the commonest is on top
    assert ax.get_legend() is None
    with pytest.raises(ValueError, match="a number for each topic"):
        plot_topic_words(words, [0.5, 0.5], ax=ax)


def test_a_transition_matrix_has_its_rows_downwards(ax):
    matrix = [[0.9, 0.1, 0.0], [0.3, 0.65, 0.05], [0.0, 0.0, 1.0]]
    assert plot_transitions(matrix, ax) is ax
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), matrix)
    assert image.get_clim() == (0, 1)
    written = {text.get_position(): text.get_text() for text in ax.texts}
    # Positions are (column, row); less than a tenth is left out.
    assert written == {
        (0, 0): ".90", (1, 0): ".10", (0, 1): ".30", (1, 1): ".65", (2, 2): "1.00"
    }  # fmt: skip
    assert {text.get_text(): text.get_color() for text in ax.texts}[".65"] == "white"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("next state", "state")
    assert ax.figure.axes[-1].get_ylabel() == "probability"


def test_pictures_of_a_fitted_chain():
    X = make_switching_labels((60,), means=[-5, 0, 5], random_state=0).data
    model = InfiniteHMM(n_draws=4, burn_in=4, random_state=0).fit(X)
    strips, bars, matrix, lines = Figure().subplots(4)
    plot_states(model.states_[0], strips)
    assert strips.images[0].get_array().tolist() == [model.states_[0].tolist()]
    plot_component_counts(model.trace_, bars)
    assert sum(bar.get_height() for bar in bars.patches) == pytest.approx(1)
    plot_transitions(model.transitions_, matrix)
    assert matrix.images[0].get_array().shape == (model.n_states_, model.n_states_)
    plot_trace(model.trace_, "n_states", lines)
    assert [line.get_ydata().tolist() for line in lines.lines] == model.trace_["n_states"].tolist()


def test_a_new_axes_when_none_is_given():
    ax = plot_component_counts(make_trace([[[0, 1]]]))
    assert len(ax.patches) == 1


def test_importing_the_package_does_not_import_matplotlib():
    code = "import sys, regbayes.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_topics_have_the_colour_of_their_class(ax):
    words = [["a", "b"], ["c", "d"], ["e", "f"]]
    weights = np.array([[3.0, -1.0, 0.5], [-3.0, 1.0, -0.5]])
    assert plot_topic_words(words, weights, ["one", "two"], ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a b", "c d", "e f"]
    bars = sorted(ax.patches, key=lambda bar: bar.get_y())
    assert [bar.get_width() for bar in bars] == [3.0, 1.0, 0.5]
    colors = [bar.get_facecolor() for bar in bars]
    assert colors[0] == colors[2] != colors[1]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_topics_of_one_document(ax):
    weights = np.array([[3.0, -1.0], [-3.0, 1.0]])
    plot_topic_words([["a"], ["b"]], weights, ["one", "two"], [0.1, 0.9], n_topics=1, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b"]
    assert ax.patches[0].get_width() == pytest.approx(0.9)
    with pytest.raises(ValueError, match="2 classes and 1 topics"):
        plot_topic_words([["a"]], weights, ["one", "two"], ax=ax)
