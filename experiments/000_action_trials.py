"""What closes the gap to a CRF on MSR Action3D: trials inside the training subjects of Table 3."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

from experiments.harness import Options, Row, run_table
from experiments.sequences import ChainCRF, accuracy, macro_f1, with_neighbours
from regbayes.data import StepTransformer
from regbayes.datasets import fetch_msr_action3d
from regbayes.hmm import MaxMarginInfiniteHMM

table3 = importlib.import_module("experiments.000_table3")
N_COMPONENTS = 20


def rows(quick: bool) -> list[Row]:
    def steps(model):
        return make_pipeline(StepTransformer(table3.prepare(N_COMPONENTS)), model)

    def trial(name, **options):
        settings = {
            "init": "labels", "burn_in": 60, "n_draws": 30, "n_chains": 1,
            "stickiness": (1.0, 1.0), **options,
        }  # fmt: skip
        if quick:
            settings |= {"burn_in": 2, "n_draws": 2}
        return Row(
            f"M2iHMM-1, {name}",
            lambda seed: steps(MaxMarginInfiniteHMM(random_state=seed, **settings)),
        )

    return [
        Row("linear-chain CRF", lambda seed: steps(ChainCRF(c2=3.0))),
        trial("a state a label"),
        trial("C = 10", C=10.0),
        trial("pooled weights", pooling="partial"),
        trial("200 sweeps more", burn_in=260),
        trial("3 states a label", n_label_states=3),
        trial("diagonal covariances, 3 states", emission="diag", n_label_states=3),
        trial("strong stickiness", stickiness=0.99),
    ]


def run(options: Options) -> None:
    data = fetch_msr_action3d()
    train = np.flatnonzero(np.asarray(data.split) == "train")
    X = [with_neighbours(table3.centred(data.data[i]), table3.WINDOW) for i in train]
    y = [data.frame_target[i] for i in train]
    subjects = np.asarray(data.subjects)[train]
    splits = list(GroupKFold(3).split(X, groups=subjects))
    run_table(
        "000 Table 3, trials on MSR Action3D",
        rows(options.quick),
        X,
        y,
        splits[: 1 if options.quick else None],
        {"accuracy": accuracy, "macro F1": macro_f1},
        options=replace(options, name="000_action_trials"),
        notes="The five training subjects of the published split only, in three folds. 90 sweeps "
        "unless the row says otherwise; the CRF's weight decay is that which Table 3 chose.",
    )
