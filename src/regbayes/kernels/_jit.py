"""How every kernel is compiled: cached on disk, and without the GIL so that chains run in threads."""

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
