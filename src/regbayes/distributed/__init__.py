"""Training on many machines with Dask, when the data do not fit one.

Work that is independent (chains, folds, classes) needs nothing from here: write
``with joblib.parallel_config("dask")`` around it.
"""

from regbayes.distributed._fit import fit

__all__ = ["fit"]
