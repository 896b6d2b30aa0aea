"""Public data sets in scikit-learn's manner: fetched once, checked, then read from a data home."""

from regbayes.datasets._parkinsons import fetch_parkinsons
from regbayes.datasets._protein_folds import fetch_protein_folds
from regbayes.datasets._remote import DatasetError, get_data_home

__all__ = ["DatasetError", "fetch_parkinsons", "fetch_protein_folds", "get_data_home"]
