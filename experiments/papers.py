"""What the papers report, beside which `experiments.comparison` puts what was measured here.

Figures only, by the names of our rows. A table says whether they may be compared: on the same data,
or on data drawn by the same recipe, a difference means something; on a stand-in it does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """A table on one data set.

    Parameters
    ----------
    page : str
        Name of the result, ``experiments/results/<page>.json`` or ``.md``; "" if it cannot be run.
    title : str
        The data.
    reported : mapping of row to mapping of column to figure
        Of the paper, in %. Columns are our metrics, or "fit s".
    alike : bool
        Whether the figures may be compared.
    why : str
        What is different about the data, or why there are none.
    ours : str
        The row that stands for the paper's method in a summary; "" leaves the data out of it.
    """

    page: str
    title: str
    reported: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    alike: bool = False
    why: str = ""
    ours: str = ""


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper, and the experiment that makes ours."""

    name: str
    experiment: str
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Paper:
    """A paper: its number in `experiments`, how it is cited, and its title."""

    key: str
    short: str
    title: str
    tables: tuple[Table, ...]


def _by_row(columns: str, text: str) -> dict[str, dict[str, str]]:
    """Lines of a row's name and its figures, "|" between them, "-" where there is none.

    Examples
    --------
    >>> _by_row("accuracy | fit s", "SVM | 61.9 ± 13.6 | 3\\nMNL | 60 | -")
    {'SVM': {'accuracy': '61.9 ± 13.6', 'fit s': '3'}, 'MNL': {'accuracy': '60'}}
    """
    names = [name.strip() for name in columns.split("|")]
    rows = {}
    for line in text.strip().splitlines():
        row, *figures = (part.strip() for part in line.split("|"))
        rows[row] = {name: figure for name, figure in zip(names, figures) if figure != "-"}
    return rows


_PARKINSONS = _by_row(
    "accuracy | macro F1",
    """
    MNL | 85.6 ± 2.2 | 79.1 ± 2.8
    linear SVM | 85.3 ± 0.4 | 78.9 ± 1.5
    RBF SVM | 87.2 ± 2.7 | 79.9 ± 3.2
    dpMNL | 87.7 ± 3.3 | 82.6 ± 2.5
    iSVM | 88.0 ± 1.5 | 83.5 ± 2.8
    GiSVM | 88.9 ± 1.5 | 85.1 ± 1.3
    """,
)
_PROTEIN = _by_row(
    "accuracy | macro F1",
    """
    MNL | 50.1 | 43.5
    linear SVM | 48.3 | 43.2
    RBF SVM | 53.1 | 49.5
    dpMNL | 56.3 | 49.5
    iSVM | 54.3 | 49.4
    GiSVM | 55.8 | 50.1
    """,
)
_SWITCHING = {
    "positive": """
    linear SVM | 61.9 ± 13.6 | 3
    iM2EDM | 67.2 ± 14.2 | 164
    M2iHMM-2 | 69.4 ± 12.6 | 45
    GiSVM | 79.6 ± 16.6 | 24
    M2iHMM-1 | 91.2 ± 5.9 | 53
    """,
    "negative": """
    linear SVM | 64.0 ± 14.5 | 3
    iM2EDM | 67.6 ± 13.9 | 164
    M2iHMM-2 | 70.4 ± 12.3 | 45
    GiSVM | 79.1 ± 15.3 | 24
    M2iHMM-1 | 85.0 ± 9.9 | 53
    """,
    "vague": """
    linear SVM | 63.2 ± 14.5 | 3
    iM2EDM | 66.7 ± 14.8 | 164
    M2iHMM-2 | 70.2 ± 12.8 | 45
    GiSVM | 82.2 ± 13.9 | 24
    M2iHMM-1 | 84.8 ± 10.6 | 53
    """,
}
_HUDAACT = _by_row(
    "accuracy | macro F1 | fit s",
    """
    linear SVM | 47.9 ± 5.8 | 45.2 ± 6.0 | 360
    GiSVM | 48.6 ± 4.5 | 46.1 ± 7.0 | 16200
    iM2EDM | 51.2 ± 5.0 | 48.2 ± 5.2 | 21960
    M2iHMM-1 | 52.0 ± 5.3 | 48.5 ± 6.1 | 32040
    M2iHMM-2 | 54.0 ± 5.5 | 51.1 ± 6.8 | 8280
    """,
)


def _sequences(page: str, title: str, figures: str, alike: bool = False, why: str = "") -> Result:
    rows = ("LM-HMM", "FKL", "FS", "FESS", "SS", "MSS")
    reported = {row: {"accuracy": figure} for row, figure in zip(rows, figures.split())}
    return Result(f"001_table2_{page}", title, reported, alike, why, ours="our best pipeline")


def _scenes(page: str, title: str, figures: str, why: str) -> Result:
    rows = ("spatial pyramid SVM (PHOW)", "MedLDA", "FS", "FESS", "SS", "MSS")
    reported = {row: {"accuracy": figure} for row, figure in zip(rows, figures.split())}
    return Result(page, title, reported, why=why, ours="MSS" if page else "")


_OWN_FEATURES = "The same photographs; visual words of our own."
_NEWS = _by_row(
    "error | fit s",
    """
    linear SVM | 32.8 | -
    neural net | 28.2 | -
    RBM, K = 1000 | 24.9 | -
    DRBM | 27.6 | -
    RBM + net | 26.8 | -
    EFH + SVM, K = 50 | 37.5 | 3876
    EFH + SVM, K = 200 | 30.5 | 20406
    EFH + SVM, K = 700 | 27.3 | 42066
    MMH, K = 50 | 26.4 | 8560
    MMH, K = 200 | 25.0 | 34524
    MMH, K = 700 | 25.5 | 68306
    iEFH + SVM | 28.3 ± 0.2 | 19825
    iMMH | 25.2 ± 0.3 | 86512
    """,
)
_STAND_IN = "A stand-in: TRECVID 2003 and the Flickr animals could not be had."

PAPERS = (
    Paper(
        "000",
        "Zhang et al. 2014",
        "Zhang, Zhu & Zhang, Max-Margin Infinite Hidden Markov Models, ICML 2014",
        (
            Table(
                "Table 1",
                "000_table1",
                (
                    Result(
                        "000_table1_parkinsons",
                        "Parkinsons, random folds",
                        _PARKINSONS,
                        True,
                        "The same rows; folds drawn anew.",
                        "GiSVM",
                    ),
                    Result(
                        "000_table1_by_subject",
                        "Parkinsons, by subject",
                        why="Not in the paper: no recording of a test subject is trained on.",
                        ours="GiSVM",
                    ),
                    Result(
                        "000_table1_protein",
                        "27 protein folds, the published split",
                        _PROTEIN,
                        why="The features are recomputed from the sequences.",
                        ours="GiSVM",
                    ),
                    Result(
                        "000_table1_protein_halves",
                        "27 protein folds, random halves",
                        why="Not in the paper.",
                        ours="GiSVM",
                    ),
                ),
            ),
            Table(
                "Table 2",
                "000_table2",
                tuple(
                    Result(
                        f"000_table2_{kind}",
                        f"switching labels, {kind} transitions",
                        _by_row("accuracy | fit s", lines),
                        True,
                        "Ten data sets drawn anew by the paper's recipe; they differ much.",
                        "M2iHMM-1",
                    )
                    for kind, lines in _SWITCHING.items()
                ),
            ),
            Table("Figure 2", "000_figure2", (Result("000_figure2", "states along a signal"),)),
            Table(
                "Table 3",
                "000_table3",
                (
                    Result("", "RGBD-HuDaAct", _HUDAACT, why="The data could not be had."),
                    *(
                        Result(
                            f"000_table3_{page}",
                            title,
                            why="A stand-in for RGBD-HuDaAct.",
                            ours="M2iHMM-1",
                        )
                        for page, title in (
                            ("utkinect", "UTKinect, frame by frame"),
                            ("gesture_phase", "gesture phases"),
                            ("msr_action3d", "MSR Action3D"),
                        )
                    ),
                ),
            ),
        ),
    ),
    Paper(
        "001",
        "Li et al. 2013",
        "Li, Wang, Liu & Lee, Learning Discriminative Sufficient Statistics Score Space for "
        "Classification, ECML PKDD 2013",
        (
            Table(
                "Table 2",
                "001_table2",
                (
                    _sequences(
                        "characters",
                        "character trajectories",
                        "94.26 95.71 95.20 93.99 93.55 95.62",
                        why="The labelled half only.",
                    ),
                    _sequences(
                        "hill_valley",
                        "Hill-Valley",
                        "58.71 54.00 63.60 55.41 53.39 65.68",
                        why="Rows are centred and scaled, which makes the problem easy.",
                    ),
                    _sequences(
                        "hill_valley_raw",
                        "Hill-Valley, raw symbols",
                        "58.71 54.00 63.60 55.41 53.39 65.68",
                        True,
                        "The same rows; halves and symbols drawn anew.",
                    ),
                    _sequences(
                        "japanese_vowels",
                        "Japanese vowels",
                        "92.26 96.16 88.93 90.63 91.26 93.40",
                        True,
                        "The same sequences; halves and symbols drawn anew.",
                    ),
                    _sequences(
                        "libras",
                        "Libras, hand movements",
                        "78.10 75.22 79.11 79.89 78.00 82.22",
                        True,
                        "The same sequences; halves and symbols drawn anew.",
                    ),
                    _sequences(
                        "promoters",
                        "promoters",
                        "67.92 69.81 63.38 65.77 65.35 74.23",
                        True,
                        "The same sequences; halves drawn anew.",
                    ),
                    _sequences(
                        "splice_junction",
                        "splice junctions",
                        "58.64 57.05 58.71 58.78 58.86 65.37",
                        True,
                        "The same sequences; halves drawn anew.",
                    ),
                    _sequences(
                        "kinases",
                        "protein kinases",
                        "72.18 74.15 73.24 72.65 73.53 78.53",
                        why="A stand-in: other sequences, and easier.",
                    ),
                    _sequences(
                        "scope40",
                        "SCOPe classes",
                        "64.75 60.96 64.17 64.12 64.24 64.64",
                        why="A stand-in: another release, 2,000 of its domains.",
                    ),
                    _sequences(
                        "osuleaf",
                        "leaf contours",
                        "77.64 79.83 79.63 80.26 79.58 83.36",
                        why="A stand-in for contours of chicken pieces, whose figures these are.",
                    ),
                ),
            ),
            Table(
                "Figure 1",
                "001_figure1",
                tuple(
                    Result(f"001_figure1_{page}_{part}", f"{title}, {what}")
                    for page, title in (("promoters", "promoters"), ("osuleaf", "leaf contours"))
                    for part, what in (
                        ("states", "by number of states"),
                        *((f"share{n}", f"{n} % for training") for n in (10, 20, 40, 60, 80)),
                    )
                ),
            ),
            Table(
                "Table 3",
                "001_table3",
                (
                    _scenes(
                        "001_table3_ot8_5percent",
                        "8 scenes, 5 % for training",
                        "87.21 89.50 86.42 88.89 88.25 90.36",
                        _OWN_FEATURES,
                    ),
                    Result(
                        "001_table3_ot8_100",
                        "8 scenes, 100 of each class",
                        why="Not in the paper.",
                        ours="MSS",
                    ),
                    _scenes(
                        "001_table3_scene15_100",
                        "15 scenes, 100 of each class",
                        "79.83 81.05 78.68 81.92 79.25 83.64",
                        _OWN_FEATURES,
                    ),
                    _scenes(
                        "",
                        "UIUC-Sports",
                        "80.04 82.79 79.91 82.18 80.34 84.67",
                        "The data could not be had.",
                    ),
                    *(
                        Result(f"001_table3_{page}", title, why="Not in the paper.", ours="MedLDA")
                        for page, title in (
                            ("webkb4", "WebKB, 4 classes"),
                            ("ohsumed23", "OHSUMED, 23 classes"),
                            ("movie_reviews", "movie reviews"),
                        )
                    ),
                ),
            ),
            Table(
                "Figure 2",
                "001_figure2",
                tuple(
                    Result(f"001_figure2_{part}", f"city against rest, {what}")
                    for part, what in (
                        ("topics", "by number of topics"),
                        *((f"share{n}", f"{n} % for training") for n in (5, 10, 20, 40, 60)),
                    )
                ),
            ),
        ),
    ),
    Paper(
        "002",
        "Chen et al. 2014",
        "Chen, Zhu, Sun & Zhang, Learning Harmonium Models with Infinite Latent Features, "
        "IEEE TNNLS 2014",
        (
            Table(
                "Table II",
                "002_table2",
                (
                    Result(
                        "002_table2",
                        "20 Newsgroups",
                        _NEWS,
                        True,
                        "The same split by date; our own choice of 5,000 words.",
                        "iMMH",
                    ),
                ),
            ),
            Table(
                "Table III",
                "002_table3",
                (Result("002_table3", "what features of 20 Newsgroups are about"),),
            ),
            Table(
                "Figures 3 and 4",
                "002_figures3_4",
                tuple(
                    Result(
                        f"002_figures3_4_{page}",
                        title,
                        why=_STAND_IN,
                        ours="iMMH, binary, both",
                    )
                    for page, title in (
                        ("scenes", "8 outdoor scenes, two views"),
                        ("embryos", "BDGP embryos, two views"),
                        ("numerals", "mfeat numerals, two views"),
                    )
                )
                + tuple(
                    Result(f"002_figures3_4_{page}_sizes", f"{page}, finite models by size")
                    for page in ("scenes", "embryos", "numerals")
                ),
            ),
            Table(
                "Figures 5 to 7", "002_figures5_7", (Result("002_figures5_7", "what features are"),)
            ),
            Table(
                "Figure 8 and Table I",
                "002_figure8",
                (
                    Result(
                        "",
                        "TRECVID 2003 and Flickr animals",
                        _by_row(
                            "fit s | of it SVM, s",
                            """
                            iMMH, TRECVID | 1387 | 5.9
                            MMH, TRECVID | 1100 | 18.5
                            iMMH, Flickr | 3745 | 363
                            MMH, Flickr | 2516 | 711
                            """,
                        ),
                        why="The data could not be had.",
                    ),
                    Result("002_figure8", "training time on the stand-ins"),
                ),
            ),
            Table(
                "Figures 9 and 10",
                "002_figures9_10",
                tuple(
                    Result(f"002_figures9_10_{page}", f"{page}: sensitivity to C, alpha and cost")
                    for page in ("scenes", "embryos", "numerals")
                ),
            ),
        ),
    ),
)

# Pages that are of no paper.
OWN = (
    Result(
        "000_ocr",
        "OCR letters, trained on one fold",
        ours="M2iHMM-1, a state for each letter to start with",
    ),
    Result("000_action_trials", "trials on MSR Action3D, training subjects only"),
    Result("000_pooling_random", "pooling of classifiers, random folds"),
    Result("000_pooling_by_subject", "pooling of classifiers, by subject"),
    Result("000_beam", "what helps the chains of M2iHMM-1"),
    Result("000_beam_states", "width of the beam"),
    *(
        Result(f"002_choices_{page}", f"what iMMH asks for, inside the training part: {page}")
        for page in ("news", "scenes", "embryos", "numerals")
    ),
    Result("001_margin", "is MSS ahead of SS, on the halves of Table 2"),
    Result("001_rounds", "where a margin has something to learn, whole sequences"),
    Result("000_scaling", "an infinite HMM on a cluster: measured on two workers, predicted on"),
)

# Results of code that has changed since: not shown until they are run again, at another commit.
OUTDATED: dict[str, str] = {}

# Rows that are other software, or simple methods a user would try first.
PEERS = frozenset(
    {
        "MNL", "linear SVM", "RBF SVM", "random forest", "gradient boosting",
        "1-nearest neighbour", "linear-chain CRF", "linear SVM, single letters",
        "RBF SVM, single letters", "one-hot RBF SVM", "k-mer SVM", "k-mer RBF SVM", "MiniRocket",
        "RBF SVM on frames", "histogram SVM", "chi-squared SVM", "spatial pyramid SVM (PHOW)",
        "tf-idf SVM",
        "neural net", "RBM + SVM", "RBM + net", "RBM, K = 1000", "linear SVM, both",
    }
)  # fmt: skip
PEER_PREFIXES = ("linear SVM",)
BOUNDS = frozenset({"optimum"})  # what no method can pass
