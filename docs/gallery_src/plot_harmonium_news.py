"""
Read a news collection through its features
===========================================

An infinite max-margin harmonium on posts of 20 newsgroups: which features it found, what they are
about, and which groups they speak for. Where the posts are not at hand, a made-up collection takes
their place: eight groups in which words of four subjects and two moods mix.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas

from regbayes.harmonium import InfiniteMaxMarginHarmonium

rng = np.random.default_rng(0)


def made_up(n=800):
    subjects, moods = ["space", "guns", "hockey", "autos"], ["calm", "angry"]
    words = [f"{name}{i}" for name in (*subjects, *moods) for i in range(8)]
    subject, mood = rng.integers(4, size=n), rng.integers(2, size=n)
    rate = np.full((n, len(words)), 0.04)
    for k in range(4):
        rate[subject == k, 8 * k : 8 * k + 8] = 0.35
    for k in range(2):
        rate[mood == k, 32 + 8 * k : 40 + 8 * k] = 0.3
    groups = np.array([f"{s}.{m}" for s in subjects for m in moods])[2 * subject + mood]
    return (rng.random(rate.shape) < rate).astype(np.float32), groups, np.array(words)


def posts(n_words=1500, per_group=120):
    from regbayes.datasets import fetch_newsgroup_counts

    news = fetch_newsgroup_counts(subset="train", download_if_missing=False)
    top = np.argsort(-np.asarray(news.data.sum(axis=0), dtype=np.int64).ravel())[
        100 : n_words + 100
    ]
    y = np.asarray(news.target)
    some = np.concatenate([np.flatnonzero(y == group)[:per_group] for group in np.unique(y)])
    X = (news.data[some][:, top] > 0).astype(np.float32)
    return X, y[some], np.asarray(news.feature_names)[top]


there = Path(os.environ.get("REGBAYES_DATA", "nowhere"), "20newsgroups").is_dir()
X, groups, words = posts() if there else made_up()

# %%
# The truncation allows 60 features. Those that no post needs are switched off.

model = InfiniteMaxMarginHarmonium(
    60, alpha=1.0, cost=5.0, visible="bernoulli", input_dropout=0.3, random_state=0
).fit(X, groups)
f"{model.n_features_} features in use"

# %%
# How active each feature is in each group, on average: the features whose groups differ most.

order = np.argsort(-model.class_activations_.std(axis=0))[:20]
figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
picture = ax.imshow(model.class_activations_[:, order], aspect="auto", cmap="Greys")
ax.set_xticks(range(len(order)), [f"F{k}" for k in order], rotation=90)
ax.set_yticks(range(len(model.classes_)), model.classes_)
figure.colorbar(picture, label="mean activation")

# %%
# What they are about: the words that turn a feature on, and the group it is strongest in.

top = model.top_inputs(6, words)
pandas.DataFrame(
    {
        "feature": [f"F{k}" for k in order[:10]],
        "words": [", ".join(top[k]) for k in order[:10]],
        "strongest in": [
            model.classes_[model.class_activations_[:, k].argmax()] for k in order[:10]
        ],
    }
).set_index("feature")

# %%
# The objective, by epochs: contrastive divergence and margin together.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(model.objective_)
ax.set(xlabel="epoch", ylabel="objective, 200 of the posts")
