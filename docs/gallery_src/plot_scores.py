"""
What a classifier of whole sequences looks at
=============================================

A hidden Markov model turns a sequence into numbers: how often each state is visited, what it
shows there, which state comes next, and in which part of the sequence. A linear classifier has a
weight for each of them. The weights say where it looks, and what for.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from regbayes.data import SequenceQuantizer
from regbayes.hmm import CategoricalHMM
from regbayes.plot import plot_states
from regbayes.scores import SufficientStatisticsScore

rng = np.random.default_rng(0)

# %%
# Random letters, and in half of the sequences a motif, TATAAT, after seven tenths of the length.
# It moves by a letter or two, and one letter in ten is another. Nobody tells the model.


def stretch(kind):
    letters = rng.choice(list("acgt"), size=rng.integers(50, 61))
    if kind == "promoter":
        at = int(0.7 * len(letters)) + rng.integers(-2, 3)
        letters[at : at + 6] = np.where(rng.random(6) < 0.9, list("tataat"), letters[at : at + 6])
    return letters


y = np.tile(["other", "promoter"], 200)
X = [stretch(kind) for kind in y]
X, X_new, y, y_new = X[:200], X[200:], y[:200], y[200:]
# A state for each letter to begin with: transitions are then pairs of letters.
pairs = CategoricalHMM(4, init="symbols", n_iter=5)
share = {}
for segments in (1, 10):
    scores = SufficientStatisticsScore(pairs, per_class=False, segments=segments)
    model = make_pipeline(scores, LinearSVC(C=0.01, random_state=0)).fit(X, y)
    share[segments] = model.score(X_new, y_new)
pandas.Series(share, name="right among new sequences").round(2).rename_axis("segments").to_frame()

# %%
# Ten segments, so each feature belongs to a tenth of the sequence. On the left, the weights of
# letters and of pairs of letters, red for "promoter", blue against it. On the right, what each
# tenth adds to the score of a promoter compared with other sequences, on average.

names, weights = model[0].get_feature_names_out(), model[-1].coef_[0]
place = np.array([int(name.split("[")[1].split("]")[0]) for name in names])
what = np.array([name.split("|")[1] for name in names])
letters = "acgt"
picked = [f"{i}:{a}" for i, a in enumerate(letters)]
picked += [f"{i}>{j}" for i in range(4) for j in range(4)]
table = np.zeros((len(picked), 10))
for row, name in enumerate(picked):
    table[row, place[what == name]] = weights[what == name]

features = model[0].transform(X_new)
promoter = y_new == "promoter"
gap = weights * (features[promoter].mean(axis=0) - features[~promoter].mean(axis=0))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
most = np.abs(table).max()
left.imshow(table, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
left.set_yticks(range(len(picked)), [*letters, *(i + j for i in letters for j in letters)])
left.set_xticks(range(10))
left.set(xlabel="tenth of the sequence", title="weights")
right.bar(range(10), np.bincount(place, gap, minlength=10))
right.axvspan(6.1, 7.9, color="tab:orange", alpha=0.3, zorder=0, label="where the motif is")
right.set_xticks(range(10))
right.set(xlabel="tenth of the sequence", title="what tells promoters apart")
right.legend()

# %%
# A hand draws a circle, turning left or right, or a wave: anywhere, at any size, from any point
# on. Velocities are cut into eight symbols, that is directions. Circles of both kinds have all
# directions equally often, and only their order tells which is which: one state, which counts
# symbols, cannot see it.


def gesture(kind):
    n_steps = rng.integers(25, 46)
    time = np.linspace(0, 2 * np.pi, n_steps) + rng.uniform(0, 2 * np.pi)
    if kind == "wave":
        path = np.column_stack([time / 3, np.sin(2 * time)])
    else:
        path = np.column_stack([np.cos(time), np.sin(time) * (1 if kind == "left" else -1)])
    noise = rng.normal(scale=0.05, size=path.shape)
    return rng.uniform(1, 4) * (path + noise) + rng.uniform(-9, 9, size=2)


kinds = np.tile(["left", "right", "wave"], 50)
paths = [gesture(kind) for kind in kinds]
paths, paths_new, kinds, kinds_new = paths[:60], paths[60:], kinds[:60], kinds[60:]
directions = SequenceQuantizer(8, use="velocities", scale=True, random_state=0)
share = {}
for n_states in (1, 4):
    hmm = CategoricalHMM(n_states, random_state=0)
    scores = SufficientStatisticsScore(hmm, per_class=False)
    model = make_pipeline(directions, scores, LinearSVC(C=0.1, random_state=0)).fit(paths, kinds)
    share[n_states] = model.score(paths_new, kinds_new)
pandas.Series(share, name="right among new gestures").round(2).rename_axis("states").to_frame()

# %%
# The four states found without labels, along one gesture of each kind, and the weights of the
# moves from one state to another. The moves that speak for "left" speak against "right". The
# classifier's law was learnt from all gestures together, so fitting the model again, with the same
# seed, gives the same states.

symbols = model[0].transform(paths)
states = hmm.fit(symbols).decode(symbols)
names, weights = list(model[1].get_feature_names_out()), model[-1].coef_
moves = np.array([[names.index(f"all|{i}>{j}") for j in range(4)] for i in range(4)])
most = np.abs(weights[:, moves]).max()

figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
for c, kind in enumerate(model.classes_):
    top, bottom = axes[:, c]
    path, colors = paths[c], states[c]
    top.plot(*path.T, color="lightgray", zorder=0)
    top.quiver(*path[:-1].T, *np.diff(path, axis=0).T, colors[1:], cmap="tab10", clim=(0, 9),
               angles="xy", scale_units="xy", scale=1, width=0.008)  # fmt: skip
    top.set(title=kind, aspect="equal")
    bottom.imshow(weights[c][moves], cmap="RdBu_r", vmin=-most, vmax=most)
    bottom.set(xlabel="to state", ylabel="from state")
    bottom.set_xticks(range(4))
    bottom.set_yticks(range(4))

# %%
# The states along the same three gestures, step by step.

figure, ax = plt.subplots(figsize=(11, 2), layout="constrained")
shortest = min(map(len, states[:3]))
plot_states({kind: found[:shortest] for kind, found in zip(kinds[:3], states)}, ax)
