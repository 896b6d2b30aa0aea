"""Public data sets in scikit-learn's manner: fetched once, checked, then read from a data home."""

from regbayes.datasets._gesture_phase import fetch_gesture_phase
from regbayes.datasets._msr_action3d import fetch_msr_action3d
from regbayes.datasets._ocr_letters import fetch_ocr_letters
from regbayes.datasets._parkinsons import fetch_parkinsons
from regbayes.datasets._protein_folds import fetch_protein_folds
from regbayes.datasets._remote import DatasetError, get_data_home
from regbayes.datasets._switching_labels import make_switching_labels
from regbayes.datasets._utkinect import fetch_utkinect

__all__ = [
    "DatasetError",
    "fetch_gesture_phase",
    "fetch_msr_action3d",
    "fetch_ocr_letters",
    "fetch_parkinsons",
    "fetch_protein_folds",
    "fetch_utkinect",
    "get_data_home",
    "make_switching_labels",
]
