"""The documentation site and its generated parts."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.site import commands
from tools.site.build import ROOT, SITE, build, make_first_page, name_files_outside

from pario.cli import COMMANDS
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

SUPPORTED = (ROOT / "docs" / "supported.md").read_text()
#: The pages that compare features, each of pario's with its test.
COMPARED = {name: (ROOT / "docs" / name).read_text() for name in ("loaders.md", "savers.md")}
TESTS = sorted(set(re.findall(r"`(tests/[^`]+)`", SUPPORTED + "".join(COMPARED.values()))))


@pytest.mark.parametrize("named", TESTS)
def test_a_test_that_a_page_of_systems_or_features_names_exists(named: str) -> None:
    path, _, function = named.partition("::")
    assert (ROOT / path).is_file()
    assert f"def {function}(" in (ROOT / path).read_text() or not function


def test_each_row_of_supported_systems_is_tested_or_says_so() -> None:
    rows = [line for line in SUPPORTED.splitlines() if line.startswith("| ")]
    untested = [row for row in rows if "`tests/" not in row]
    honest = re.compile(r"not tested|by hand| no \||, no, |needs 3.11|tests \|$")
    assert [row for row in untested if not honest.search(row)] == []


#: The names of MPIs in tests, by the row that says that they are tested.
MPI_ROWS = {
    "MPICH 5": ["mpich-5"],
    "the standard ABI (`mpicc_abi`)": ["abi"],
    "Open MPI 5": ["openmpi-5"],
    "MPICH 4, Open MPI 4": ["mpich-4", "openmpi-4"],
    "Intel MPI 2021": ["intel-mpi"],
}


def collect(marks: str) -> list[str]:
    """Returns the tests of a tier among those that the page of systems names."""
    named = sorted(set(re.findall(r"`(tests/[^`]+\.py[^`]*)`", SUPPORTED)))
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", marks, *named]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    listing = run_command([*words, "-p", "no:cacheprovider"], cwd=ROOT, env=kept, status=0).stdout
    return [line for line in listing.splitlines() if line.startswith("tests/")]


@pytest.mark.system
def test_each_row_of_supported_systems_is_tested_in_the_tier_that_it_names() -> None:
    tiers = {"CI": collect("not exhaustive"), "full": collect("exhaustive or not exhaustive")}
    rows = [line.strip("| ").split(" | ") for line in SUPPORTED.splitlines() if "`tests/" in line]
    wrong = []
    for name, *cells in (row for row in rows if len(row) > 2):
        tier = "CI" if any(cell.startswith("CI") for cell in cells) else "full"
        tests = tuple(re.findall(r"`(tests/[^`]+\.py[^`]*)`", cells[-1]))
        found = [test for test in tiers[tier] if test.startswith(tests)]
        for word in MPI_ROWS.get(name, [""]):
            if tests and not any(word in test for test in found):
                wrong.append(f"{name}: no test of {word or 'it'} in {tier}")
    assert wrong == []
    assert sum(name in MPI_ROWS for name, *_ in rows) == len(MPI_ROWS)


def test_the_readme_names_systems_that_have_a_row() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    _, _, named = readme.partition("for every dynamically linked program: ")
    named = named.partition(" ([supported systems]")[0].replace("untested: ", "")
    kinds = {"serial", "threaded", "MPI"}
    systems = {one.strip(" ();") for one in re.split(r"[,;(]", named)} - kinds
    assert "Rust" in systems
    assert {one for one in systems if one not in SUPPORTED} == set()


@pytest.mark.parametrize("page", COMPARED)
def test_each_feature_of_pario_names_its_test(page: str) -> None:
    rows = [line for line in COMPARED[page].splitlines() if line.startswith("| ")][1:]
    cells = [row.split(" | ")[1].rstrip(" |") for row in rows]
    assert [one for one in cells if not re.search(r"\[\d+\]$", one) and one != "no"] == []
    used = {int(number) for one in cells for number in re.findall(r"\[(\d+)\]", one)}
    assert used == {int(number) for number in re.findall(r"^(\d+)\. ", COMPARED[page], re.M)}


def test_the_command_line_page_has_all_commands() -> None:
    page = commands.write_page()
    assert all(f"### pario {name}\n" in page for name in COMMANDS)
    assert "#### pario records shuffle\n" in page


def list_pages_to_read() -> list[Path]:
    """The pages of the site that are not reference; its first page is README.md."""
    site = (ROOT / "mkdocs.yml").read_text()
    before, _, rest = site.partition("  - Reference:\n")
    after = rest[rest.index("  - Explanation:\n") :]
    names = re.findall(r"\S+\.md$", before + after, re.MULTILINE)
    return [ROOT / ("README.md" if name == "index.md" else f"docs/{name}") for name in names]


@pytest.mark.parametrize("page", list_pages_to_read(), ids=lambda page: page.stem)
def test_a_page_that_is_not_reference_has_two_screens_at_most(page: Path) -> None:
    """README.md has one. A screen has 65 lines of 100 columns. Folded parts and comments do not
    count."""
    hidden = r"<details.*?</details>|<!--.*?-->\n"
    shown = re.sub(hidden, "", page.read_text(), flags=re.DOTALL)
    lines = sum(1 + (len(line) - 1) // 100 if line else 1 for line in shown.splitlines())
    assert lines <= (65 if page.name == "README.md" else 130)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")], ids=lambda page: page.stem
)
def test_a_block_of_code_begins_after_an_empty_line_or_a_title(page: Path) -> None:
    """Indented lines after a line of text belong to its paragraph."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    glued = re.findall(r"^(?![-*#|>:]|\d+\. )(\S.*)\n {4}(?=\S)", text, re.MULTILINE)
    assert glued == []


def test_links_out_of_the_site_become_names_of_files() -> None:
    text = "See [the core](../src/README.md) and [findings](findings.md#top)."
    expected = "See the core (`src/README.md`) and [findings](findings.md#top)."
    assert name_files_outside(text, Path("docs")) == expected


def test_the_first_page_is_the_readme() -> None:
    text = "![A](docs/images/a.png) See [hints](docs/how-to/a.md#b) and [rules](CONTRIBUTING.md)."
    expected = "![A](images/a.png) See [hints](how-to/a.md#b) and rules (`CONTRIBUTING.md`)."
    assert make_first_page(text) == expected


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the site, which is built first."""
    pytest.importorskip("zensical", reason="zensical is not installed")
    pytest.importorskip("selenium", reason="selenium is not installed")
    from tests.python.test_report_browser import DRIVER, webdriver

    build()
    options = webdriver.ChromeOptions()
    for option in ("headless=new", "no-sandbox", "disable-gpu", "window-size=1280,900"):
        options.add_argument(f"--{option}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


@pytest.mark.system
@pytest.mark.browser
def test_the_site_opens_and_finds_words_without_a_network(browser: Any, tmp_path: Path) -> None:
    browser.get((SITE / "index.html").as_uri())
    assert search(browser, "Slurm")[0].endswith("how-to/slurm.html")
    browser.save_screenshot(tmp_path / "search.png")


#: Lists the faults of a page: parts beyond the right edge that nothing scrolls to, and absent
#: pictures.
CUT = """
const width = document.documentElement.clientWidth;
const scrolls = (node) => node && (["auto", "scroll"].includes(getComputedStyle(node).overflowX)
  || scrolls(node.parentElement));
const parts = document.querySelectorAll("article :is(table, pre, img, p, li, h1, h2, h3)");
const cut = [...parts].filter((part) => part.getBoundingClientRect().right > width + 1
  && !scrolls(part)).map((part) => part.tagName + " " + part.textContent.slice(0, 60));
const absent = [...document.images].filter((picture) => !picture.naturalWidth);
return [document.documentElement.scrollWidth > width ? ["the page"] : [], cut,
  absent.map((picture) => picture.src)].flat();
"""


@pytest.mark.system
@pytest.mark.browser
def test_no_page_of_the_site_is_cut_on_a_phone(browser: Any) -> None:
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        found = {}
        for page in sorted(SITE.rglob("*.html")):
            browser.get(page.as_uri())
            found[page.name] = browser.execute_script(CUT)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {name: cut for name, cut in found.items() if cut} == {}
    assert len(found) > 50


def search(driver: object, words: str) -> list[str]:
    """Types words into the search of the page; returns the addresses of the results."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    find = (
        "const found = []; const walk = (node) => { if (node.shadowRoot) walk(node.shadowRoot);"
        " for (const child of node.children || []) {"
        " if (child.tagName == 'A' && node.getRootNode() != document) found.push(child.href);"
        " walk(child); } }; walk(document.documentElement); return found"
    )
    wait = WebDriverWait(driver, PATIENCE)
    wait.until(lambda seen: seen.find_elements(By.CSS_SELECTOR, ".md-search__button"))
    driver.find_element(By.CSS_SELECTOR, ".md-search__button").click()
    wait.until(lambda seen: seen.execute_script("return document.activeElement.shadowRoot"))
    ActionChains(driver).send_keys(words).perform()
    return wait.until(
        lambda seen: (
            [one for one in seen.execute_script(find) if "slurm" in one]
            and seen.execute_script(find)
        )
    )
