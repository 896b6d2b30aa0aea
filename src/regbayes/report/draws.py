"""Sections about the posterior: how many parts there are, and whether the chains agree."""

from __future__ import annotations

import numpy as np

from regbayes.chains import Trace, diagnose, r_hat
from regbayes.plot.prepare import size_shares
from regbayes.report import figures
from regbayes.report.figures import Figure
from regbayes.report.section import MOST, Section, counted, sizes_of
from regbayes.report.subject import Subject


def how_many(subject: Subject) -> Section | None:
    """Posterior of the number of parts."""
    sizes = sizes_of(subject)
    if sizes is None:
        return None
    numbers, shares = size_shares(sizes)
    figure = figures.bars(
        f"Posterior of the number of {subject.part}s.",
        [str(n) for n in numbers],
        shares.tolist(),
        f"{subject.part}s",
        "posterior probability",
    )
    text = [
        "Nobody told the model this number. Bars close to each other mean that the data leave it "
        "open; the page describes a typical draw."
    ]
    title = f"How many {subject.part}s there are"
    return Section("sizes", "How many", title, text, [figure])


def convergence(subject: Subject) -> Section | None:
    """Traces and R-hat of chains, or the objective of an optimisation."""
    diagnosis = _diagnosis(subject)
    if diagnosis is not None:
        quantities, verdict = diagnosis
        trace = subject.model.trace_
        main = [q for q in quantities if q.startswith("n_") or q == "log_joint"]
        drawn = [_trace_lines(trace, name) for name in main or list(quantities)[:2]]
        columns = ["quantity", "R-hat", "effective draws, middle", "effective draws, tails"]
        rows = [[name, *values] for name, values in quantities.items()]
        if rows:
            drawn.append(figures.table("R-hat is 1 when the chains agree.", columns, rows))
        what = "Chains that have settled overlap and do not drift."
        if trace.n_chains == 1:
            what = "One chain by itself cannot show that it has settled; several can."
        of = f"{counted(trace.n_chains, 'chain')} of {counted(trace.n_draws, 'draw')}"
        text = [f"{of}. {what}", verdict]
        return Section("chains", "Chains", "Whether the chains agree", text, drawn)
    objective = np.atleast_1d(getattr(subject.model, "objective_", []))
    if len(objective) < 2:
        return None
    series = {"objective": (np.arange(len(objective)), objective.astype(float))}
    figure = figures.lines("The objective, round by round.", series, "round", "objective")
    text = [chains_in_words(subject)]
    return Section("chains", "Rounds", "How the fit went", [t for t in text if t], [figure])


def _trace_lines(trace: Trace, name: str) -> Figure:
    values = trace[name].astype(float)
    some = np.unique(np.linspace(0, values.shape[1] - 1, MOST["points"]).astype(int))
    series = {f"chain {i}": (some, chain[some]) for i, chain in enumerate(values)}
    return figures.lines(f"{name}, draw by draw.", series, "draw", name)


def _diagnosis(subject: Subject) -> tuple[dict[str, tuple], str] | None:
    """R-hat and effective draws by quantity, and a verdict; without ArviZ only R-hat."""
    trace = getattr(subject.model, "trace_", None)
    if not isinstance(trace, Trace):
        return None
    try:
        found = diagnose(trace)
    except ImportError:
        numbers = {
            name: trace[name].astype(float)
            for name, value in trace.chains[0][0].items()
            if np.ndim(value) == 0
        }
        known = {n: (r_hat(v), None, None) for n, v in numbers.items() if np.ptp(v) > 0}
        return known, 'Effective draws need ArviZ: pip install "regbayes[arviz]".'
    quantities = {n: (q.r_hat, q.ess_bulk, q.ess_tail) for n, q in found.quantities.items()}
    return quantities, found.verdict


def chains_in_words(subject: Subject) -> str:
    diagnosis = _diagnosis(subject)
    if diagnosis is not None:
        return diagnosis[1]
    if hasattr(subject.model, "converged_"):
        done = "settled" if subject.model.converged_ else "stopped before it settled"
        return f"The optimisation {done} after {counted(int(subject.model.n_iter_), 'round')}."
    return ""
