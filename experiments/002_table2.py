"""Table II: 20 Newsgroups, harmoniums with and without a margin, finite and infinite."""

from __future__ import annotations

from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.pipeline import make_pipeline

from experiments.harmonium_rows import FeaturesSVM, error, load_news, tuned_svm
from experiments.harness import Options, Row, run_table
from regbayes.harmonium import (
    DiscriminativeRBM,
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
)

N_SEEDS = 5
# Settled with seeds 100 and on, by the last 15 % of each class of the training documents, which lie
# after the others in time as the test documents do (002_choices, decision 016).
ALPHA = 5.0
MARGIN = {"C": 100.0, "cost": 10.0, "dropout": 0.5, "input_dropout": 0.5}
BINARY = {"visible": "bernoulli"}
SIZES = (50, 200, 700)

NOTES = """\
The 5,000 commonest words of the training documents, there or not; the published split by date, so
rows differ by their seeds only. The linear SVM's weight is chosen by three folds, that of
SVMs on EFH by a third of the training documents, among 1e-4, 1e-3 and 1e-2. RBM is that of
scikit-learn, whose units hardly learn from words that are rare; EFH is the same model, learnt by
ours. What the other
rows ask for was settled on training documents, the later ones of each group held out. The paper has
0.328 for an SVM, 0.282 for a neural net, 0.249 for an RBM of 1000 units, 0.276 for DRBM, 0.264,
0.250 and 0.255 for MMH, 0.283 for iEFH + SVM and 0.252 for iMMH in 86,512 seconds; Larochelle and
Bengio 0.238 for their hybrid DRBM.
"""


def rbm(seed):
    return BernoulliRBM(200, learning_rate=0.1, batch_size=100, n_iter=10, random_state=seed)


def net(seed):
    return MLPClassifier((100,), early_stopping=True, random_state=seed)


def svm_on(features):
    """A third of 11,269 documents chooses. With larger weights fits take minutes, and may gain a
    little where units are few."""
    third = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=0)
    return FeaturesSVM(features, weights=(1e-4, 1e-3, 1e-2), folds=third)


def immh(seed, quick=False):
    width = 20 if quick else 200
    return InfiniteMaxMarginHarmonium(width, ALPHA, **MARGIN, **BINARY, random_state=seed)


def rows(quick: bool) -> list[Row]:
    lines = [
        Row("linear SVM", lambda seed: tuned_svm()),
        Row("neural net", net),
        Row("RBM + SVM", lambda seed: FeaturesSVM(rbm(seed), scale=False)),
        Row("RBM + net", lambda seed: make_pipeline(rbm(seed), net(seed))),
        Row("DRBM", lambda seed: DiscriminativeRBM(50, early_stopping=True, random_state=seed)),
        Row(
            "hybrid DRBM",
            lambda seed: DiscriminativeRBM(50, 0.01, early_stopping=True, random_state=seed),
        ),
    ]
    for size in SIZES[:1] if quick else SIZES:
        lines += [
            Row(
                f"EFH + SVM, K = {size}",
                lambda seed, size=size: svm_on(Harmonium(size, **BINARY, random_state=seed)),
            ),
            Row(
                f"MMH, K = {size}",
                lambda seed, size=size: MaxMarginHarmonium(
                    size, **MARGIN, **BINARY, random_state=seed
                ),
            ),
        ]
    return [
        *lines,
        Row(
            "iEFH + SVM",
            lambda seed: svm_on(
                InfiniteHarmonium(20 if quick else 200, ALPHA, **BINARY, random_state=seed)
            ),
        ),
        Row("iMMH", lambda seed: immh(seed, quick)),
    ]


def run(options: Options) -> None:
    news = load_news(300, per_class=10) if options.quick else load_news()
    run_table(
        "002 Table II: 20 Newsgroups",
        rows(options.quick),
        news.X,
        news.y,
        [(news.train, news.test)] * (1 if options.quick else N_SEEDS),
        {"error": error},
        options=options,
        notes=NOTES,
        compare=[("iMMH", row) for row in ("linear SVM", "MMH, K = 200")]
        if not options.quick
        else (),
    )
