"""Public data sets in scikit-learn's manner: fetched once, checked, then read from a data home."""

from regbayes.datasets._dna import fetch_promoters, fetch_splice_junction
from regbayes.datasets._documents import (
    fetch_movie_reviews,
    fetch_newsgroup_counts,
    fetch_ohsumed23,
    fetch_webkb4,
)
from regbayes.datasets._gesture_phase import fetch_gesture_phase
from regbayes.datasets._japanese_vowels import fetch_japanese_vowels
from regbayes.datasets._msr_action3d import fetch_msr_action3d
from regbayes.datasets._ocr_letters import fetch_ocr_letters
from regbayes.datasets._parkinsons import fetch_parkinsons
from regbayes.datasets._profiles import fetch_hill_valley, fetch_osuleaf
from regbayes.datasets._protein_folds import fetch_protein_folds
from regbayes.datasets._protein_sequences import fetch_kinase_domains, fetch_scope40
from regbayes.datasets._remote import DatasetError, get_data_home
from regbayes.datasets._scenes import fetch_scene15
from regbayes.datasets._subpopulations import make_subpopulations
from regbayes.datasets._switching_labels import make_switching_labels
from regbayes.datasets._trajectories import fetch_character_trajectories, fetch_libras
from regbayes.datasets._utkinect import fetch_utkinect
from regbayes.datasets._views import fetch_bdgp, fetch_mfeat
from regbayes.datasets._walks import load_walks

__all__ = [
    "DatasetError",
    "fetch_bdgp",
    "fetch_character_trajectories",
    "fetch_gesture_phase",
    "fetch_hill_valley",
    "fetch_japanese_vowels",
    "fetch_kinase_domains",
    "fetch_libras",
    "fetch_mfeat",
    "fetch_movie_reviews",
    "fetch_msr_action3d",
    "fetch_newsgroup_counts",
    "fetch_ocr_letters",
    "fetch_ohsumed23",
    "fetch_osuleaf",
    "fetch_parkinsons",
    "fetch_promoters",
    "fetch_protein_folds",
    "fetch_scene15",
    "fetch_scope40",
    "fetch_splice_junction",
    "fetch_utkinect",
    "fetch_webkb4",
    "get_data_home",
    "load_walks",
    "make_subpopulations",
    "make_switching_labels",
]
