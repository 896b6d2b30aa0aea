"""From a folder of images to visual words: dense SIFT, then k-means on training images.

    python -m experiments.visual_words FOLDER words.npz [--words 240]

FOLDER has a folder of images for every class. Needs OpenCV (``pip install "regbayes[images]"``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.cluster import MiniBatchKMeans

PATCH, STEP = 16, 8  # pixels
PER_IMAGE = 100  # patches of a training image that the vocabulary is made of


def dense_sift(image: NDArray, patch: int = PATCH, step: int = STEP) -> NDArray:
    """SIFT of upright patches on a grid, as an array (rows, columns, 128)."""
    import cv2

    height, width = image.shape
    if min(height, width) < patch:
        raise ValueError(
            f"an image of {height} x {width} pixels is smaller than a patch of {patch}.\n"
            "To mend it: use larger images or a smaller patch."
        )
    ys = np.arange(patch // 2, height - patch // 2 + 1, step)
    xs = np.arange(patch // 2, width - patch // 2 + 1, step)
    points = [cv2.KeyPoint(float(x), float(y), float(patch), 0.0) for y in ys for x in xs]
    _, found = cv2.SIFT_create().compute(np.ascontiguousarray(image), points)
    return found.reshape(len(ys), len(xs), -1)


def fit_vocabulary(
    images: Sequence[NDArray], n_words: int = 240, random_state: int = 0, **grid: int
) -> MiniBatchKMeans:
    """Clusters of random patches of training images."""
    rng = np.random.default_rng(random_state)
    sample = []
    for image in images:
        patches = dense_sift(image, **grid).reshape(-1, 128)
        sample.append(rng.permutation(patches)[:PER_IMAGE])
    clusters = MiniBatchKMeans(n_words, random_state=random_state, n_init=1, batch_size=10_000)
    return clusters.fit(np.concatenate(sample))


def word_grid(image: NDArray, vocabulary: MiniBatchKMeans, **grid: int) -> NDArray:
    """The words of an image, in their places."""
    patches = dense_sift(image, **grid)
    return vocabulary.predict(patches.reshape(-1, 128)).reshape(patches.shape[:2])


def counts(grids: Sequence[NDArray], n_words: int) -> csr_matrix:
    """Counts of words, for topic models."""
    return csr_matrix(np.array([np.bincount(g.ravel(), minlength=n_words) for g in grids]))


def pyramid(grids: Sequence[NDArray], n_words: int, levels: int = 3) -> csr_matrix:
    """Shares of words in the cells of 1, 2 x 2, 4 x 4... parts (Lazebnik et al. 2006).

    The weights of the levels are those of the pyramid match kernel; square roots of the shares
    stand for its histogram intersection.
    """
    rows = []
    for words in grids:
        parts = []
        for level in range(levels):
            weight = 2.0 ** -(levels - 1 if level == 0 else levels - level)
            for band in np.array_split(words, 2**level, axis=0):
                for cell in np.array_split(band, 2**level, axis=1):
                    share = np.bincount(cell.ravel(), minlength=n_words) / words.size
                    parts.append(np.sqrt(weight * share))
        rows.append(csr_matrix(np.concatenate(parts)))
    return vstack(rows, format="csr")


def main() -> None:
    import cv2

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--words", type=int, default=240)
    given = parser.parse_args()
    files = sorted(path for path in given.folder.glob("*/*") if path.is_file())
    images = [cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in files]
    unread = [str(path) for path, image in zip(files, images) if image is None]
    if unread or not files:
        raise SystemExit(f"no images, or some that OpenCV cannot read: {unread[:3]}")
    vocabulary = fit_vocabulary(images, given.words)
    table = counts([word_grid(image, vocabulary) for image in images], given.words)
    np.savez_compressed(
        given.out, counts=table.toarray(), target=np.array([path.parent.name for path in files])
    )
    print(f"{len(files)} images, {given.words} words: {given.out}")


if __name__ == "__main__":
    main()
