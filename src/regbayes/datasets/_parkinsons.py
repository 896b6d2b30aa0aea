"""Voice recordings of people with and without Parkinson's disease."""

import os
import re
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._remote import Columns, RemoteDataset, RemoteFile, Table, read_columns

_FEATURES = [
    "MDVP:Fo(Hz)",
    "MDVP:Fhi(Hz)",
    "MDVP:Flo(Hz)",
    "MDVP:Jitter(%)",
    "MDVP:Jitter(Abs)",
    "MDVP:RAP",
    "MDVP:PPQ",
    "Jitter:DDP",
    "MDVP:Shimmer",
    "MDVP:Shimmer(dB)",
    "Shimmer:APQ3",
    "Shimmer:APQ5",
    "MDVP:APQ",
    "Shimmer:DDA",
    "NHR",
    "HNR",
    "RPDE",
    "DFA",
    "spread1",
    "spread2",
    "D2",
    "PPE",
]

_PUBLISHED: dict[str, Any] = {"name": str, "status": int} | dict.fromkeys(_FEATURES, float)

_DESCR = """\
Parkinsons (UCI)
----------------
195 sustained phonations of 32 subjects, 22 dysphonia measurements each; the target says whether
the speaker has Parkinson's disease (147 recordings of 24 subjects) or not (48 of 8).

Recordings of one subject resemble each other: a split that puts a subject on both sides
overstates the accuracy. `groups` holds the subjects for `GroupKFold` and its kin. The majority
class has a share of 0.754. (The text at UCI speaks of 31 people; the file holds 32 ids.)

Source: UCI Machine Learning Repository, "Parkinsons", listed there under CC BY 4.0.
Reference: M. A. Little, P. E. McSharry, E. J. Hunter, J. Spielman, L. O. Ramig, "Suitability of
dysphonia measurements for telemonitoring of Parkinson's disease", IEEE Transactions on Biomedical
Engineering 56 (2009).
"""


def _subject(name: str) -> str:
    found = re.fullmatch(r"phon_R\d+_(S\d+)_\d+", name)
    if found is None:
        raise ValueError(f"{name!r} is not the name of a recording, such as phon_R01_S01_1")
    return found[1]


def _parse(text: str) -> dict[str, Columns]:
    columns = read_columns(text, _PUBLISHED)
    return {"parkinsons.csv": {"subject": list(map(_subject, columns["name"]))} | columns}


_TABLE = Table(
    types={"subject": str, **_PUBLISHED},
    sha256="114604b83ea5ba406a624298a9f4e33e1757ffbd145f13004e1f88830ed61c46",
)

_DATASET = RemoteDataset(
    folder="parkinsons",
    tables={"parkinsons.csv": _TABLE},
    sources=(
        RemoteFile(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/parkinsons/parkinsons.data"
        ),
    ),
    parse=_parse,
)


def fetch_parkinsons(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load the Parkinsons voice data (binary classification), downloading it if necessary.

    =================   ====================
    Classes                                2
    Samples                              195
    Subjects (groups)                     32
    Features                        22, real
    =================   ====================

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
        ``data`` (195, 22) floats, ``target`` (195,) of 0 and 1, ``feature_names``,
        ``target_names``, ``groups`` (195,) subjects such as "S01", ``records`` (195,) names of the
        recordings, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_parkinsons
    >>> parkinsons = fetch_parkinsons()  # doctest: +SKIP
    >>> parkinsons.data.shape  # doctest: +SKIP
    (195, 22)
    """
    columns = _DATASET.load(data_home, download_if_missing)["parkinsons.csv"]
    data = np.column_stack([columns[name] for name in _FEATURES])
    target = np.array(columns["status"])
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(_FEATURES),
        target_names=["healthy", "parkinsons"],
        groups=np.array(columns["subject"]),
        records=np.array(columns["name"]),
        DESCR=_DESCR,
    )
