"""Items with several views: embryo images with terms, handwritten numerals measured six ways."""

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, NamedArrays, RemoteDataset, RemoteFile

_BDGP_DESCR = """\
BDGP, Drosophila embryos
------------------------
2500 images of embryos in five classes of 500, developmental stages: a bag of visual features (1000
lateral, 500 dorsal, 250 ventral; rows have length one, blocks without an image are zero) and 79
terms of annotation, there or not. Class names are not in the source.

73 of the 79 terms occur in one class only, so the terms nearly give the label away: compare methods
with few training items, 100 to 250. No split is fixed.

Source: BDGP.mat in github.com/scutbioinformatics/CELT; licence not stated. The names of its
variables are recalled, not seen here.
Reference: X. Cai, H. Wang, H. Huang, C. Ding, "Joint stage recognition and anatomical annotation of
Drosophila gene expression patterns", Bioinformatics 28 (2012).
"""

_MFEAT_DESCR = """\
Multiple Features (UCI)
-----------------------
2000 numerals from Dutch maps, 200 of each digit, measured six ways: 76 Fourier coefficients of the
shapes, 216 profile correlations, 64 Karhunen-Loeve coefficients, 240 averages of 2 x 3 pixels
(0 to 6), 47 Zernike moments and 6 morphological features. No split is fixed.

Source: UCI Machine Learning Repository, "Multiple Features", listed there under CC BY 4.0.
Reference: M. van Breukelen, R. Duin, D. Tax, J. den Hartog, "Handwritten digit recognition by
combined classifiers", Kybernetika 34 (1998).
"""

_MFEAT_VIEWS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}


def _read_mat(content: bytes) -> Mapping[str, NDArray[Any]]:
    """Variables of a MATLAB file."""
    try:
        return loadmat(io.BytesIO(content))
    except Exception as error:  # of any kind: scipy does not check what it reads
        raise ValueError(f"not a whole MATLAB file ({error!r})") from error


def _parse_bdgp(mat: Mapping[str, NDArray[Any]]) -> dict[str, NamedArrays]:
    """The variables are told apart by their widths."""
    tables = {table.shape[-1]: table for table in mat.values() if isinstance(table, np.ndarray)}
    labels = [table.ravel() for table in tables.values() if table.size == 2500]
    missing = [width for width in (1750, 79) if width not in tables]
    if missing or not labels:
        raise ValueError(f"no variable has {missing or 'one label for each of 2500 rows'} columns")
    arrays = {"X_visual": tables[1750], "X_text": tables[79], "y": labels[0] - labels[0].min()}
    return {"data.npz": arrays}


def _parse_mfeat(*texts: str) -> dict[str, NamedArrays]:
    """Six files of numbers, rows by digit."""
    arrays: NamedArrays = {"y": np.repeat(np.arange(10), 200)}
    for (name, width), text in zip(_MFEAT_VIEWS.items(), texts, strict=True):
        numbers = np.array(text.split(), dtype=np.float64)
        if numbers.size != 2000 * width:
            raise ValueError(f"mfeat-{name} has {numbers.size} numbers, not 2000 x {width}")
        arrays[f"X_{name}"] = numbers.reshape(2000, width)
    return {"data.npz": arrays}


_BDGP = RemoteDataset(
    folder="bdgp",
    tables={
        "data.npz": Arrays(
            types={"X_visual": "<f4", "X_text": "|u1", "y": "<i8"},
            sha256="15c39b36d965afaf8cd1a1ddef98ee091370563c50e88e0eaf41e40574071c34",
        )
    },
    sources=(
        RemoteFile(
            "https://raw.githubusercontent.com/scutbioinformatics/CELT/"
            "3a66b240d7957e7b6dfbe52ba26d0f41f55255a7/BDGP.mat",
            unpack=_read_mat,
        ),
    ),
    parse=_parse_bdgp,
)

_MFEAT = RemoteDataset(
    folder="mfeat",
    tables={
        "data.npz": Arrays(
            types={**{f"X_{name}": "<f4" for name in _MFEAT_VIEWS}, "y": "<i8"},
            sha256="bff6330a4f9da4c2c3937dbe7c3f6482b2540a3b90d3394e9098454b1df139bd",
        )
    },
    sources=tuple(
        RemoteFile(f"https://archive.ics.uci.edu/ml/machine-learning-databases/mfeat/mfeat-{name}")
        for name in _MFEAT_VIEWS
    ),
    parse=_parse_mfeat,
)


def fetch_bdgp(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load embryo images with terms (two views, five classes), downloading them if necessary.

    =================   ==========================
    Classes                                      5
    Items                                     2500
    Views               1750 real, 79 of 0 and 1
    =================   ==========================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: dict of "visual" (2500, 1750) and "text" (2500, 79); ``target`` (2500,) of 0 to 4;
        ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_bdgp
    >>> {name: view.shape for name, view in fetch_bdgp().data.items()}  # doctest: +SKIP
    {'visual': (2500, 1750), 'text': (2500, 79)}
    """
    arrays = _BDGP.load(data_home, download_if_missing)["data.npz"]
    data = {name: arrays[f"X_{name}"].astype(np.float64) for name in ("visual", "text")}
    if return_X_y:
        return data, arrays["y"]
    return Bunch(data=data, target=arrays["y"], DESCR=_BDGP_DESCR)


def fetch_mfeat(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load handwritten numerals measured six ways (ten classes), downloading if necessary.

    =================   =======================
    Classes                                  10
    Items                                  2000
    Views               6, of 6 to 240 columns
    =================   =======================

    Parameters
    ----------
    data_home, download_if_missing, return_X_y
        As for :func:`fetch_bdgp`.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: dict of "fou" (2000, 76), "fac" (2000, 216), "kar" (2000, 64), "pix" (2000, 240),
        "zer" (2000, 47) and "mor" (2000, 6); ``target`` (2000,) of digits; ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_mfeat
    >>> fetch_mfeat().data["pix"].shape  # doctest: +SKIP
    (2000, 240)
    """
    arrays = _MFEAT.load(data_home, download_if_missing)["data.npz"]
    data = {name: arrays[f"X_{name}"].astype(np.float64) for name in _MFEAT_VIEWS}
    if return_X_y:
        return data, arrays["y"]
    return Bunch(data=data, target=arrays["y"], DESCR=_MFEAT_DESCR)
