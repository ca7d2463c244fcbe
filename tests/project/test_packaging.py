"""What is published: the recipe of conda says what the project says, and the wheel and the sources hold what they should."""

from __future__ import annotations

import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_recipe_of_conda_is_the_project() -> None:
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    needs = {line.replace(" ", "") for line in recipe["requirements"]["run"]} - {"python>=${{python_min}}"}
    assert needs == set(PROJECT["dependencies"])
    (command,) = recipe["build"]["python"]["entry_points"]
    assert PROJECT["scripts"] == dict([command.split(" = ")])
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_the_oldest_numba_is_tested() -> None:
    (need,) = (line for line in PROJECT["dependencies"] if line.startswith("numba>="))
    pinned = (ROOT / "tests/numba/oldest.txt").read_text().splitlines()
    assert f"numba=={need.removeprefix('numba>=').partition(',')[0]}.0" in pinned


def test_wheel_and_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are built from the tree as it is, without anything of the network."""
    build = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("STRETTO_KERNELS", raising=False)
    version = PROJECT["version"]
    assert build.build_wheel(str(tmp_path)) == f"stretto-{version}-py3-none-any.whl"
    with ZipFile(tmp_path / f"stretto-{version}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        package = {name for name in names if not name.startswith(f"stretto-{version}.dist-info/")}
        description = wheel.read(f"stretto-{version}.dist-info/METADATA").decode()
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/stretto").rglob("*.py")}
    assert sources <= package
    assert all(name.startswith("stretto/") and "__pycache__" not in name for name in package)
    assert "stretto/py.typed" in package
    assert not [name for name in package if "reference" in Path(name).parts]  # the judge of the tests stays with them
    assert "](docs/" not in description
    assert build.build_sdist(str(tmp_path)) == f"stretto-{version}.tar.gz"
    with tarfile.open(tmp_path / f"stretto-{version}.tar.gz") as archive:
        kept = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "packaging/kernels.py", "LICENSE"} <= kept
    assert not any(name.startswith((".venv", "out/", "dist/", "build/")) for name in kept)
