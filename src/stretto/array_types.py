"""Types of arrays, by their elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]
Bits = NDArray[np.bool_]

#: The integers of 64 bits.
INT64 = range(-(1 << 63), 1 << 63)
