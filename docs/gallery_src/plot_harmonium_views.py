"""
Images with tags
================

Small pictures of a cross, a frame or stripes, and tags that some people gave them. A harmonium
finds features that both share: it names pictures that have no tags, and draws pictures for tags.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas

from regbayes.harmonium import InfiniteMaxMarginHarmonium

rng = np.random.default_rng(0)
SIZE, TAGS = 12, ["cross", "frame", "stripes", "dark", "bright", "noisy"]


def picture(kind):
    image = np.zeros((SIZE, SIZE))
    if kind == 0:
        image[SIZE // 2 - 1 : SIZE // 2 + 1], image[:, SIZE // 2 - 1 : SIZE // 2 + 1] = 1, 1
    elif kind == 1:
        image[2:-2, 2:-2] = 1
        image[4:-4, 4:-4] = 0
    else:
        image[::3] = 1
    return image


kinds, bright = rng.integers(3, size=600), rng.integers(2, size=600)
images = np.stack([picture(kind) for kind in kinds]) * (0.6 + 0.6 * bright)[:, None, None]
images += 0.35 * rng.standard_normal(images.shape)
likely = np.column_stack(
    [*(0.05 + 0.75 * (kinds == k) for k in range(3)), 0.7 - 0.6 * bright, 0.1 + 0.6 * bright,
     np.full(600, 0.2)]
)  # fmt: skip
tags = (rng.random(likely.shape) < likely).astype(float)

figure, axes = plt.subplots(1, 6, figsize=(11, 2.4), layout="constrained")
for ax, image, given in zip(axes, images, tags):
    ax.imshow(image, cmap="gray")
    ax.set_title(", ".join(np.array(TAGS)[given == 1]) or "no tag", fontsize=8)
    ax.set_axis_off()

# %%
# Two views by name. A third of the training pictures has no tags: rows of NaN.

X = {"image": images.reshape(600, -1), "tags": tags.copy()}
X["tags"][:150] = np.nan
train = {name: view[:450] for name, view in X.items()}
model = InfiniteMaxMarginHarmonium(
    40, C=10.0, missing="infer", units="binary", max_iter=100, random_state=0
).fit(train, kinds[:450])
new_images, new_tags = X["image"][450:], X["tags"][450:]
pandas.Series(
    {
        "both views": model.score({"image": new_images, "tags": new_tags}, kinds[450:]),
        "pictures alone": model.score({"image": new_images}, kinds[450:]),
        "tags alone": model.score({"tags": new_tags}, kinds[450:]),
    },
    name="right kinds among new pictures",
).round(3).to_frame()

# %%
# Tags for pictures that have none: how likely each is, as the picture's features have it.

guessed = model.reconstruct({"image": new_images[:6]})["tags"]
figure, axes = plt.subplots(1, 6, figsize=(11, 2.8), layout="constrained")
for ax, image, likely in zip(axes, images[450:], guessed):
    ax.imshow(image, cmap="gray")
    best = np.argsort(-likely)[:2]
    ax.set_title("\n".join(f"{TAGS[i]} {likely[i]:.2f}" for i in best), fontsize=8)
    ax.set_axis_off()

# %%
# And the other way round: the picture that the features of a single tag stand for, less the mean of
# the three.

asked = np.eye(len(TAGS))[:3]
drawn = model.reconstruct({"tags": asked})["image"].reshape(-1, SIZE, SIZE)
drawn -= drawn.mean(axis=0)
far = np.abs(drawn).max()
figure, axes = plt.subplots(1, 3, figsize=(7, 2.8), layout="constrained")
for ax, image, tag in zip(axes, drawn, TAGS):
    shown = ax.imshow(image, cmap="RdBu_r", vmin=-far, vmax=far)
    ax.set_title(tag)
    ax.set_axis_off()
figure.colorbar(shown, ax=axes, label="brighter than the mean")
