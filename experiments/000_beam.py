"""Width of the beam, prior of the weights and first states of M2iHMM-1 after 200 sweeps."""

from __future__ import annotations

import numpy as np

from experiments import environment, markdown
from experiments.harness import Options, Row, run_table
from experiments.sequences import accuracy
from regbayes.datasets import make_switching_labels
from regbayes.datasets._remote import write_atomically
from regbayes.hmm import MaxMarginInfiniteHMM

# Not those of Table 2: the defaults were settled here.
SEEDS = range(500, 510)
WAYS = {
    "defaults: width 0.01, nu ~ (1, 100), clusters": {},
    "width 1, the papers' beam": {"beam_width": 1.0},
    "width 0.1": {"beam_width": 0.1},
    "width 0.0001": {"beam_width": 0.0001},
    "nu = 1": {"nu": 1.0},
    "nu ~ (1, 0.1)": {"nu": (1.0, 0.1)},
    "random first states": {"init": "random"},
    "a state for each label to start with": {"init": "labels"},
    "one first state": {"n_init_states": 1},
}


SWEEPS = (50, 100, 200, 400)


def surplus_states(options: Options) -> None:
    """How many states are left after so many sweeps, where three are right, by width."""
    n_sets = 1 if options.quick else 10
    lines = []
    for width in (1.0, 0.1, 0.01, 0.0001):
        counts = []
        for seed in SEEDS[:n_sets]:
            data = make_switching_labels((500,), means=[-4, 0, 4], random_state=seed)
            model = MaxMarginInfiniteHMM(
                beam_width=width, n_chains=1, burn_in=0, n_draws=max(SWEEPS), random_state=seed
            ).fit(data.data, data.target)
            counts.append(model.trace_["n_states"][0, np.array(SWEEPS) - 1])
        lines.append([f"{width:g}", *(f"{mean:.1f}" for mean in np.mean(counts, axis=0))])
    page = [
        "# Width of the beam: states left after so many sweeps, where three are right",
        markdown.table(["width", *map(str, SWEEPS)], lines),
        f"Mean over {n_sets} data set(s) of 500 steps, states at -4, 0 and 4, positive "
        "transitions; M2iHMM-1 from ten clusters.",
        environment.as_markdown(environment.describe(options.command)),
    ]
    write_atomically(options.results / f"{options.page}_states.md", "\n\n".join(page))
    print(markdown.table(["width", *map(str, SWEEPS)], lines))


def run(options: Options) -> None:
    surplus_states(options)
    sets = [
        make_switching_labels((500, 5000), transition, random_state=seed)
        for transition in ("positive", "negative", "vague")
        for seed in SEEDS[: 1 if options.quick else None]
    ]
    sampler = {"n_chains": 1, "burn_in": 10 if options.quick else 100}
    run_table(
        "M2iHMM-1 on switching labels: what helps its chains, after 200 sweeps",
        [
            Row(
                name,
                lambda seed, way=way: MaxMarginInfiniteHMM(random_state=seed, **sampler, **way),
            )
            for name, way in WAYS.items()
        ],
        [x for data in sets for x in data.data],
        [y for data in sets for y in data.target],
        [(np.array([2 * i]), np.array([2 * i + 1])) for i in range(len(sets))],
        {"accuracy": accuracy},
        options=options,
        notes="Thirty data sets: ten of each kind of transitions, seeds 500 to 509. One chain, 100 "
        "sweeps thrown away and 100 kept; each row changes one thing. The standard deviation is "
        "that of data sets, which differ much; rows share them.",
    )
