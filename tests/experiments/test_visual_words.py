"""Visual words from images: checked on the thumbnails, if OpenCV and the data are there."""

import numpy as np
import pytest

from experiments import visual_words
from regbayes.datasets import fetch_scene15
from tests.datasets.conftest import real


def test_a_pyramid_keeps_places():
    left = np.zeros((8, 8), dtype=int)
    left[:, :4] = 1
    table = visual_words.pyramid([left, left[:, ::-1]], 2, levels=2).toarray()
    assert table.shape == (2, 2 * (1 + 4))
    np.testing.assert_allclose(table[0, :2], table[1, :2])  # as many of each
    assert not np.allclose(table[0, 2:], table[1, 2:])  # elsewhere
    np.testing.assert_allclose((table**2).sum(axis=1), 0.5 + 0.5)


@real("scene15")
def test_thumbnails_become_words():
    pytest.importorskip("cv2")
    data = fetch_scene15("images", scenes="ot8")
    images = data.data[::100]
    vocabulary = visual_words.fit_vocabulary(images, 20, random_state=0)
    grids = [visual_words.word_grid(image, vocabulary) for image in images]
    assert grids[0].shape == (7, 7)
    table = visual_words.counts(grids, 20)
    assert table.sum() == 49 * len(images)
    again = visual_words.word_grid(images[0], vocabulary)
    np.testing.assert_array_equal(again, grids[0])
    with pytest.raises(ValueError, match="smaller than a patch"):
        visual_words.dense_sift(images[0][:10])
