"""Table 3: scenes and texts by score spaces over LDA, by max-margin topics, and by SVMs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from experiments import document_rows as rows_of
from experiments.harness import Options, Row, run_table
from experiments.score_rows import SEARCH
from experiments.visual_words import pyramid
from regbayes import datasets

TOPICS = 10  # of each class of scenes; the paper has 50, and 10 for MSS
SCENES = {
    # title, scenes, training images of each class (None: 5 % of all), splits
    "ot8_5percent": ("8 scenes of Oliva and Torralba, 5 % for training", "ot8", None, 10),
    "ot8_100": ("8 scenes of Oliva and Torralba, 100 of each class", "ot8", 100, 10),
    "scene15_100": ("15 scenes, 100 of each class", "all", 100, 10),
}


@dataclass(frozen=True)
class Texts:
    """A collection of texts: how it is had, and what its rows see."""

    title: str
    fetch: Callable
    n_topics: int
    min_documents: int  # that a word must be in
    scored_topics: int  # scores number topics times words, for every class
    scored_words: int
    by_class: bool = False  # those that tell the classes apart; else those of most documents
    scaling: str | None = None  # of the scores; with none, SS and MSS choose theirs

    def words(self):
        """What the score rows see, and how it is said."""
        n = self.scored_words
        if self.by_class:
            return SelectKBest(chi2, k=n), f"the {n} words whose counts depend most on the class"
        return rows_of.CommonWords(n), f"the {n} words that most training documents have"


TEXTS = {
    "webkb4": Texts("WebKB, 4 classes", datasets.fetch_webkb4, 50, 2, 5, 500),
    "ohsumed23": Texts(
        "OHSUMED, 23 classes",
        datasets.fetch_ohsumed23,
        n_topics=100,
        min_documents=3,
        scored_topics=2,
        scored_words=300,
        by_class=True,
        scaling="sqrt",
    ),
    "movie_reviews": Texts(
        "movie reviews", datasets.fetch_movie_reviews, 50, 3, 5, 1500, scaling="standard"
    ),
}
N_SPLITS = 3  # of texts
N_CHAINS = 4  # each has topics of its own, and the mean of their scores is what counts
N_TOPICS = 60  # of all scenes together
PAIRS = [
    ("MSS", "SS"), ("MSS", "FS"), ("MSS", "FESS"), ("MSS", "histogram SVM"),
    ("MedLDA", "LDA + SVM"),
]  # fmt: skip

SCENE_NOTES = (
    f"The same 240 visual words for every row. Score rows have an LDA of {TOPICS} topics for each "
    "class, and scores that are rooted and of unit variance; the weight of the classifier on the "
    "scores, as of the SVMs, is chosen by three folds of the training part. LDA and MedLDA have "
    f"{N_TOPICS} topics for all classes, and nothing that is chosen. The chi-squared SVM shows "
    "about how much counts of words can tell: it is the strongest known classifier of them. The "
    "pyramid has the words in their places, 1 + 4 + 16 cells, which no other row sees. MSS learns "
    "Fisher scores (space='fisher'): without a margin it is FS, so what it has more than FS is "
    "what the margin adds. That, after MSS on plain counts had been seen here, and the scaling "
    "were settled on splits with other seeds (100 and on). Figures of the paper (90.4 and "
    "83.6 for MSS) are with its own features. The paper's third set, UIUC-Sports, could not be had."
)
TEXT_NOTES = (
    "Documents are split anew, with the published share of training documents; movie reviews by "
    f"the published folds, the first {N_SPLITS} of them. Score rows have an LDA of few topics for "
    "each class and see few words ({topics} topics; {words}), since their scores number topics "
    "times words for every class, and MSS learns Fisher scores, as over scenes; all other rows "
    "see all words that a few documents have; LDA + SVM counts a word once in a document, which is "
    f"better for it. {N_CHAINS} chains vote in MedLDA, half as many where the number of topics is "
    "found. “Topics stay” has stay=10: topics as they were sampled. “Random topics, tuned” is what "
    "MedLDA's readings come to from topics that nobody sampled: what MedLDA has more is owed to "
    "topics (decision 025). Settings of the readings, one for each set, were settled on splits "
    "with other seeds (100; movie reviews: fold 7). So were, after rows with fewer or more common "
    "words had been seen here, words and scaling of the scores (movie reviews: folds 7 and 8)."
)


def split_by_class(y, n_train, n_splits):
    """Random splits with so many training samples of each class, or 5 % of all."""
    if n_train is None:
        shuffle = StratifiedShuffleSplit(n_splits, train_size=0.05, random_state=0)
        return list(shuffle.split(y, y))
    splits = []
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train = np.concatenate([order[y[order] == c][:n_train] for c in np.unique(y)])
        splits.append((np.sort(train), np.setdiff1d(np.arange(len(y)), train)))
    return splits


def score_lines(n_topics, quick, wrap, scaling=None):
    def line(name):
        return Row(
            name,
            lambda seed: wrap(rows_of.score_rows(n_topics, seed, quick, scaling)[name]),
            version=SEARCH if name == "MSS" else "",
        )

    return [line(name) for name in ("FS", "FESS", "SS", "MSS")]


def topic_lines(n_topics, quick, wrap):
    def line(name, *arguments, **given):
        return Row(
            name,
            lambda seed: wrap(rows_of.max_margin_topics(seed, *arguments, quick, **given)),
        )

    return [
        line("MedLDA", n_topics, N_CHAINS),
        line("MedLDA, topics found", "auto", N_CHAINS // 2),
        line("MedLDA, topics stay", n_topics, N_CHAINS, stay=10.0),
        Row("random topics, tuned", lambda seed: wrap(rows_of.RandomTopics(n_topics, seed))),
    ]


def scenes(options: Options) -> None:
    for name, (title, which, n_train, n_splits) in SCENES.items():
        words = datasets.fetch_scene15("words240", scenes=which)
        X, y = words.data, words.target
        grids = datasets.fetch_scene15("grid240", scenes=which).data
        if options.quick:
            some = np.concatenate([np.flatnonzero(y == c)[:20] for c in np.unique(y)])
            X, y, grids = X[some], y[some], [grids[i] for i in some]
            n_train = 10
        X = hstack([X, pyramid(grids, 240)], format="csr")  # counts, then words in their places
        quick = options.quick

        def words_only(estimator):
            return rows_of.Seeing(rows_of.Columns(0, 240), estimator)

        def places(estimator):
            return rows_of.Seeing(rows_of.Columns(240), estimator)

        lines = [
            Row("histogram SVM", lambda seed, see=words_only: see(rows_of.histogram_svm())),
            Row("chi-squared SVM", lambda seed, see=words_only: see(rows_of.chi_squared_svm())),
            Row("spatial pyramid SVM (PHOW)", lambda seed, see=places: see(rows_of.linear_svm())),
            Row(
                "LDA + SVM",
                lambda seed, see=words_only, quick=quick: see(
                    rows_of.lda_svm(N_TOPICS, seed, quick)
                ),
            ),
            Row(
                "MedLDA",
                lambda seed, see=words_only, quick=quick: see(
                    rows_of.max_margin_topics(seed, N_TOPICS, N_CHAINS, quick)
                ),
            ),
            *score_lines(TOPICS, quick, words_only, scaling="standard"),
        ]
        run_table(
            f"001 Table 3: {title}", lines, X, y,
            split_by_class(y, n_train, 1 if quick else n_splits), {"accuracy": accuracy_score},
            options=replace(options, name=f"001_table3_{name}"), notes=SCENE_NOTES, compare=PAIRS,
        )  # fmt: skip


def texts(options: Options) -> None:
    for name, task in TEXTS.items():
        data = task.fetch()
        X, y = data.data, data.target
        if name == "movie_reviews":
            folds = range(1 if options.quick else N_SPLITS)
            splits = [
                (np.flatnonzero(data.folds != f), np.flatnonzero(data.folds == f)) for f in folds
            ]
        else:
            share = float(np.mean(data.is_train))
            shuffle = StratifiedShuffleSplit(
                1 if options.quick else N_SPLITS, train_size=share, random_state=0
            )
            splits = list(shuffle.split(y, y))
        if options.quick:
            splits = [(train[::10], test[::10]) for train, test in splits]
        quick = options.quick

        def all_words(estimator, least=task.min_documents):
            return rows_of.Seeing(rows_of.CommonWords(min_documents=least), estimator)

        def words_once(estimator, least=task.min_documents):
            view = make_pipeline(rows_of.CommonWords(min_documents=least), Binarizer())
            return rows_of.Seeing(view, estimator)

        words, said = task.words()

        def few_words(estimator, words=words):
            return rows_of.Seeing(words, estimator)

        lines = [
            Row("tf-idf SVM", lambda seed, wrap=all_words: wrap(rows_of.tfidf_svm())),
            Row("histogram SVM", lambda seed, wrap=all_words: wrap(rows_of.histogram_svm())),
            Row(
                "LDA + SVM",
                lambda seed, wrap=words_once, k=task.n_topics, quick=quick: wrap(
                    rows_of.lda_svm(k, seed, quick)
                ),
            ),
            *topic_lines(task.n_topics, quick, all_words),
            *score_lines(task.scored_topics, quick, few_words, task.scaling),
        ]
        run_table(
            f"001 Table 3, texts: {task.title}", lines, X, y, splits, {"accuracy": accuracy_score},
            options=replace(options, name=f"001_table3_{name}"),
            notes=TEXT_NOTES.format(topics=task.scored_topics, words=said),
            compare=[
                *PAIRS, ("MedLDA", "tf-idf SVM"), ("MedLDA, topics found", "tf-idf SVM"),
                ("MedLDA", "random topics, tuned"),
            ],
        )  # fmt: skip


def run(options: Options) -> None:
    scenes(options)
    texts(options)
