"""Items with several views: read from a filled data home, parsed from small originals."""

import io

import numpy as np
import pytest
from scipy.io import savemat

from regbayes.datasets import DatasetError, _views, fetch_bdgp, fetch_mfeat
from tests.datasets.conftest import real


@real("bdgp")
def test_embryos():
    data = fetch_bdgp(download_if_missing=False)
    assert {name: view.shape for name, view in data.data.items()} == {
        "visual": (2500, 1750), "text": (2500, 79),
    }  # fmt: skip
    assert set(np.unique(data.data["text"])) == {0.0, 1.0}
    np.testing.assert_array_equal(np.bincount(data.target), [500] * 5)
    X, y = fetch_bdgp(download_if_missing=False, return_X_y=True)
    assert list(X) == ["visual", "text"]
    np.testing.assert_array_equal(y, data.target)


@real("mfeat")
def test_numerals():
    data = fetch_mfeat(download_if_missing=False)
    widths = {name: view.shape for name, view in data.data.items()}
    assert widths == {name: (2000, width) for name, width in _views._MFEAT_VIEWS.items()}
    np.testing.assert_array_equal(np.bincount(data.target), [200] * 10)
    X, _ = fetch_mfeat(download_if_missing=False, return_X_y=True)
    assert X["pix"].max() == 6


@pytest.mark.parametrize("fetch", [fetch_bdgp, fetch_mfeat])
def test_absent_data_say_where_they_were_looked_for(fetch, tmp_path):
    with pytest.raises(DatasetError, match=r"data\.npz not found in"):
        fetch(data_home=tmp_path, download_if_missing=False)


def test_embryos_are_told_from_a_matlab_file():
    rng = np.random.default_rng(0)
    visual, text = rng.random((2500, 1750), dtype=np.float32), rng.integers(2, size=(2500, 79))
    content = io.BytesIO()
    savemat(content, {"a": visual, "b": text, "c": np.repeat(np.arange(1, 6), 500)[:, None]})
    arrays = _views._parse_bdgp(_views._read_mat(content.getvalue()))["data.npz"]
    np.testing.assert_array_equal(arrays["X_visual"], visual)
    np.testing.assert_array_equal(arrays["X_text"], text)
    np.testing.assert_array_equal(arrays["y"], np.repeat(np.arange(5), 500))
    with pytest.raises(ValueError, match="not a whole MATLAB file"):
        _views._read_mat(content.getvalue()[:1000])
    with pytest.raises(ValueError, match="no variable has"):
        _views._parse_bdgp({"a": visual})


def test_numerals_are_read_from_six_texts():
    texts = ["1 2.5\n" * (1000 * width) for width in _views._MFEAT_VIEWS.values()]
    arrays = _views._parse_mfeat(*texts)["data.npz"]
    assert arrays["X_mor"].shape == (2000, 6)
    with pytest.raises(ValueError, match="mfeat-fou has 2 numbers, not 2000 x 76"):
        _views._parse_mfeat("1 2", *texts[1:])
