"""Products of CSR matrices with dense ones, into arrays that are there already."""

from regbayes.kernels._jit import fused_kernel


@fused_kernel
def add_transposed_product(out, data, indices, indptr, dense):
    """Add ``X.T @ dense`` to `out` for the CSR matrix X of these arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> X = csr_array(np.array([[0.0, 2.0], [1.0, 1.0]]))
    >>> out = np.ones((2, 1))
    >>> add_transposed_product(out, X.data, X.indices, X.indptr, np.array([[10.0], [1.0]]))
    >>> out.ravel()
    array([ 2., 22.])
    """
    for row in range(indptr.shape[0] - 1):
        for j in range(indptr[row], indptr[row + 1]):
            value, column = data[j], indices[j]
            for k in range(dense.shape[1]):
                out[column, k] += value * dense[row, k]
