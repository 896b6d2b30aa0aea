"""Ding and Dubchak's 27 protein folds."""

import os
import re
from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._protein_descriptors import (
    COMPOSITION_NAMES,
    PROPERTIES,
    composition,
    property_descriptors,
    property_names,
)
from regbayes.datasets._remote import Columns, RemoteDataset, RemoteFile, Table

# The two published files spell some of these differently ("Globm", "BELTA"), so the names used
# are written down here and the headers are read for their numbers only.
_FOLD_NAMES = (
    "Globin-like(alpha)",
    "CYTOCHROME C (ALPHA)",
    "DNA-BINDING 3-HELICALBUNDLE (ALPHA)",
    "4-HELICAL UP-AND-DOWN BUNDLE",
    "4-HELICAL CYTOKINES (ALPHA)",
    "ALPHA: EF-HAND (ALPHA)",
    "IMMUNOGLOBULIN-LIKE BETA-SANDWICH (BETA)",
    "CUPREDOXINS (BETA)",
    "VIRAL COAT AND CAPSID PROTEINS (BETA)",
    "CONA-LIKE LECTINGS/GLUCANASES (BETA)",
    "SH3 LIKE BARREL (BETA)",
    "OB-FOLD (BETA)",
    "TREFOIL (BETA)",
    "TRYPSIN-LIKE SERINE PROTEASES (BETA)",
    "LIPOCALINS (BETA)",
    "(TIM)-BARREL (ALPHA/BETA)",
    "FAD (ALSO NAD) -BINDING MOTIF (ALPHA/BETA)",
    "FLAVODOXIN-LIKE (ALPHA/BETA)",
    "NAD(P)-BINDING ROSSMANN-FOLD (ALPHA/BETA)",
    "P-LOOP CONTAINING NUCLEOTIDE (ALPHA/BETA)",
    "THIOREDOXIN-LIKE (ALPHA/BETA)",
    "RIBONUCLEASE H-LIKE MOTIF (ALPHA/BETA)",
    "HYDROLASES (ALPHA/BETA)",
    "PERIPLASMIC BINDING PROTEIN-LIKE (ALPHA/BETA)",
    "BETA-GRASP (ALPHA+BETA)",
    "FERREDOXIN-LIKE (ALPHA+BETA)",
    "SMALL INHIBITORS TOXINS, LECTINS (ALPHA+BETA)",
)

_DESCR = """\
Ding and Dubchak's protein folds
--------------------------------
694 protein domains of 27 SCOP folds with the published split: 311 to train, 383 to test. This is
the version with sequences distributed by Shen and Chou (2006), which leaves out 2SCMC and 2GPS
(train), 2YHX_1 and 2YHX_2 (test) of the original 313 and 385.

The features are computed from the sequences: the percentage of each amino acid and the length
(21), and for `features="all"` also the composition, transition and distribution of the residues
grouped by hydrophobicity, volume, polarity and polarizability (21 each). About half of the train
sequences differ in length from those Ding and Dubchak used, so their numbers are not reproduced
exactly. 49 of the test sequences also occur among the train sequences.

References: C. H. Q. Ding, I. Dubchak, "Multi-class protein fold recognition using support vector
machines and neural networks", Bioinformatics 17 (2001). H.-B. Shen, K.-C. Chou, "Ensemble
classifier for protein fold pattern recognition", Bioinformatics 22 (2006).
"""


def _parse_sequences(text: str) -> list[tuple[str, int, str]]:
    """(protein, fold, sequence) of each entry: FASTA under headers such as ``FOLD (3) name``."""
    # The preamble between two lines of dashes speaks of FOLD(1), too.
    body = re.split(r"^-{5,}\s*$", text, maxsplit=2, flags=re.MULTILINE)[-1]
    entries: list[tuple[str, int, list[str]]] = []
    fold = None
    for line in filter(None, map(str.strip, body.splitlines())):
        residues = "".join(line.split())  # one published line has a blank in its middle
        if header := re.match(r"FOLD\s*\((\d+)\)", line):
            fold = int(header[1])
        elif line.startswith(">") and fold is not None:
            # Some ids are followed by that of another entry: ">1DHX  (1P2Z)".
            entries.append((line[1:].split()[0], fold, []))
        elif entries and residues.isalpha() and residues.isupper():
            entries[-1][2].append(residues)
        else:
            raise ValueError(f"cannot read {line[:40]!r} as a fold, a protein or its residues")
    return [(protein, number, "".join(lines)) for protein, number, lines in entries]


def _parse(train_text: str, test_text: str) -> dict[str, Columns]:
    entries = [
        {"protein": protein, "fold": fold, "split": split, "length": len(seq), "sequence": seq}
        for split, text in (("train", train_text), ("test", test_text))
        for protein, fold, seq in _parse_sequences(text)
    ]
    proteins: Columns = {name: [entry[name] for entry in entries] for name in _PROTEINS.types}
    size = Counter((entry["split"], entry["fold"]) for entry in entries)
    numbers = range(1, len(_FOLD_NAMES) + 1)
    folds: Columns = {
        "fold": list(numbers),
        "name": list(_FOLD_NAMES),
        "n_train": [size["train", number] for number in numbers],
        "n_test": [size["test", number] for number in numbers],
    }
    return {"proteins.csv": proteins, "folds.csv": folds}


_PROTEINS = Table(
    types={"protein": str, "fold": int, "split": str, "length": int, "sequence": str},
    sha256="4fd2cdda25a8b825fb6fe13720103d67e215a1c5908dafdf8be9bccdd7058952",
)

_FOLDS = Table(
    types={"fold": int, "name": str, "n_train": int, "n_test": int},
    sha256="f4ef0bb69bdbda3505558cda024e703a5589bba9888ec6c6c57c0b6a6836a197",
)

_REPOSITORY = (
    "https://raw.githubusercontent.com/MsAlEhR/bio-protein-fold-recognition/"
    "f15cf6f4a5093ca0d7547445eaed81860841f2e9/data/f86/"
)

_DATASET = RemoteDataset(
    folder="ding_dubchak_folds",
    tables={"proteins.csv": _PROTEINS, "folds.csv": _FOLDS},
    sources=(
        RemoteFile(_REPOSITORY + "training-sequences.txt"),
        RemoteFile(_REPOSITORY + "test-sequences.txt"),
    ),
    parse=_parse,
)


def fetch_protein_folds(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    features: str = "composition",
) -> Any:
    """Load Ding and Dubchak's protein folds (27 classes), downloading them if necessary.

    =================   ==============================
    Classes                                         27
    Samples             694 (311 to train, 383 to test)
    Features            21 ("composition") or 105 ("all")
    =================   ==============================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    features : {"composition", "all"}, default="composition"
        "composition": percentage of each amino acid and the length. "all": also the descriptors
        of hydrophobicity, volume, polarity and polarizability, 21 each.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data`` (694, 21 or 105) floats, ``target`` (694,) folds 1 to 27, ``split`` (694,) of
        "train" and "test", ``target_names`` (names of the folds 1 to 27, in order), ``proteins``
        (694,) ids, ``sequences`` (694,) strings, ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_protein_folds
    >>> proteins = fetch_protein_folds(features="all")  # doctest: +SKIP
    >>> proteins.data[proteins.split == "train"].shape  # doctest: +SKIP
    (311, 105)
    """
    if features not in ("composition", "all"):
        raise ValueError(f"features must be 'composition' or 'all', got {features!r}")
    tables = _DATASET.load(data_home, download_if_missing)
    proteins = tables["proteins.csv"]
    properties = PROPERTIES if features == "all" else {}
    data = np.array(
        [
            np.concatenate(
                [composition(seq)] + [property_descriptors(seq, g) for g in properties.values()]
            )
            for seq in proteins["sequence"]
        ]
    )
    target = np.array(proteins["fold"])
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        split=np.array(proteins["split"]),
        target_names=tables["folds.csv"]["name"],
        proteins=np.array(proteins["protein"]),
        sequences=np.array(proteins["sequence"], dtype=object),
        feature_names=sum(map(property_names, properties), list(COMPOSITION_NAMES)),
        DESCR=_DESCR,
    )
