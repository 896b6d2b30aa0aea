"""
Sub-populations and a rule in each
==================================

Three hidden sub-populations, and in each another straight line separates the classes. No line
separates them in the whole table.
"""

import matplotlib.pyplot as plt
import pandas
from sklearn.metrics import adjusted_rand_score
from sklearn.svm import LinearSVC

from regbayes.datasets import make_subpopulations
from regbayes.mixture import GibbsInfiniteSVM
from regbayes.plot import (
    plot_co_assignment,
    plot_component_counts,
    plot_decision_regions,
    plot_trace,
)

table, more = make_subpopulations(300, random_state=0), make_subpopulations(300, random_state=1)
X, y, group = table.data, table.target, table.groups
X_new, y_new, group_new = more.data, more.target, more.groups

# %%
# One line, or as many as the data ask for. The ellipses are the components; `group` was not shown
# to the model.

line = LinearSVC(random_state=0).fit(X, y)
mixture = GibbsInfiniteSVM(nu=5.0, n_draws=80, burn_in=150, random_state=0).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, name, model in ((left, "linear SVM", line), (right, "mixture", mixture)):
    plot_decision_regions(model, X, y, ax)
    ax.set_title(f"{name}, {model.score(X_new, y_new):.0%} of new rows right")

# %%
# How many components? And which rows belong together? Both pictures use all draws.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
plot_component_counts(mixture.trace_, left)
plot_co_assignment(mixture.trace_, right)

# %%
# The chains should overlap, and not drift.

figure, ax = plt.subplots(figsize=(11, 2.5), layout="constrained")
plot_trace(mixture.trace_, "log_joint", ax)

# %%
# The scale of the weights matters. If steep rules are made expensive (a small `nu`) while the
# labels count a lot (a large `C`), the cheapest way to be right may be a component for each class
# of each sub-population. The table shows the adjusted Rand index between the components and the
# truth, and the accuracy, both on new rows.

rows = []
for nu in (1.0, 5.0):
    for C in (0.1, 1.0):
        model = GibbsInfiniteSVM(C, nu=nu, n_draws=80, burn_in=150, random_state=0).fit(X, y)
        found = adjusted_rand_score(group_new, model.predict_component(X_new))
        rows.append((nu, C, model.n_components_, found, model.score(X_new, y_new)))
pandas.DataFrame(rows, columns=["nu", "C", "components", "Rand index", "accuracy"]).round(2)
