"""What the page says, read back from its HTML and its JSON."""

import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regbayes.data import StepTransformer
from regbayes.mixture import GibbsInfiniteSVM
from regbayes.report import write_report
from regbayes.report.features import typical_words
from regbayes.report.page import make_page
from regbayes.report.sections import Section, make_sections
from regbayes.report.subject import Subject
from tests.report.conftest import HOSTILE


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.text, self._open = [], "", []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        self._open.pop() if self._open and self._open[-1] == tag else None

    def handle_data(self, data):
        if not self._open or self._open[-1] not in ("script", "style"):
            self.text += data

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def figures_of(source):
    return json.loads(re.search(r'id="figures">(.*?)</script>', source, re.S)[1])


def sections_of(*subject, **more):
    return {section.id: section for section in make_sections(Subject(*subject, **more))}


def figure_of(section, kind, at=0):
    return [figure for figure in section.figures if figure["kind"] == kind][at]


EXPECTED = {
    "mixture": "overview parts sizes chains answers calibration unsure settings",
    "variational mixture": "overview parts chains answers unsure settings",
    "chain": "overview signal moves parts sizes chains answers calibration unsure settings",
    "switching": "overview signal moves parts chains answers unsure settings",
    "gaussian": "overview signal moves parts chains settings",
    "symbols": "overview signal moves parts chains settings",
    "scores": "overview signal scores answers unsure settings",
}


@pytest.mark.parametrize("family", EXPECTED)
def test_every_family_has_its_sections(families, family, tmp_path):
    model, X, y = families[family]
    found = sections_of(model, X, y)
    assert " ".join(found) == EXPECTED[family]
    path = model.report(X, y, tmp_path / "page.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert [tag["id"] for tag in page.of("section")] == list(found)
    assert [tag["href"] for tag in page.of("a")][1:] == [f"#{name}" for name in found]
    assert type(model).__name__ in page.text


@pytest.mark.parametrize("family", EXPECTED)
def test_without_labels_nothing_is_right_or_wrong(families, family, tmp_path):
    model, X, _ = families[family]
    found = sections_of(model, X)
    assert not {"answers", "calibration"} & set(found)
    assert "right" not in " ".join(found["overview"].text)
    assert model.report(X, path=tmp_path / "page.html").stat().st_size > 10_000


def test_the_page_needs_nothing_else(chain, recordings, tmp_path):
    source = chain.report(*recordings, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "http:" not in source
    assert "https:" not in source
    page = Page(source)
    assert not page.of("link") + page.of("img") + page.of("iframe")
    assert all("src" not in attributes for attributes in page.of("script"))
    assert "@import" not in source
    assert "url(" not in source
    policy = page.of("meta")[2]["content"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_hostile_names_are_text(table, tmp_path):
    X, y = table
    labels = np.where(y == "in", HOSTILE, "{{script}} & <b>")
    names = [HOSTILE, "'\"><svg onload=alert(1)>"]
    model = GibbsInfiniteSVM(n_draws=4, burn_in=4, random_state=0).fit(X, labels)
    path = model.report(X, labels, tmp_path / "page.html", feature_names=names, title=HOSTILE)
    source = path.read_text(encoding="utf-8")
    page, harmless = Page(source), Page(model.report(X, path=path).read_text(encoding="utf-8"))
    assert len(page.of("script")) == len(harmless.of("script")) == 2
    assert not page.of("img") + page.of("b")
    assert not any(key.startswith("on") for _, tag in page.tags for key in tag)
    assert HOSTILE in page.text  # as it is, to be read
    named = [figure["data"].get("columns", []) for figure in figures_of(source)]
    assert names in named  # and whole in the numbers of the charts


def test_what_is_put_into_the_page_is_not_filled_in_again():
    page = make_page([Section("overview", "a", "b", ["{{script}} {{no}}"])], "{{title}}", "Model")
    assert "<p>{{script}} {{no}}</p>" in page
    assert "<title>{{title}}</title>" in page


def test_every_chart_has_words_and_a_table(families, tmp_path):
    for model, X, y in families.values():
        source = model.report(X, y, tmp_path / "page.html").read_text(encoding="utf-8")
        drawn, page = figures_of(source), Page(source)
        assert [int(tag["data-figure"]) for tag in page.of("figure")] == list(range(len(drawn)))
        assert all(len(figure["alt"]) > 20 for figure in drawn)
        assert len(page.of("figcaption")) == len(page.of("details")) == len(drawn)
        assert all(tag["aria-label"] for tag in page.of("div") if tag.get("class") == "table")


def test_confusion_counts_what_the_model_answers(mixture, table):
    X, y = table
    section = sections_of(mixture, X, y)["answers"]
    figure = figure_of(section, "matrix")
    counts = confusion_matrix(y, mixture.predict(X))
    np.testing.assert_array_equal(np.array(figure["data"]["texts"], dtype=int), counts)
    assert f"{mixture.score(X, y):.1%} of 60 labels" in section.text[0]


def test_steps_agree_with_the_score_in_every_layout(chain, recordings):
    pandas = pytest.importorskip("pandas")
    X, y = recordings
    expected = f"{chain.score(X, y):.1%} of 100 labels"
    ids = np.repeat(["a", "b"], [60, 40])
    shuffled = np.random.default_rng(0).permutation(100)
    order = np.sort(shuffled[:60]), np.sort(shuffled[60:])
    rows = np.empty(100, dtype=int)  # rows of the two recordings, mixed, each in its order
    rows[order[0]], rows[order[1]] = np.arange(60), np.arange(60, 100)
    frame = pandas.DataFrame({"x": np.concatenate(X)[rows, 0], "sequence_id": ids[rows]})
    for data, labels, more in (
        (X, y, {}),
        (np.concatenate(X), np.concatenate(y), {"lengths": [60, 40]}),
        (frame, np.concatenate(y)[rows], {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the frame has names, the training data had none
            sections = sections_of(chain, data, labels, **more)
        assert expected in sections["overview"].text[1]
        signal = figure_of(sections["signal"], "signal")["data"]
        assert sorted(part["n"] for part in signal["sequences"]) == [40, 60]


def test_strips_are_states_labels_and_answers(chain, recordings):
    X, y = recordings
    data = figure_of(sections_of(chain, X, y)["signal"], "signal")["data"]
    assert [strip["name"] for strip in data["strips"]] == ["state", "label", "answer"]
    first = data["sequences"][0]
    np.testing.assert_array_equal(first["lines"], X[0].T)
    np.testing.assert_array_equal(first["strips"][0], chain.decode(X)[0])
    names = np.array(data["strips"][2]["names"])
    np.testing.assert_array_equal(names[first["strips"][2]], chain.predict(X)[0])


def test_whole_sequences_are_named_with_their_labels(families):
    model, X, y = families["scores"]
    figure = figure_of(sections_of(model, X, y)["signal"], "signal")
    assert figure["data"]["sequences"][0]["name"] == "sequence 0, label single, answer single"
    assert figure["table"]["rows"][0] == ["sequence 0", 8, "label single, answer single"]


def test_moves_are_the_model_s(chain, recordings):
    section = sections_of(chain, *recordings)["moves"]
    data = figure_of(section, "graph")["data"]
    states = [int(node["name"]) for node in data["nodes"]]
    for edge in data["edges"]:
        p = chain.transitions_[states[edge["from"]], states[edge["to"]]]
        assert edge["p"] == pytest.approx(p)
    runs = [np.diff(np.flatnonzero(np.r_[1, np.diff(p), 1])) for p in chain.decode(recordings[0])]
    n_steps = sum(map(np.sum, runs))
    durations = figure_of(section, "bars")["data"]["values"]
    shares = [node["share"] for node in data["nodes"]]
    n_runs = sum(n_steps * share / mean for share, mean in zip(shares, durations))
    assert n_runs == pytest.approx(sum(map(len, runs)))


def test_parts_are_told_by_their_means(mixture, table):
    X, y = table
    section = sections_of(mixture, X, y, feature_names=["length", "width"])["parts"]
    data = figure_of(section, "matrix")["data"]
    assert data["columns"] == ["length", "width"]
    found = mixture.predict_component(X)
    for name, row in zip(data["rows"], data["values"]):
        own = X[found == int(name.split()[-1])]
        np.testing.assert_allclose(row, (own.mean(axis=0) - X.mean(axis=0)) / X.std(axis=0))


def test_posterior_of_the_number_and_r_hat(chain, recordings):
    sections = sections_of(chain, *recordings)
    data = figure_of(sections["sizes"], "bars")["data"]
    sizes = chain.trace_["n_states"].ravel()
    expected = {str(n): np.mean(sizes == n) for n in range(sizes.min(), sizes.max() + 1)}
    assert dict(zip(data["labels"], data["values"])) == pytest.approx(expected)
    rows = {row[0]: row[1] for row in figure_of(sections["chains"], "table")["rows"]}
    for name, quantity in chain.diagnose().quantities.items():
        assert rows[name] == pytest.approx(quantity.r_hat, nan_ok=True)


def test_a_number_that_was_given_is_not_found(mixture, table):
    class Given(GibbsInfiniteSVM):
        def get_params(self, deep=True):
            return {**super().get_params(deep), "n_components": 3}

    assert "sizes" in sections_of(mixture, *table)
    given = Given()
    given.__dict__.update(mixture.__dict__)
    found = sections_of(given, *table)
    assert "sizes" not in found
    assert "found by itself" not in found["overview"].text[0]


class _Said(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are its input."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0.5).astype(int)]


def test_calibration_and_doubt():
    X = np.array([[0.95], [0.95], [0.95], [0.95], [0.65], [0.05]])
    y = np.array(["b", "b", "b", "a", "b", "a"])
    sections = sections_of(_Said().fit(X, y), X, y)
    (series,) = figure_of(sections["calibration"], "lines")["data"]["series"]
    np.testing.assert_allclose(series["x"], [0.65, 0.95])
    np.testing.assert_allclose(series["y"], [1.0, 4 / 5])
    unsure, wrong = sections["unsure"].figures
    assert unsure["rows"][0] == ["row 4", "b", 0.65, "a", "b"]
    assert wrong["rows"] == [["row 3", "b", 0.95, "a", "a"]]


def test_labels_that_training_did_not_have_are_left_out(mixture, table):
    X, y = table
    section = sections_of(mixture, X, np.where(np.arange(60) < 3, "new", y))["answers"]
    assert "of 57 labels" in section.text[0]
    assert "3 items without a known label are left out." in section.text


def test_pipelines_keep_the_user_s_units_and_names(table):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(table[0] * 1000, columns=["length", "width"])
    inner = GibbsInfiniteSVM(n_draws=4, burn_in=4, random_state=0)
    model = make_pipeline(StandardScaler(), inner).fit(X, table[1])
    subject = Subject(model, X, table[1])
    assert subject.names == ["length", "width"]
    np.testing.assert_array_equal(subject.values, X)
    assert np.mean(subject.answers == subject.truth) == model.score(X, table[1])


def test_pipelines_of_sequences(chain, recordings):
    X, y = recordings
    steps = StepTransformer(StandardScaler()).fit(X)
    model = make_pipeline(steps, type(chain)(n_draws=3, burn_in=3, random_state=0)).fit(X, y)
    subject = Subject(model, X, y)
    np.testing.assert_array_equal(subject.values, np.concatenate(X))
    assert subject.seen.std() == pytest.approx(1)
    assert np.mean(subject.answers == subject.truth) == pytest.approx(model.score(X, y))


def test_other_classifiers_have_a_shorter_page(table, tmp_path):
    model = LogisticRegression().fit(*table)
    assert list(sections_of(model, *table)) == [
        "overview", "answers", "calibration", "unsure", "settings"
    ]  # fmt: skip
    assert write_report(model, *table, tmp_path / "page.html").exists()


class _Topics(_Said):
    """The names that models of documents have, over two topics."""

    topic_weights_ = np.array([[1.0, -1.0], [-2.0, 2.0]])
    n_topics_ = 2

    def top_words(self, n_words, words):
        return np.asarray(words)[[[0, 1], [2, 1]]]

    def transform(self, X):
        return np.column_stack([X[:, 0].toarray(), 1 - X[:, 0].toarray()])

    def predict_proba(self, X):
        return self.transform(X)


def test_topics_have_words_weights_and_examples():
    X = csr_matrix([[0.9, 0, 0], [0.2, 1, 0], [0.1, 1, 1]])
    y = ["a", "b", "b"]
    section = sections_of(_Topics().fit(X, y), X, y, feature_names=["oak", "elm", "ash"])[
        "features"
    ]
    words = figure_of(section, "table")["rows"]
    assert words[0] == ["topic 0", "oak, elm", pytest.approx(0.4), "row 0, row 1, row 2"]
    assert words[1][1] == "ash, elm"
    np.testing.assert_array_equal(
        figure_of(section, "matrix")["data"]["values"], _Topics.topic_weights_
    )


class _Views(BaseEstimator):
    """The names that models of several views have."""

    n_features_ = 2

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def top_inputs(self, k, names):
        return {"sound": [["low"], ["high"]], "sight": [["red"], ["blue"]]}


def test_features_of_several_views():
    X = {"sound": np.ones((3, 1)), "sight": np.ones((3, 1))}
    section = sections_of(_Views().fit(X), X)["features"]
    assert figure_of(section, "table")["rows"] == [
        ["feature 0", "sound: low; sight: red"],
        ["feature 1", "sound: high; sight: blue"],
    ]


def test_strongest_scores_of_each_class(families):
    model, X, y = families["scores"]
    section = sections_of(model, X, y)["scores"]
    names, weights = model.get_feature_names_out(), model.classifier_.coef_
    effects = weights * model.transform(X).std(axis=0)
    best = names[np.abs(effects[0]).argmax()]
    assert figure_of(section, "table")["rows"][0][:2] == [str(model.classes_[0]), best]


def test_missing_steps_and_labels(chain, recordings, tmp_path):
    X, y = [x.copy() for x in recordings[0]], [list(labels) for labels in recordings[1]]
    X[0][5] = np.nan
    y[1][3] = None
    source = chain.report(X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "of 99 labels" in source
    assert any(
        None in figure["data"]["sequences"][0]["lines"][0]
        for figure in figures_of(source)
        if figure["kind"] == "signal"
    )


def test_long_data_are_cut_and_the_page_says_so(families):
    model, X, _ = families["gaussian"]
    X = [np.tile(X[0], (80, 1))] + [X[1]] * 8
    section = sections_of(model, X)["signal"]
    data = figure_of(section, "signal")["data"]
    assert [part["n"] for part in data["sequences"]] == [4000, 40, 40, 40, 40, 40]
    assert data["sequences"][0]["name"] == "sequence 0, its beginning"
    assert "Shown are 6 of 9 sequences." in section.text


def test_mistakes_are_told(mixture, table):
    X, y = table
    with pytest.raises(ValueError, match="one name for each column"):
        sections_of(mixture, X, y, feature_names=["only one"])
    with pytest.raises(ValueError, match="one label for each row"):
        sections_of(mixture, X, y[:-1])
    with pytest.raises(NotFittedError):
        write_report(GibbsInfiniteSVM(), X, y)


def test_words_of_a_topic_are_those_that_set_it_apart():
    class Topics:
        components_ = np.array([[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]])

    words = typical_words(Topics(), ["the", "sea", "oven"])
    assert words[:, 0].tolist() == ["sea", "oven"]  # not "the", the commonest of both
