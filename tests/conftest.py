"""Settings for all tests, and the profile: how much is tried.

``STRETTO_CASES`` says how many random cases: ``tenth`` (unless said otherwise) or ``all``. Numba's own variables say how kernels
run: compiled, interpreted (``NUMBA_DISABLE_JIT=1``), bounds-checked (``NUMBA_BOUNDSCHECK=1``). Both are read here and nowhere
else; tests say what they try by :func:`cases` and :func:`size`, and ask :data:`COMPILED` where nothing else will do.

Random tests print their seed: a loop over seeds names the one that failed; hypothesis runs with the seed of the header, and
``--hypothesis-seed=N`` runs it again.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from numba.core import config as numba_config

from tests.spark import java

pytest_plugins = ["tests.spark.sessions"]

#: What a test runs is compiled, however long that takes; tests/project/test_compiling.py is about what comes before.
os.environ["STRETTO_COMPILE"] = "now"

T = TypeVar("T")

SHARES = {"tenth": 10, "all": 1}

#: Whether kernels, and the conditions of queries, are compiled.
COMPILED = not numba_config.DISABLE_JIT
MODE = "interpreted" if not COMPILED else "bounds-checked" if numba_config.BOUNDSCHECK else "compiled"

SHARE = os.environ.get("STRETTO_CASES", "tenth")
if SHARE not in SHARES:
    raise pytest.UsageError(f"STRETTO_CASES={SHARE} is none of {', '.join(SHARES)}")

#: As many cases as a test has anyway; so few are not thinned out.
FEWEST = 10


def cases(count: int, *, compiled: int | None = None) -> int:
    """How many random cases to try.

    Parameters
    ----------
    count
        How many there are where kernels are compiled. Interpreted, it is a tenth.
    compiled
        For cases that compile code of their own, a query's conditions, which takes longer than to run them: so many where
        that is compiled, and ``count`` where everything is interpreted.
    """
    if compiled is None:
        most = count if COMPILED else max(count // 10, min(count, FEWEST))
    else:
        most = compiled if COMPILED else count
    return max(most // SHARES[SHARE], min(most, FEWEST))


def blocks(count: int, most: int = 400) -> list[range]:
    """The numbers below ``count`` in ranges, for the workers of a run to share."""
    return [range(first, min(first + most, count)) for first in range(0, count, most)]


def seeds(*these: T) -> tuple[T, ...]:
    """The seeds, or cases, of a test that takes seconds for each: all of them, or the first where a tenth is tried."""
    return these if SHARE == "all" else these[:1]


def size(count: int, interpreted: int) -> int:
    """How large to make something: ``count``, and ``interpreted`` where kernels are."""
    return count if COMPILED else interpreted


def compiling(**more: str) -> dict[str, str]:
    """The environment of a process that compiles kernels, whatever this one does."""
    return {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"} | more


def interpreting(**more: str) -> dict[str, str]:
    """The environment of a process whose kernels run as Python."""
    return dict(os.environ) | more | {"NUMBA_DISABLE_JIT": "1"}


settings.register_profile(
    "stretto",
    deadline=None,
    max_examples=cases(100),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("stretto")

os.environ.setdefault("SPARK_SUBMIT_OPTS", java.options(short=SHARE != "all"))

DATA = Path(os.environ.get("STRETTO_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """One seed for hypothesis in all workers: they get the options of the process that starts them."""
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = random.randrange(2**32)


def pytest_report_header(config: pytest.Config) -> str:
    """What is tried, and the seed."""
    return f"stretto: {MODE}, {SHARE} of the random cases, --hypothesis-seed={config.option.hypothesis_seed}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what names of files say, what needs a broker, and as ``seeds`` the files that draw random cases."""
    for item in items:
        module = getattr(item, "module", None)
        name = item.path.stem
        if name.endswith("_fuzz"):
            item.add_marker(pytest.mark.fuzz)
        elif hasattr(module, "cases"):
            item.add_marker(pytest.mark.seeds)
        if name.startswith("test_benchmarks"):
            item.add_marker(pytest.mark.benchmark)
        if {"kafka", "kafka_jars"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture
def data() -> Path:
    """The folder of real event data."""
    if not DATA.is_dir():
        pytest.skip(f"no real event data at {DATA} (set STRETTO_DATA)")
    return DATA
