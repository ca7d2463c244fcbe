"""Settings for all tests. Random tests print their seed: run one again with ``--hypothesis-seed=N``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "stretto",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("stretto")

DATA = Path(os.environ.get("STRETTO_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def data() -> Path:
    """The folder of real event data."""
    if not DATA.is_dir():
        pytest.skip(f"no real event data at {DATA} (set STRETTO_DATA)")
    return DATA


def cases(most: int) -> int:
    """How many random cases to try: ``most``, or fewer where kernels run uncompiled or bounds-checked."""
    return max(50, most // 10) if os.environ.get("NUMBA_DISABLE_JIT") == "1" else most
