"""The demo runs, shows something, and what it says is true of its own numbers."""

import re

import numpy as np
from matplotlib.image import imread

from regbayes import demo


def test_demo(tmp_path, capsys):
    path = tmp_path / "demo.png"
    demo.main(path, quick=True)
    said = capsys.readouterr().out

    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = imread(path)[:, :, :3]
    assert min(pixels.shape[:2]) > 300
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000  # shades, not an empty frame

    accuracy = {
        name: float(re.search(rf"{name}\s+(\d\.\d+)", said).group(1))
        for name in ("mixture of max-margin classifiers", "linear SVM", "RBF SVM")
    }
    mixture, linear, _ = accuracy.values()
    assert mixture > linear + 0.2
    assert mixture > 0.9

    shares = {int(k): int(share) for k, share in re.findall(r"(\d+): (\d+)%", said)}
    assert 3 in shares
    assert abs(sum(shares.values()) - 100) <= len(shares)
    rand = re.search(r"index: (\d\.\d+) over draws, (\d\.\d+) on the held-out", said).groups()
    assert all(0.5 < float(index) <= 1 for index in rand)


def test_recovery_is_one_only_for_the_same_rows():
    group = np.array([0, 0, 1, 1, 1])
    np.testing.assert_allclose(demo.recovery(np.array([7, 7, 3, 3, 3]), group), 1)
    np.testing.assert_allclose(demo.recovery(np.zeros(5, dtype=int), group), [0.4, 0.6])
