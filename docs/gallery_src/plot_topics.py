"""
What topics say for a label
===========================

Notes about three sports, written by a recipe: every note is about its sport, the weather and the
travel there. Topics of words alone need not care about the sport; topics with a margin do.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas

from regbayes.plot import plot_topic_words
from regbayes.topics import LatentDirichlet, MaxMarginTopics

THEMES = {
    "sailing": "boat sail wind harbour mast anchor",
    "skiing": "slope lift ski pole piste gondola",
    "cycling": "bike wheel saddle climb sprint pedal",
    "weather": "sun rain cloud cold warm storm",
    "travel": "train ticket hotel map luggage station",
    "people": "friend group club team trainer crowd",
}
words = np.array(" ".join(THEMES.values()).split())
rng = np.random.default_rng(0)
themes = np.kron(np.eye(6), np.full(6, 1 / 6))


def write(sport, length=30):
    shares = np.concatenate([np.eye(3)[sport] * 0.25, 0.75 * rng.dirichlet(np.full(3, 0.4))])
    return rng.multinomial(length, 0.9 * shares @ themes + 0.1 / len(words))


kinds = rng.integers(3, size=400)
X = np.array([write(kind) for kind in kinds])
y = np.array(["sailing", "skiing", "cycling"])[kinds]
train, new = slice(0, 250), slice(250, None)

# %%
# Topics of words alone, four of them: three themes that all notes share take most of the room, and
# the fourth topic is what is left of three sports.

plain = LatentDirichlet(4, random_state=0).fit(X[train])
pandas.DataFrame(plain.top_words(6, words))

# %%
# With a margin, every topic takes a side. Topics are coloured by the class that they speak for
# most; their words are those that they have more of than other topics do.

model = MaxMarginTopics(6, random_state=0).fit(X[train], y[train])
top = model.top_words(6, words, distinctive=0.8)
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plot_topic_words(top, model.topic_weights_, model.classes_, ax=ax)
ax.set_title(f"{model.score(X[new], y[new]):.0%} of new notes right")

# %%
# Which topics decide the label of one note? First what it says, then the weights of topics times
# what the note shows of them, more than notes usually do.

note = X[new][:1]
" ".join(np.repeat(words, note[0]))

# %%
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
evidence = model.evidence(note)[0]
plot_topic_words(top, model.topic_weights_, model.classes_, evidence, ax=ax)
ax.set_title(f"labelled {model.predict(note)[0]}, and is about {y[new][0]}")
