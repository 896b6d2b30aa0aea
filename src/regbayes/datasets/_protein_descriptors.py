"""Dubchak's descriptors of a protein sequence: global, of fixed length, from residues alone.

References
----------
I. Dubchak, I. Muchnik, S. R. Holbrook, S.-H. Kim, "Prediction of protein folding class using
global description of amino acid sequence", PNAS 92 (1995).
"""

import numpy as np
from numpy.typing import NDArray

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"

# Each property divides the amino acids into three groups.
PROPERTIES = {
    "hydrophobicity": ("RKEDQN", "GASTPHY", "CLVIMFW"),
    "volume": ("GASCTPD", "NVEQIL", "MHKFRYW"),
    "polarity": ("LIFWCMVY", "PATGS", "HQRKNED"),
    "polarizability": ("GASDT", "CPNVEQIL", "KMHFRYW"),
}

_PAIRS = ((0, 1), (0, 2), (1, 2))
_QUARTERS = (0, 1, 2, 3, 4)

COMPOSITION_NAMES = [f"percent_{residue}" for residue in AMINO_ACIDS] + ["length"]


def property_names(name: str) -> list[str]:
    """Names of the 21 values of `property_descriptors`.

    Examples
    --------
    >>> property_names("volume")[2:8]
    ['volume_group3', 'volume_change12', 'volume_change13', 'volume_change23',
     'volume_group1_at0', 'volume_group1_at25']
    """
    return (
        [f"{name}_group{g}" for g in (1, 2, 3)]
        + [f"{name}_change{a + 1}{b + 1}" for a, b in _PAIRS]
        + [f"{name}_group{g}_at{25 * q}" for g in (1, 2, 3) for q in _QUARTERS]
    )


def composition(sequence: str) -> NDArray[np.float64]:
    """Percentage of each of the 20 amino acids, then the length (21 values).

    Residues that are not known (X, Z, ...) count for the length only.

    Examples
    --------
    >>> composition("AAC")[[0, 1, 20]].round(1)
    array([66.7, 33.3,  3. ])
    """
    counts = [sequence.count(residue) for residue in AMINO_ACIDS]
    return np.append(100 * np.array(counts) / len(sequence), len(sequence))


def property_descriptors(sequence: str, groups: tuple[str, ...]) -> NDArray[np.float64]:
    """Composition, transition and distribution of three groups of residues (21 values, percent).

    Composition: share of each group. Transition: share of neighbours that change between two
    groups, either way. Distribution: how far along the chain the first residue of a group, and
    25, 50, 75 and 100 % of them, have been met; zeros for a group that does not occur.

    Examples
    --------
    >>> values = property_descriptors("AACA", ("A", "C", "G"))
    >>> values[:6].round(1)
    array([75. , 25. ,  0. , 66.7,  0. ,  0. ])
    >>> values[6:11]  # where A is met first, and 25, 50, 75, 100 % of its three residues
    array([ 25.,  25.,  25.,  50., 100.])
    """
    length = len(sequence)
    member = np.array([[residue in group for residue in sequence] for group in groups])
    share = 100 * member.mean(axis=1)
    changes = [
        np.sum(member[a, :-1] & member[b, 1:]) + np.sum(member[b, :-1] & member[a, 1:])
        for a, b in _PAIRS
    ]
    reached = np.zeros((len(groups), len(_QUARTERS)))
    for group, positions in enumerate(np.flatnonzero(row) + 1 for row in member):
        if len(positions):
            # Rounded down, but never before the first: the rule of the published descriptors.
            ranks = [max(1, quarter * len(positions) // 4) for quarter in _QUARTERS]
            reached[group] = 100 * positions[np.array(ranks) - 1] / length
    return np.concatenate([share, 100 * np.array(changes) / (length - 1), reached.ravel()])
