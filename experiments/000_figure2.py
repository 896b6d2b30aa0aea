"""Figure 2: states at 25, 50 and 100 sweeps under the signal, and traces of convergence."""

from __future__ import annotations

import json

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments import environment
from experiments.harness import Options
from regbayes.datasets import make_switching_labels
from regbayes.datasets._remote import write_atomically
from regbayes.hmm import MaxMarginInfiniteHMM
from regbayes.plot import plot_states, plot_trace

SWEEPS = (25, 50, 100)


def matched(states, truth):
    """States renamed so that they agree with the truth as often as names can make them."""
    n = int(max(states.max(), truth.max())) + 1
    together = np.zeros((n, n))
    np.add.at(together, (states, truth), 1)
    old, new = linear_sum_assignment(-together)
    names = np.empty(n, dtype=int)
    names[old] = new
    return names[states]


def run(options: Options) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n_sweeps = 100 if options.quick else 400
    data = make_switching_labels((500,), "sticky", means=[2.5, 1.5, -1.5], random_state=0)
    X, y, truth = data.data, data.target, np.asarray(data.states[0])
    # The paper's settings: ten random states to start with, alpha = gamma = 2, c = ell = 1.
    setting = {"alpha": 2.0, "gamma": 2.0, "init": "random", "burn_in": 0, "n_draws": n_sweeps}
    models = {
        "M2iHMM-1": MaxMarginInfiniteHMM(**setting, n_chains=2, random_state=0),
        "M2iHMM-2": MaxMarginInfiniteHMM(None, **setting, n_chains=2, random_state=0),
    }
    strips, agreement = {"truth": truth}, {}
    figure, axes = plt.subplots(
        3, 2, figsize=(11, 8), height_ratios=[1.6, 1.2, 1], constrained_layout=True
    )
    for column, (name, model) in enumerate(models.items()):
        model.fit(X, y)
        for sweep in SWEEPS:
            states = matched(model.trace_.chains[0][sweep - 1]["z"].astype(int), truth)
            strips[f"{name}, sweep {sweep}"] = states
            agreement[f"{name}, sweep {sweep}"] = float(np.mean(states == truth))
        plot_trace(model.trace_, "n_states", ax=axes[1, column]).set(title=name)
        plot_trace(model.trace_, "log_joint", ax=axes[2, column])
    signal = axes[0, 0]
    for label in (0, 1):
        at = np.flatnonzero(y[0] == label)
        signal.plot(at, X[0][at, 0], "o+"[label], ms=3, label=f"label {label}")
    signal.set(xlabel="step", ylabel="x", xlim=(0, len(truth)))
    signal.legend(loc="lower right", fontsize=7)
    plot_states(strips, ax=axes[0, 1])
    options.results.mkdir(exist_ok=True)
    figure.savefig(options.results / f"{options.page}.png", dpi=110)
    plt.close(figure)

    lines = ["| states of | agree with the truth, % |", "| --- | --- |"]
    lines += [f"| {name} | {100 * share:.1f} |" for name, share in agreement.items()]
    last = {name: int(np.median(m.trace_["n_states"][:, -50:])) for name, m in models.items()}
    page = [
        "# 000 Figure 2: what the states are after 25, 50 and 100 sweeps",
        f"![Signal, strips of states, traces]({options.page}.png)",
        "\n".join(lines),
        "States are matched to the true ones by the best assignment of names; two chains are drawn "
        f"in the traces. Median number of states in the last 50 sweeps: {last}. The paper's "
        "matrix 0.01 E + 0.98 I has rows that sum to 1.01 and is normalised here.",
        environment.as_markdown(environment.describe(options.command)),
    ]
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page))
    write_atomically(
        options.results / f"{options.page}.json", json.dumps(agreement, indent=1) + "\n"
    )
    print("\n".join(lines))
