"""Table 3: activities and gestures frame by frame, on data that can be had."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from experiments.harness import Options, Row, run_table
from experiments.sequences import ChainCRF, PerStep, accuracy, macro_f1, with_neighbours
from regbayes.data import StepTransformer
from regbayes.datasets import fetch_gesture_phase, fetch_msr_action3d, fetch_utkinect
from regbayes.hmm import MarkovSwitchingMED, MaxMarginInfiniteHMM
from regbayes.mixture import GibbsInfiniteSVM

WINDOW = 5


def prepare(n_components: int):
    return make_pipeline(StandardScaler(), PCA(n_components, random_state=0))


def rows(n_components: int, quick: bool) -> list[Row]:
    """Every line sees the same windows; inner folds are by group too."""
    short = {"n_draws": 2, "burn_in": 2} if quick else {"n_draws": 50, "burn_in": 100}
    inner = GroupKFold(3)

    def chain(model, **grid):
        steps = make_pipeline(StepTransformer(prepare(n_components)), model)
        return GridSearchCV(
            steps, {f"{steps.steps[-1][0]}__{k}": v for k, v in grid.items()}, cv=inner
        )

    def single(model, **grid):
        steps = PerStep(make_pipeline(prepare(n_components), model))
        name = steps.estimator.steps[-1][0]
        return GridSearchCV(
            steps, {f"estimator__{name}__{k}": v for k, v in grid.items()}, cv=inner
        )

    def row(name, make):
        return Row(name, make, pass_groups=True)

    def m2ihmm(seed, **options):
        # Actions last: the data decide by how much.
        fixed = {"n_chains": 1, "stickiness": (1.0, 1.0)}
        return MaxMarginInfiniteHMM(random_state=seed, **short, **fixed, **options)

    c_grid = [0.01, 0.1, 1.0][: 1 if quick else None]
    return [
        row("linear SVM", lambda seed: single(LinearSVC(random_state=seed), C=c_grid)),
        Row(
            "random forest",
            lambda seed: PerStep(RandomForestClassifier(200, random_state=seed)),
        ),
        row(
            "linear-chain CRF",
            lambda seed: chain(ChainCRF(), c2=[0.3, 3.0][: 1 if quick else None]),
        ),
        Row(
            "GiSVM",
            lambda seed: PerStep(
                make_pipeline(
                    prepare(n_components),
                    GibbsInfiniteSVM(random_state=seed, **{**short, "n_chains": 1}),
                )
            ),
        ),
        Row(
            "iM2EDM",
            lambda seed: make_pipeline(
                StepTransformer(prepare(n_components)),
                MarkovSwitchingMED(max_states=10, random_state=seed, max_iter=2 if quick else 20),
            ),
        ),
        row("M2iHMM-1", lambda seed: chain(m2ihmm(seed), init=["kmeans", "labels"])),
        Row(
            "M2iHMM-2",
            lambda seed: make_pipeline(
                StepTransformer(prepare(n_components)), m2ihmm(seed, emission=None)
            ),
        ),
    ]


def centred(frames):
    """Joints about the hip, the first joint."""
    joints = frames.reshape(len(frames), -1, 3)
    return (joints - joints[:, :1]).reshape(len(frames), -1)


def table(options, name, title, X, y, groups, splits, n_components, notes):
    run_table(
        f"000 Table 3: {title}",
        rows(n_components, options.quick),
        [with_neighbours(x, WINDOW) for x in X],
        y,
        splits[: 1 if options.quick else None],
        {"accuracy": accuracy, "macro F1": macro_f1},
        options=replace(options, name=f"000_table3_{name}"),
        groups=groups,
        notes=notes + f" Every row sees {WINDOW} frames on either side; all but the forest see 20 "
        "principal components of them. M2iHMM-1 chooses how its first states are made, the SVM and "
        "the CRF their weight decay; 150 sweeps, iM2EDM 20 rounds. Inner folds leave out whole "
        "groups. RGBD-HuDaAct, the paper's data, cannot "
        "be had; its figures do not compare.",
    )


def run(options: Options) -> None:
    data = fetch_utkinect(whole=True)
    X, subjects = [centred(x) for x in data.data], np.asarray(data.subjects)
    splits = list(GroupKFold(5).split(X, groups=subjects))
    table(
        options, "utkinect", "UTKinect, the action of every frame, folds by subject",
        X, data.target, subjects, splits, 20,
        "20 recordings of ten actions one after another, ten subjects.",
    )  # fmt: skip
    data = fetch_msr_action3d()
    X, subjects = [centred(x) for x in data.data], np.asarray(data.subjects)
    train = np.asarray(data.split) == "train"
    splits = [(np.flatnonzero(train), np.flatnonzero(~train))]
    table(
        options, "msr_action3d", "MSR Action3D, the action of every frame, published subjects",
        X, data.frame_target, subjects, splits, 20,
        "557 recordings of one action each, twenty actions, one published split.",
    )  # fmt: skip
    data = fetch_gesture_phase()
    videos = np.arange(len(data.data))
    splits = [(np.delete(videos, i), videos[i : i + 1]) for i in videos]
    table(
        options, "gesture_phase", "gesture phases, leave one video out",
        data.data, data.target, videos, splits, 20,
        "Seven videos of three people; five phases of a gesture.",
    )  # fmt: skip
