"""Photographs of scenes as visual words, real descriptors and thumbnails."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, DatasetError, RemoteDataset

_CLASSES = (
    "Bedroom", "Coast", "Forest", "Highway", "Industrial", "InsideCity", "Kitchen", "LivingRoom",
    "Mountain", "Office", "OpenCountry", "Store", "Street", "Suburb", "TallBuilding",
)  # fmt: skip

_DESCR = """\
Fifteen scenes, and the eight of Oliva and Torralba
---------------------------------------------------
4485 grey photographs of 15 kinds of scenes; the 2688 of `is_ot8` are the outdoor scenes of Oliva
and Torralba. `is_train` marks 100 of each class.

Words: SIFT of patches of 16 x 16 pixels every 8 pixels, quantised by k-means on patches of training
images only. Real: gist (512), directions of edges (73), uniform local binary patterns (59). Images:
64 x 64, without keeping proportions. These features were computed for this library and are not
published ones: figures compare with each other, not with papers.

Source of the photographs: github.com/lionelmessi6410/Scene-Recognition-with-Bag-of-Words; no
licence is stated for them.
References: A. Oliva, A. Torralba, "Modeling the shape of the scene", IJCV 42 (2001). L. Fei-Fei,
P. Perona, "A Bayesian hierarchical model for learning natural scene categories", CVPR 2005.
S. Lazebnik, C. Schmid, J. Ponce, "Beyond bags of features", CVPR 2006.
"""

_COMMON = {"y": "|u1", "is_train": "|b1", "is_ot8": "|b1", "file_id": "<U33"}
_FILES = {
    "words240": (
        "bow240.npz",
        {"counts": "<u2"},
        "60b5b8f1d037619f952801f164313374961730dac65c3ce25d6a404a4fb7d483",
    ),
    "words500": (
        "bow500.npz",
        {"counts": "<u2"},
        "cc323e968a4c5eef13a798b8861c7823d9c0611490c1300dbbd9d7404868ee82",
    ),
    "grid240": (
        "word_grid240.npz",
        {"words": "|u1", "ptr": "<i8", "grid_h": "|u1", "grid_w": "|u1"},
        "721a7a4021f94ed3b20175d0d118d639282b854efa35d76156c800e6acd02932",
    ),
    "real": (
        "real_views.npz",
        {"gist512": "<f4", "edge_dir73": "<f4", "lbp59": "<f4"},
        "f9d5df5d22df90a3c68ce892a559cf307a9c0ce9b9b408ddcad3955afe76fb03",
    ),
    "images": (
        "images64.npz",
        {"images": "|u1"},
        "3127c3515272dc8a855a636ba6f766f1d532efc25b9552190d0baeddc6d9cf68",
    ),
}


def _parse() -> dict[str, Any]:
    raise DatasetError(
        "the visual words were computed for this library and are not published; "
        "experiments/visual_words.py makes such words from a folder of images"
    )


_DATASET = RemoteDataset(
    folder="scene15",
    tables={name: Arrays({**types, **_COMMON}, sha) for name, types, sha in _FILES.values()},
    sources=(),
    parse=_parse,
)


def fetch_scene15(
    view: str = "words240",
    *,
    scenes: str = "all",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load photographs of scenes, as one of several views.

    =================   =====================
    Classes                           15 or 8
    Images                       4485 or 2688
    Words                          240 or 500
    =================   =====================

    Parameters
    ----------
    view : {"words240", "words500", "grid240", "real", "images"}, default="words240"
        Counts of visual words; grids of words, which keep their places; real descriptors;
        thumbnails of 64 x 64 pixels.
    scenes : {"all", "ot8"}, default="all"
        All 15 kinds, or the eight outdoor ones of Oliva and Torralba.
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        The features are not published, so there is nothing to download: an error says so.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: csr_matrix of counts (n, 240 or 500), a list of n arrays (rows, columns) of
        words, ndarray (n, 644) or ndarray (n, 64, 64); ``target`` (n,) of class names; ``is_train``
        and ``is_ot8`` (n,), ``names`` (n,), ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_scene15
    >>> fetch_scene15(scenes="ot8").data.shape  # doctest: +SKIP
    (2688, 240)
    """
    if view not in _FILES:
        raise ValueError(f"view must be one of {', '.join(_FILES)}, got {view!r}.")
    if scenes not in ("all", "ot8"):
        raise ValueError(f"scenes must be 'all' or 'ot8', got {scenes!r}.")
    file = _FILES[view][0]
    only = replace(_DATASET, tables={file: _DATASET.tables[file]})
    arrays = only.load(data_home, download_if_missing)[file]
    kept = arrays["is_ot8"] if scenes == "ot8" else np.ones(len(arrays["y"]), dtype=bool)
    codes = arrays["y"][kept]
    data: Any
    if view == "grid240":
        cut = np.split(arrays["words"], arrays["ptr"][1:-1])
        sizes = zip(arrays["grid_h"].tolist(), arrays["grid_w"].tolist())
        data = [words.reshape(size) for words, size, keep in zip(cut, sizes, kept) if keep]
    elif view == "real":
        data = np.hstack([arrays[name] for name in ("gist512", "edge_dir73", "lbp59")])[kept]
        data = data.astype(np.float64)
    elif view == "images":
        data = arrays["images"][kept]
    else:
        data = csr_matrix(arrays["counts"][kept].astype(np.int64))
    target = np.array(_CLASSES)[codes]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        is_train=arrays["is_train"][kept],
        is_ot8=arrays["is_ot8"][kept],
        names=arrays["file_id"][kept],
        target_names=[_CLASSES[i] for i in np.unique(codes)],
        DESCR=_DESCR,
    )
