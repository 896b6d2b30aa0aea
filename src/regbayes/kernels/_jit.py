"""How every kernel is compiled: cached on disk, and without the GIL, so that chains can thread.

numba's cache looks at a kernel's own file only; a kernel that was compiled into another one may
change without notice. So all cached code is forgotten when any file of this package changes.
"""

import contextlib
import hashlib
from pathlib import Path

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
# For inner products: lets a product and a sum become one instruction, which rounds once less.
fused_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


def forget_stale_code(folder: Path) -> None:
    """Delete the compiled code below `folder` unless it was made from the kernels as they are."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = folder / "__pycache__" / "kernels.sha256"
    # A read-only installation has no cache here to go stale.
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest:
            return
        for path in folder.rglob("*.nb[ic]"):
            path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)


forget_stale_code(Path(__file__).parent)
