"""Short stretches of DNA, one label for each: promoters and splice junctions."""

import os
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._remote import Columns, RemoteDataset, RemoteFile, Table
from regbayes.datasets._sequences import first_occurrences, letters_of

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/molecular-biology/"

_TYPES: dict[str, Any] = {"name": str, "class": str, "sequence": str}


def _parse(file: str, classes: tuple[str, ...], text: str) -> dict[str, Columns]:
    """A table from lines of class, name and sequence, with commas and blanks between them."""
    columns: Columns = {name: [] for name in _TYPES}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 3 or fields[0] not in classes or not fields[2].isalpha():
            raise ValueError(
                f"line {number}, {line[:40]!r}, is not a class ({', '.join(classes)}), a name and "
                "a sequence"
            )
        for name, field in zip(("class", "name", "sequence"), fields):
            columns[name].append(field)
    return {file: columns}


# -------------------------------------------------------------------------------------- promoters

_SIGNS = ("+", "-")

_PROMOTERS_DESCR = """\
Promoter gene sequences (UCI)
-----------------------------
106 stretches of the DNA of E. coli, 57 base pairs each (a, c, g, t): 53 are promoters (+), where
the reading of a gene begins, and 53 are not (-).

There is no split; the published protocol leaves one sequence out at a time.

Source: UCI Machine Learning Repository, "Molecular Biology (Promoter Gene Sequences)", listed there
under CC BY 4.0 (for the copy at hand not checked). The checksum is that of the copy in
github.com/farhan-137/dna-promoter-classifier.
Reference: G. G. Towell, J. W. Shavlik, M. O. Noordewier, "Refinement of approximate domain theories
by knowledge-based artificial neural networks", AAAI 1990.
"""

_PROMOTERS = RemoteDataset(
    folder="promoters",
    tables={
        "promoters.csv": Table(
            types=_TYPES, sha256="139ebfd536e831e3c127a02706906570762253de1ea334cd55f7915800ed8c67"
        )
    },
    sources=(RemoteFile(_UCI + "promoter-gene-sequences/promoters.data"),),
    parse=partial(_parse, "promoters.csv", _SIGNS),
)


def fetch_promoters(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load promoters in DNA (binary, one label for each), downloading them if necessary.

    Stretches of the DNA of E. coli that are promoters or not [1]_.

    =================   ======================
    Classes                                  2
    Sequences                              106
    Steps               57 letters each
    Letters                         a, c, g, t
    =================   ======================

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
        ``data``: list of 106 arrays (57,) of single letters; ``target`` (106,) of "+" and "-";
        ``names`` (106,), ``target_names``, ``DESCR``.

    References
    ----------
    .. [1] Towell, Shavlik & Noordewier (1990). Refinement of approximate domain theories by
       knowledge-based artificial neural networks. AAAI.

    Examples
    --------
    >>> from regbayes.datasets import fetch_promoters
    >>> promoters = fetch_promoters()  # doctest: +SKIP
    >>> promoters.names[0], promoters.target[0], promoters.data[0][:3]  # doctest: +SKIP
    (np.str_('S10'), np.str_('+'), array(['t', 'a', 'c'], dtype='<U1'))
    """
    columns = _PROMOTERS.load(data_home, download_if_missing)["promoters.csv"]
    data, target = letters_of(columns["sequence"]), np.array(columns["class"])
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        names=np.array(columns["name"]),
        target_names=list(_SIGNS),
        DESCR=_PROMOTERS_DESCR,
    )


# -------------------------------------------------------------------------------- splice junctions

_JUNCTIONS = ("EI", "IE", "N")

_SPLICE_DESCR = """\
Splice-junction gene sequences (UCI)
------------------------------------
3190 stretches of the DNA of primates, 60 base pairs each, around a place where a gene may change
from exon to intron (EI: 767), from intron to exon (IE: 768), or neither (N: 1655).

The letters are A, C, G, T and, 60 times in all, D, N, R, S for a base that is not certain.

185 rows repeat an earlier sequence; with random folds these are in training and test at once.
`duplicates=False` leaves them out and 3005 remain. One sequence stands there twice with two labels:
HUMCYPIIE-ACCEPTOR-12121 (IE, the earlier one) and HUMCYPIIE-NEG-12121 (N). Some names occur twice.
There is no published split.

Source: UCI Machine Learning Repository, "Molecular Biology (Splice-junction Gene Sequences)",
listed there under CC BY 4.0 (for the copy at hand not checked). The checksum is that of the copy in
github.com/renatopp/arff-datasets; that UCI's file has its rows in the same order is expected, but
could not be verified.
Reference: M. O. Noordewier, G. G. Towell, J. W. Shavlik, "Training knowledge-based neural networks
to recognize genes in DNA sequences", NIPS 3 (1991).
"""

_SPLICE_JUNCTION = RemoteDataset(
    folder="splice_junction",
    tables={
        "splice.csv": Table(
            types=_TYPES, sha256="55596bd42d57c2a974eb00b526cf2a04ca8a214cde470673a5fbac775ab3b332"
        )
    },
    sources=(RemoteFile(_UCI + "splice-junction-gene-sequences/splice.data"),),
    parse=partial(_parse, "splice.csv", _JUNCTIONS),
)


def fetch_splice_junction(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    duplicates: bool = True,
) -> Any:
    """Load splice junctions in DNA (one label for each), downloading them if necessary.

    Stretches of the DNA of primates with a splice junction in the middle, or none [1]_.

    =================   ============================================
    Classes                                                        3
    Sequences           3190, or 3005 without the repeated sequences
    Steps                                            60 letters each
    Letters                             A, C, G, T; rarely D, N, R, S
    =================   ============================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    duplicates : bool, default=True
        If False, leave out the 185 rows whose sequence an earlier row has.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 3190 (or 3005) arrays (60,) of single letters; ``target`` (3190,) of
        "EI", "IE" and "N"; ``names`` (3190,), ``target_names``, ``DESCR``.

    References
    ----------
    .. [1] Noordewier, Towell & Shavlik (1991). Training knowledge-based neural networks to
       recognize genes in DNA sequences. NIPS.

    Examples
    --------
    >>> from regbayes.datasets import fetch_splice_junction
    >>> junctions = fetch_splice_junction(duplicates=False)  # doctest: +SKIP
    >>> len(junctions.data), junctions.names[0]  # doctest: +SKIP
    (3005, np.str_('ATRINS-DONOR-521'))
    """
    columns = _SPLICE_JUNCTION.load(data_home, download_if_missing)["splice.csv"]
    sequences = np.array(columns["sequence"])
    kept = np.arange(len(sequences)) if duplicates else first_occurrences(sequences)
    data, target = letters_of(sequences[kept]), np.array(columns["class"])[kept]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        names=np.array(columns["name"])[kept],
        target_names=list(_JUNCTIONS),
        DESCR=_SPLICE_DESCR,
    )
