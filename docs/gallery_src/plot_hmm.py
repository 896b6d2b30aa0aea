"""
States along a recording, and a rule in each
============================================

A signal with three hidden states that last. In each of them the label says on which side of the
state's mean the signal lies; which side is label 1 depends on the state. Neither the states nor
their number were shown to the model.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas
from sklearn.metrics import adjusted_rand_score, confusion_matrix
from sklearn.svm import LinearSVC

from regbayes.datasets import make_switching_labels
from regbayes.hmm import MaxMarginInfiniteHMM
from regbayes.plot import (
    plot_component_counts,
    plot_confusion,
    plot_signal,
    plot_states,
    plot_trace,
    plot_transitions,
)

data = make_switching_labels((500, 500), "sticky", means=[2.5, 1.5, -1.5], random_state=5)
(X, X_new), (y, y_new), (states, states_new) = data.data, data.target, data.states
model = MaxMarginInfiniteHMM(random_state=0).fit([X], [y])
line = LinearSVC(random_state=0).fit(X, y)
answers = {
    "linear SVM, step by step": line.predict(X_new),
    "infinite HMM": model.predict(X_new),
    "infinite HMM, the past only": model.predict(X_new, causal=True),
}
shares = {name: np.mean(answer == y_new) for name, answer in answers.items()}
pandas.Series(shares, name="right in a new recording").round(2).to_frame()

# %%
# The signal, and under it the true states and those found in training. Two of the means are one
# standard deviation apart, so no step tells them apart by itself: how long states last does, and
# the labels do. Numbers of states mean nothing, so those that were found are first given the
# number of the true state that they share most steps with.

found = model.states_[0]
names = confusion_matrix(states, found)[:, : found.max() + 1].argmax(axis=0)

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(11, 4.5), sharex=True, height_ratios=(3, 1), layout="constrained"
)
for label, color in ((0, "tab:orange"), (1, "tab:blue")):
    steps = np.flatnonzero(y == label)
    top.scatter(steps, X[steps, 0], s=8, color=color, label=f"label {label}")
top.legend(loc="upper right")
top.set_ylabel("signal")
plot_states({"truth": states, "found": names[found]}, bottom)
top.set_title(f"adjusted Rand index {adjusted_rand_score(states, found):.2f}")

# %%
# In a new recording there are no labels. The path is found from the signal alone, and is harder
# to tell.

path = model.decode([X_new])[0]
figure, ax = plt.subplots(figsize=(11, 4), layout="constrained")
plot_signal(X_new, {"truth": states_new, "found": names[path]}, ax)
ax.set_title(f"adjusted Rand index {adjusted_rand_score(states_new, path):.2f}")

# %%
# Which label is taken for the other in the new recording, as counts of steps.

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
plot_confusion(y_new, answers["infinite HMM"], ax)

# %%
# What follows what, and how many states are there? The bars count all draws; a state or two more
# than needed, with a handful of steps, is common.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot_transitions(model.transitions_, left)
plot_component_counts(model.trace_, right)

# %%
# Chains begin with ten clusters and lose states one by one. All sweeps are drawn here, from the
# first on. By the end the two chains should overlap; if they do not, raise `burn_in`.

watched = MaxMarginInfiniteHMM(n_draws=400, burn_in=0, random_state=0).fit([X], [y])
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3), layout="constrained")
plot_trace(watched.trace_, "n_states", left)
plot_trace(watched.trace_, "log_joint", right)
