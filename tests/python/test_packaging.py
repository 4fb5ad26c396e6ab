"""The recipes of packaging/ have a valid syntax, and the versions of the changelog and project."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging"
RECIPES = sorted(p for p in FOLDER.rglob("*") if p.is_file() and p.name != "README.md")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
#: The versions of the changelog, the latest one first: that of the files that have no other source.
RELEASES = re.findall(r"^## (\d\S*)", CHANGELOG, re.MULTILINE)
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def lower_bounds() -> list[tuple[str, str]]:
    """The dependencies and their lowest versions."""
    return find_lower_bounds(PROJECT["dependencies"])


def lower_bounds_of_builds() -> list[tuple[str, str]]:
    """The requirements of a build and their lowest versions, without pip, which has none."""
    return find_lower_bounds(SETTINGS["build-system"]["requires"])


def find_lower_bounds(requirements: list[str]) -> list[tuple[str, str]]:
    found = [re.match(r"([\w-]+)>=([\d.]+)", text) for text in requirements]
    return [(match[1], match[2]) for match in found if match]


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


#: Instructions of a Dockerfile, and sections of a definition for Apptainer.
INSTRUCTIONS = {"ARG", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "WORKDIR"}
SECTIONS = {"%files", "%post", "%runscript", "%test", "%environment", "%labels"}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_that_was_never_built_says_untested(recipe: Path) -> None:
    """A recipe that was built says by which version, here and in its first line."""
    assert "untested" in "\n".join(recipe.read_text(encoding="utf-8").splitlines()[:2])
    assert f"`{recipe.relative_to(FOLDER)}`" in read("README.md")


@pytest.mark.parametrize(
    "name", ["spack/package.py", f"easybuild/pario-{RELEASES[0]}-foss-2023b.eb"]
)
def test_recipes_in_python_have_its_syntax(name: str) -> None:
    tree = ast.parse(read(name))
    assert RELEASES[0] in read(name)
    assert len(tree.body) > 1


def test_the_spack_recipe_has_the_requirements_of_the_project() -> None:
    recipe = read("spack/package.py")
    for name, lowest in lower_bounds():
        assert f'"py-{name}@{lowest}:"' in recipe
    for name, lowest in lower_bounds_of_builds():
        assert f'"py-{name}@{lowest}:", type="build"' in recipe
    assert f'"python@{PROJECT["requires-python"].removeprefix(">=")}:"' in recipe


def test_the_conda_recipe_has_the_requirements_of_the_project() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    recipe = yaml.safe_load(read("conda-forge/recipe.yaml"))
    assert recipe["context"]["version"] == RELEASES[0]
    builds = [f"{name} >={lowest}" for name, lowest in lower_bounds_of_builds()]
    # A version of Python in `host` would make one package of all; a bare name makes one for each.
    assert recipe["requirements"]["host"] == ["python", "pip", *builds, "zstd-static"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f'match(python, "<{oldest}")' in recipe["build"]["skip"]
    runs = [f"{name} >={lowest}" for name, lowest in lower_bounds()]
    assert recipe["requirements"]["run"] == [f"python {PROJECT['requires-python']}", *runs]


def test_rattler_build_renders_the_conda_recipe(tmp_path: Path) -> None:
    """As conda-forge does before a build, with names of its compilers; it builds nothing."""
    rattler = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    variants = tmp_path / "variants.yaml"
    compilers = {"c_compiler": "gcc", "cxx_compiler": "gxx", "c_stdlib": "sysroot"}
    lines = [*(f"{name}: [{one}]" for name, one in compilers.items()), "python: ['3.12.*']"]
    variants.write_text("\n".join(lines) + "\n")
    recipe = rattler.Stage0Recipe.from_file(FOLDER / "conda-forge/recipe.yaml")
    [rendered] = recipe.render(rattler.VariantConfig.from_file(variants))
    made = rendered.recipe.to_dict()
    assert made["package"] == {"name": PROJECT["name"], "version": RELEASES[0]}
    assert made["requirements"]["build"][:2] == ["gcc_linux-64", "gxx_linux-64"]
    assert "${{" not in str(made["requirements"])
    script = made["build"]["script"]
    assert script.startswith("${{ PYTHON }} -m pip install . --no-deps --no-build-isolation")


def test_the_easybuild_recipe_has_the_requirements_of_the_project() -> None:
    recipe: dict[str, list[tuple[str, str]]] = {}
    exec(read(f"easybuild/pario-{RELEASES[0]}-foss-2023b.eb"), recipe)
    listed = [*recipe["dependencies"], *recipe["exts_list"]]
    known = {one[0].replace("_", "-"): one[1] for one in listed} | {"setuptools-scm": "8.0.4"}
    for name, lowest in [
        ("Python", PROJECT["requires-python"].removeprefix(">=")),
        *lower_bounds_of_builds(),
    ]:
        assert numbers(known[name]) >= numbers(lowest), name
    assert {"CMake", "Ninja", "zstd"} == {one[0] for one in recipe["builddependencies"]}


def test_the_page_of_the_installation_lists_the_extras_for_users() -> None:
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z]+)` \| ", page, re.MULTILINE)
    assert sorted(listed) == sorted(
        set(PROJECT["optional-dependencies"]) - {"test", "docs", "lint"}
    )


def test_the_module_file_in_tcl_is_complete() -> None:
    if (shell := shutil.which("tclsh")) is None:
        pytest.skip("tclsh is not installed")
    command = f"puts [info complete [read [open {FOLDER / 'modules/pario'}]]]"
    done = subprocess.run([shell], input=command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_the_module_file_in_lua_has_its_syntax() -> None:
    compiler = next(filter(shutil.which, ("luac", "luac5.4", "luac5.3")), None)
    if compiler is None:
        pytest.skip("luac is not installed")
    subprocess.run([compiler, "-p", FOLDER / "modules/pario.lua"], check=True)


def test_containers_have_known_instructions() -> None:
    lines = [line for line in read("containers/Dockerfile").splitlines() if line[:1] not in "# "]
    assert {line.split()[0] for line in lines} <= INSTRUCTIONS
    lines = [line for line in read("containers/pario.def").splitlines() if line.startswith("%")]
    assert {line.split()[0] for line in lines} <= SECTIONS


def test_module_files_and_citation_name_the_version() -> None:
    for path in (FOLDER / "modules/pario", FOLDER / "modules/pario.lua", ROOT / "CITATION.cff"):
        assert RELEASES[0] in path.read_text(encoding="utf-8")


def test_the_citation_has_the_keys_that_readers_require() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
