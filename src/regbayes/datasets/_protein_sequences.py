"""Chains of amino acids, one label for each: protein kinases and domains of SCOPe."""

import os
import re
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from regbayes.chains import draw_seed
from regbayes.datasets._remote import (
    Arrays,
    Columns,
    NamedArrays,
    RemoteDataset,
    RemoteFile,
    Table,
)
from regbayes.datasets._sequences import fasta, letters, letters_of

# ---------------------------------------------------------------------------------------- kinases

_GROUPS = (
    "AGC",
    "Atypical",
    "CAK",
    "CAMK",
    "CK1",
    "CMGC",
    "NDK",
    "Other",
    "PKL",
    "RGC",
    "STE",
    "TK",
    "TKL",
)

_SPECIES = (
    "A.queenslandica",
    "Bakers Yeast",
    "C.cinerea",
    "Fruit Fly",
    "Human",
    "M.brevicollis",
    "Mouse",
    "Nematode worm",
    "Sea Urchin",
)

# The amino acids, and X for any of them.
_RESIDUES = set("ACDEFGHIKLMNPQRSTVWXY")

# In the place of one sequence stands the word "Atypical", which happens to spell amino acids.
_NO_SEQUENCE = "ATYPICAL"

_KINASES_DESCR = """\
Protein kinase domains (KinBase)
--------------------------------
Catalytic domains of the protein kinases of nine species of animals, fungi and their relatives,
sorted by KinBase into groups and these into families. The default, three large groups, makes 1333
sequences: AGC 296, CMGC 339, TK 698; of these human 69, 64 and 94.

Groups (`groups=None`), 3378 sequences: AGC 296, Atypical 105, CAK 1, CAMK 373, CK1 138, CMGC 339,
NDK 18, Other 663, PKL 56, RGC 56, STE 214, TK 698, TKL 421.
Species: A.queenslandica (a sponge) 691, Bakers Yeast 122, C.cinerea (a mushroom) 371, Fruit Fly
237, Human 530, M.brevicollis (a choanoflagellate) 116, Mouse 551, Nematode worm 424, Sea Urchin
336.

A kinase of one species has close relatives in the others, so random folds are too easy: leave one
species out (`species` as groups of `LeaveOneGroupOut`), or stay within one. 261 sequences have
fewer than 150 residues and are fragments; 68 repeat an earlier one.

No split is published, and this is not known to be the kinase set of any particular paper.

Source: kinase_domain_opisthokont.fa in github.com/DBradley27/Kinase-specificity-evolution, in which
no licence is stated. Of its 3392 entries 14 have no sequence: nothing, or words in its place. How
these look was seen in a part of the file only, so the rule that finds them is in part a guess.
References: G. Manning, D. B. Whyte, R. Martinez, T. Hunter, S. Sudarsanam, "The protein kinase
complement of the human genome", Science 298 (2002). D. Bradley, P. Beltrao, "Evolution of protein
kinase substrate recognition at the active site", PLoS Biology 17 (2019).
"""

_KINASE = re.compile(r'(\S+)\s+class=([^:\s]*):([^:\s]*):(\S*)\s.*species="([^"]+)"')


def _parse_kinases(text: str) -> dict[str, Columns]:
    """A table from FASTA with headers ``name class=group:family:subfamily gene=... species="..."``.

    A gap (-) and the end of translation (*) are no residues; other signs make it no sequence.
    """
    rows = []
    for header, entry in fasta(text):
        found = _KINASE.fullmatch(header)
        if found is None:
            raise ValueError(f"cannot read {header[:60]!r} as the header of a kinase")
        sequence = entry.upper().replace("*", "").replace("-", "")
        if sequence and set(sequence) <= _RESIDUES:
            rows.append((*found.groups(), sequence))
    return {"kinases.csv": {name: [row[i] for row in rows] for i, name in enumerate(_COLUMNS)}}


_COLUMNS: dict[str, Any] = dict.fromkeys(
    ("name", "group", "family", "subfamily", "species", "sequence"), str
)

_KINASE_DOMAINS = RemoteDataset(
    folder="kinbase_kinases",
    tables={
        "kinases.csv": Table(
            types=_COLUMNS,
            sha256="447319049b3c09c7c4abb3ae414a567314818b4b4ceddeffecec072400f24f3a",
        )
    },
    sources=(
        RemoteFile(
            "https://raw.githubusercontent.com/DBradley27/Kinase-specificity-evolution/"
            "91e2da02c9bbeb973f5d68634b518fc5f3d947cf/kinase_domain_opisthokont.fa"
        ),
    ),
    parse=_parse_kinases,
)


def _chosen(parameter: str, wanted: str | Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """What is wanted, as a list of names; everything that is known when None."""
    names = known if wanted is None else [wanted] if isinstance(wanted, str) else wanted
    unknown = [name for name in names if name not in known]
    if unknown or not len(names):
        raise ValueError(
            f"{parameter} must be None or some of {', '.join(map(repr, known))}; got {wanted!r}"
        )
    return list(names)


def fetch_kinase_domains(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    groups: str | Sequence[str] | None = ("AGC", "CMGC", "TK"),
    species: str | Sequence[str] | None = None,
) -> Any:
    """Load protein kinases by group (one label for each), downloading them if necessary.

    Domains of the kinases of nine species, sorted by KinBase [1]_ and put together for [2]_.

    =================   =========================================
    Classes             3, or 13 (groups=None)
    Sequences           1333, or 3378 (groups=None)
    Steps               22 to 1005 residues each, median about 260
    Letters                           20 amino acids; X if unknown
    =================   =========================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    groups : sequence of str, str or None, default=("AGC", "CMGC", "TK")
        The classes; None for all 13 groups, which ``DESCR`` lists.
    species : sequence of str, str or None, default=None
        Only the kinases of these species, such as "Human" or ("Human", "Mouse"); None for all
        nine, which ``DESCR`` lists.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of n arrays (n_residues,) of single letters; ``target`` (n,) groups;
        ``species``, ``family``, ``subfamily`` (empty where there is none) and ``names`` (n,) each,
        ``target_names`` (the groups asked for), ``DESCR``.

    References
    ----------
    .. [1] Manning, Whyte, Martinez, Hunter & Sudarsanam (2002). The protein kinase complement of
       the human genome. Science.
    .. [2] Bradley & Beltrao (2019). Evolution of protein kinase substrate recognition at the
       active site. PLoS Biology.

    Examples
    --------
    >>> from regbayes.datasets import fetch_kinase_domains
    >>> kinases = fetch_kinase_domains(species="Human")  # doctest: +SKIP
    >>> len(kinases.data), kinases.names[0], kinases.family[0]  # doctest: +SKIP
    (227, np.str_('Hs_AKT1.kin_dom'), np.str_('Akt'))
    """
    classes = _chosen("groups", groups, _GROUPS)
    places = _chosen("species", species, _SPECIES)
    columns = _KINASE_DOMAINS.load(data_home, download_if_missing)["kinases.csv"]
    table = {name: np.array(column) for name, column in columns.items()}
    kept = np.isin(table["group"], classes) & np.isin(table["species"], places)
    kept &= table["sequence"] != _NO_SEQUENCE
    if not kept.any():
        raise ValueError(
            f"there is no kinase of groups={classes} in species={places}; ask for more of either"
        )
    table = {name: column[kept] for name, column in table.items()}
    data, target = letters_of(table["sequence"]), table["group"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        species=table["species"],
        family=table["family"],
        subfamily=table["subfamily"],
        names=table["name"],
        target_names=classes,
        DESCR=_KINASES_DESCR,
    )


# ------------------------------------------------------------------------------------------ SCOPe

_CLASSES = list("abcdefg")

_SCOPE_DESCR = """\
SCOPe 2.07, domains of less than 40 % identity (ASTRAL)
-------------------------------------------------------
14323 domains of proteins whose structure is known, of which no two share more than 40 % of their
residues. The target is the class of SCOPe: a all alpha (2540), b all beta (2895), c alpha and beta
in turn (4160), d alpha and beta apart (3462), e several domains (279), f in membranes (272),
g small (715).

`sccs` is the place in the whole hierarchy, class.fold.superfamily.family, such as "a.1.1.2": 1232
folds, 2024 superfamilies, 4583 families. No split is published. Domains of one superfamily have a
common ancestor, so folds that keep a superfamily together (`superfamily` as groups of
`StratifiedGroupKFold`) give the honest estimate.

Chains have 20 to 1664 residues; X stands for an unknown one (391 times), Z once for one of two.

Source: scop.berkeley.edu, ASTRAL "gd-sel-gs-bib, 40 %" for SCOPe 2.07; free to use with a citation,
as far as we remember. The checksum is that of the copy in github.com/ivujevic/tachyon, whose
documentation names that address.
References: N. K. Fox, S. E. Brenner, J.-M. Chandonia, "SCOPe: Structural Classification of
Proteins, extended, integrating SCOP and ASTRAL data and classification of new structures", Nucleic
Acids Research 42 (2014). J.-M. Chandonia and others, "The ASTRAL compendium in 2004", Nucleic Acids
Research 32 (2004).
"""

_DOMAIN = re.compile(r"(\S{7}) (([a-g])\.\d+\.\d+\.\d+)( .*)?")


def _parse_scope(text: str) -> dict[str, NamedArrays]:
    """Arrays from FASTA with headers ``sid sccs (chains) name {species}``, in small letters."""
    sids, places, classes, sequences = [], [], [], []
    for header, sequence in fasta(text):
        found = _DOMAIN.fullmatch(header)
        if found is None or not (sequence.isalpha() and sequence.isascii()):
            raise ValueError(f"cannot read {header[:60]!r} as a domain and its residues")
        sids.append(found[1])
        places.append(found[2])
        classes.append(found[3])
        sequences.append(sequence.upper())
    arrays = {
        "X": np.frombuffer("".join(sequences).encode(), np.uint8),
        "lengths": np.array([len(sequence) for sequence in sequences]),
        "y": np.array(classes),
        "sccs": np.array(places),
        "sid": np.array(sids),
    }
    return {"scope40.npz": arrays}


_SCOPE40 = RemoteDataset(
    folder="scope40_astral",
    tables={
        "scope40.npz": Arrays(
            types={"X": "|u1", "lengths": "<i4", "y": "<U1", "sccs": "<U10", "sid": "<U7"},
            sha256="657fc9cf75bebd70020c9591214be310384c38cd844e101b801c0543c97baac8",
        )
    },
    sources=(
        RemoteFile(
            "https://scop.berkeley.edu/downloads/scopeseq-2.07/"
            "astral-scopedom-seqres-gd-sel-gs-bib-40-2.07.fa"
        ),
    ),
    parse=_parse_scope,
)


def _stratified(target: NDArray[Any], n_samples: int, random_state: Any) -> NDArray[np.intp]:
    """Where `n_samples` stand that have each class in its proportion, in order."""
    rng = np.random.default_rng(draw_seed(random_state))
    classes, sizes = np.unique(target, return_counts=True)
    exact = n_samples * sizes / sizes.sum()
    shares = np.floor(exact).astype(int)
    # What is left goes to those that lost most by rounding down.
    shares[np.argsort(shares - exact, kind="stable")[: n_samples - shares.sum()]] += 1
    drawn = [
        rng.choice(np.flatnonzero(target == label), share, replace=False)
        for label, share in zip(classes, shares)
    ]
    return np.sort(np.concatenate(drawn))


def fetch_scope40(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    n_samples: int | None = None,
    random_state: Any = None,
) -> Any:
    """Load protein domains by structural class (one label for each), downloading if necessary.

    Domains of SCOPe 2.07 [1]_ in ASTRAL's selection of less than 40 % identity [2]_.

    =================   =========================================
    Classes                                                     7
    Sequences                        14323, or fewer (`n_samples`)
    Steps               20 to 1664 residues each, median about 150
    Letters                   20 amino acids; X, Z if not certain
    =================   =========================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    n_samples : int, default=None
        How many to draw at random, each class in its proportion (two classes make up 2 % each, so
        about 30 suffice to see all seven); None for all.
    random_state : int, RandomState, Generator or None, default=None
        For the draw of `n_samples`.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of n arrays (n_residues,) of single letters; ``target`` (n,) of "a" to "g";
        ``sccs`` such as "a.1.1.2", ``superfamily`` such as "a.1.1" and ``sid`` such as
        ``"d1dlwa_"``, (n,) each; ``target_names``, ``DESCR``.

    References
    ----------
    .. [1] Fox, Brenner & Chandonia (2014). SCOPe: Structural Classification of Proteins, extended,
       integrating SCOP and ASTRAL data and classification of new structures. Nucleic Acids
       Research.
    .. [2] Chandonia et al. (2004). The ASTRAL compendium in 2004. Nucleic Acids Research.

    Examples
    --------
    >>> from regbayes.datasets import fetch_scope40
    >>> domains = fetch_scope40(n_samples=1000, random_state=0)  # doctest: +SKIP
    >>> len(domains.data), domains.target_names  # doctest: +SKIP
    (1000, ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    """
    if n_samples is not None and (not isinstance(n_samples, Integral) or n_samples < 1):
        raise ValueError(f"n_samples must be None or an integer from 1 up, got {n_samples!r}")
    arrays = _SCOPE40.load(data_home, download_if_missing)["scope40.npz"]
    data, target = letters(arrays["X"], arrays["lengths"]), arrays["y"]
    kept = np.arange(len(target))
    if n_samples is not None:
        if n_samples > len(target):
            raise ValueError(
                f"n_samples={n_samples}, but there are {len(target)}; pass None to have all of them"
            )
        kept = _stratified(target, n_samples, random_state)
        data, target = [data[i] for i in kept], target[kept]
    if return_X_y:
        return data, target
    sccs = arrays["sccs"][kept]
    return Bunch(
        data=data,
        target=target,
        sccs=sccs,
        superfamily=np.array([place.rpartition(".")[0] for place in sccs.tolist()]),
        sid=arrays["sid"][kept],
        target_names=list(_CLASSES),
        DESCR=_SCOPE_DESCR,
    )
