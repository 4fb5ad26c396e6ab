"""The HTML page in a real browser. Screenshots are kept in build/screenshots."""

from __future__ import annotations

import base64
import io
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.see.analyze.model import Analysis, LoaderRow
from pario.see.report import html
from pario.see.report.html import comparison, survey
from tests.python.support import analyses, surveys
from tests.python.test_compare import rich_comparison
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.system]
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    pytest.skip("chromium and chromedriver are not installed", allow_module_level=True)

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402


def training() -> Analysis:
    """A training that waits for one loader in the first bins of each epoch of 50 bins, and for
    another one all the time."""
    epochs = tuple(0.9 if column % 50 < 5 else 0.0 for column in range(analyses.BINS))
    rows = (("Images", 4, epochs), ("SomeDatasetWithALongName", 0, (0.25,) * analyses.BINS))
    loaders = tuple(
        LoaderRow(
            loader="DataLoader",
            data=data,
            loops=2,
            workers=workers,
            batch_size=32,
            batches=1200,
            first_seconds=3.0,
            waited=18.0,
            worked=60.0,
            stalled=18 / 78,
            longest=0.5,
            samples_per_second=480.0,
            wait_share=shares,
        )
        for data, workers, shares in rows
    )
    return replace(analyses.rich(10), loaders=loaders)


SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
STILL = {"name": "prefers-reduced-motion", "value": "reduce"}
PAGES = {
    "small": analyses.small,
    "empty": analyses.empty,
    "healthy": analyses.healthy,
    "10-ranks": lambda: analyses.rich(10),
    "1000-ranks": lambda: analyses.rich(1000),
    "training": training,
    "hostile": analyses.hostile,
}
COMPARISONS = {"comparison": rich_comparison}
SURVEYS = {"survey": lambda: surveys.many(300), "hostile-survey": surveys.hostile}


def render(name: str) -> str:
    if name in SURVEYS:
        return survey.render(SURVEYS[name](), ["/logs"])
    if name in COMPARISONS:
        return comparison.render(COMPARISONS[name]())
    return html.render(PAGES[name]())


class Browser:
    """A headless chromium and the pages."""

    def __init__(self, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ):
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={folder / 'profile'}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.driver.set_script_timeout(PATIENCE)
        self.folder = folder

    def command(self, name: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, arguments)

    def open(
        self,
        name: str,
        width: int = 1280,
        height: int = 800,
        theme: str = "light",
        script: bool = True,
    ) -> None:
        path = self.folder / f"{name}.html"
        if not path.exists():
            path.write_text(render(name), encoding="utf-8")
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": theme}, STILL],
        )
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.driver.get(path.as_uri())
        self.command("Emulation.setScriptExecutionDisabled", value=False)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def hover(self, selector: str, right: float = 0.5, down: float = 0.5) -> None:
        """Moves the pointer to a place in an element, in fractions of its width and height."""
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        x, y = (
            round((right - 0.5) * element.size["width"]),
            round((down - 0.5) * element.size["height"]),
        )
        ActionChains(self.driver, duration=0).move_to_element_with_offset(element, x, y).perform()

    def tip(self) -> str:
        box = self.find("#tip")
        return box.text if box.is_displayed() else ""

    def picture(self, name: str, full: bool = False) -> Any:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        data = base64.b64decode(
            self.command("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        )
        (SCREENSHOTS / f"{name}.png").write_bytes(data)
        return Image.open(io.BytesIO(data)).convert("RGB")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.driver.quit()


@pytest.fixture(autouse=True)
def forget_the_theme(browser: Browser) -> Iterator[None]:
    yield
    browser.run("try { localStorage.clear() } catch {}")


@pytest.mark.parametrize("name", [*PAGES, *COMPARISONS, *SURVEYS])
def test_the_page_opens_without_errors(browser: Browser, name: str) -> None:
    browser.open(name)
    milliseconds = browser.run(
        "const [load] = performance.getEntriesByType('navigation'); return load.domComplete"
    )
    print(f"{name}: complete after {milliseconds:.0f} ms")
    assert browser.driver.get_log("browser") == []
    assert browser.find("h1").is_displayed()
    assert (
        browser.run(
            "return performance.getEntriesByType('resource').filter((entry) =>"
            " !entry.name.startsWith('data:')).length"
        )
        == 0
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("10-ranks", marks=pytest.mark.exhaustive),
        "1000-ranks",
        "training",
        "comparison",
        "survey",
    ],
)
@pytest.mark.parametrize(
    ("look", "width", "theme"),
    [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 360, "light")],
)
def test_the_page_is_not_blank_and_its_picture_is_kept(
    browser: Browser, name: str, look: str, width: int, theme: str
) -> None:
    browser.open(name, width, 800, theme)
    first = browser.picture(f"{name}-{look}")
    height = browser.run("return document.documentElement.scrollHeight")
    browser.command(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=False,
    )
    whole = browser.picture(f"{name}-{look}-whole")
    assert (first.getpixel((2, 300)) == (255, 255, 255)) == (theme == "light")
    assert count_colours(first) > 60
    assert count_colours(whole) > 300


def count_colours(picture: Any) -> int:
    """Counts the colours of a picture; a blank page has few."""
    red, green, blue = np.moveaxis(np.asarray(picture, dtype=np.uint32), -1, 0)
    return len(np.unique(red << 16 | green << 8 | blue))


def test_the_first_screen_is_the_verdict_and_the_top_findings(browser: Browser) -> None:
    browser.open("10-ranks", 1280, 800)
    bottoms = [
        browser.run("return arguments[0].getBoundingClientRect().bottom", browser.find(place))
        for place in ("h1", ".split", "#finding-2 h3")
    ]
    assert bottoms == sorted(bottoms)
    assert bottoms[-1] < 800
    assert browser.find("#finding-1 .cost b").text == "55.3 s"


@pytest.mark.parametrize("name", [*PAGES, *COMPARISONS, *SURVEYS])
@pytest.mark.parametrize("width", [360, 768])
def test_the_page_never_scrolls_sideways(browser: Browser, name: str, width: int) -> None:
    browser.open(name, width)
    browser.run(
        "document.querySelectorAll('details').forEach((details) => { details.open = true; })"
    )
    assert browser.run("return document.documentElement.scrollWidth") <= width


#: The edges of a table's box, the right edge of its last column and the left edge of its first one
#: after the box was scrolled to its end, and whether the keyboard reaches the box.
REACH = """
    const box = arguments[0].closest('.scroll');
    if (!box) return null;
    box.scrollIntoView({block: 'center'});
    box.scrollLeft = box.scrollWidth;
    const edge = (element) => element.getBoundingClientRect();
    const row = arguments[0].querySelector('tbody tr');
    const [first, last] = [edge(row.firstElementChild), edge(row.lastElementChild)];
    return [edge(box).left, edge(box).right, last.right, first.left, box.tabIndex === 0];
"""


@pytest.mark.parametrize("name", [*PAGES, *COMPARISONS, *SURVEYS])
def test_every_table_is_reachable_on_a_phone(browser: Browser, name: str) -> None:
    width = 390
    browser.open(name, width, 844)
    browser.run(
        "document.querySelectorAll('details').forEach((details) => { details.open = true; })"
    )
    assert browser.run("return document.documentElement.scrollWidth") <= width
    for table in browser.all("table"):
        reach = browser.run(REACH, table)
        assert reach, "a table outside of a box that scrolls"
        left, right, end, begin, by_keyboard = reach
        assert 0 <= left < right <= width and by_keyboard
        assert end <= right + 1 and abs(begin - left) <= 1, table.text[:100]


def test_runs_of_a_survey_are_sorted_and_filtered_by_any_column(browser: Browser) -> None:
    browser.open("survey")
    lost = (
        "return [...document.querySelectorAll('#file-table tbody tr')].map((row) => row.innerText)"
    )
    first = browser.run(lost)[0]
    assert "96.0 s" in first
    browser.click("#file-table thead th:first-child button")
    assert browser.run(lost)[0] != first
    browser.find("#file-filter").send_keys("user149")
    visible = [row for row in browser.all("#file-table tbody tr") if row.is_displayed()]
    assert len(visible) == 2
    assert all("user149" in row.text for row in visible)
    assert browser.find("#file-count").text == "2 of 300"


def test_pointing_at_the_heat_map_shows_rank_time_and_shares(browser: Browser) -> None:
    browser.open("10-ranks")
    browser.hover("#timeline svg", (25 + 0.5) / analyses.BINS, 3.5 / 10)
    timeline = analyses.rich(10).timeline
    assert timeline is not None
    assert browser.tip().startswith("rank 3, 15.35–15.96 s")
    assert f"{round(timeline.write_share[3][25] * 100)} % writing" in browser.tip()


@pytest.mark.parametrize("width", [360, 1280])
def test_waits_for_loaders_lie_below_the_ranks_and_zoom_with_them(
    browser: Browser, width: int
) -> None:
    browser.open("training", width)
    edges = "return ['left', 'right'].map((edge) => arguments[0].getBoundingClientRect()[edge])"
    ranks, waits = (browser.find(f"#{chart} svg") for chart in ("timeline", "loader-waits"))
    assert browser.run(edges, waits) == browser.run(edges, ranks)
    assert browser.run(edges, waits)[1] <= width
    for label in browser.all("#loader-waits .y .tick"):
        left, right = browser.run(edges, label)
        assert 0 <= left < right <= browser.run(edges, waits)[0]
    browser.hover("#loader-waits svg", 52.5 / analyses.BINS, 0.25)
    assert browser.tip() == "DataLoader(Images), 31.93–32.54 s\n90 % waiting for batches"
    browser.hover("#loader-waits svg", 80.5 / analyses.BINS, 0.25)
    assert browser.tip().endswith("no waits")
    browser.hover("#loader-waits svg", 80.5 / analyses.BINS, 0.75)
    assert browser.tip().startswith("DataLoader(SomeDatasetWithALongName), ")
    assert browser.tip().endswith("\n25 % waiting for batches")
    browser.click("[data-zoom='in']")
    assert shown_columns(browser, "#loader-waits") == shown_columns(browser, "#timeline") == 150


def test_pointing_at_the_bandwidth_shows_the_rate(browser: Browser) -> None:
    browser.open("10-ranks")
    browser.hover("#bandwidth svg", (25 + 0.5) / analyses.BINS, 0.5)
    timeline = analyses.rich(10).timeline
    assert timeline is not None
    assert (
        f"written {timeline.bytes_written[25] / timeline.bin_seconds / 1e9:.2f} GB/s"
        in browser.tip()
    )


def test_pointing_at_bars_and_the_contention_map_shows_values(browser: Browser) -> None:
    browser.open("10-ranks")
    browser.hover("#verdict .split rect.io")
    assert browser.tip() == "I/O: 91.2 s, 50 %"
    browser.hover("#sizes-posix rect.write")
    assert browser.tip() == "900 writes of 0-100 bytes"
    browser.hover("#contention-0 svg", 5.5 / 16, 0.05)
    assert browser.tip() == "rank 0, OST 0015: 1.00 GB"


def test_the_timeline_is_read_by_keyboard(browser: Browser) -> None:
    browser.open("10-ranks")
    browser.run("document.querySelector('#timeline svg').focus()")
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert browser.tip().startswith("rank 3, 0.614–1.228 s")
    browser.press("+")
    assert shown_columns(browser, "#timeline") == pytest.approx(150)
    assert shown_columns(browser, "#bandwidth") == pytest.approx(150)
    browser.press("0")
    assert shown_columns(browser, "#timeline") == pytest.approx(300)


def shown_columns(browser: Browser, chart: str) -> float:
    return float(browser.find(f"{chart} svg").get_dom_attribute("viewBox").split()[2])


def test_dragging_zooms_and_the_axis_follows(browser: Browser) -> None:
    browser.open("10-ranks")
    browser.hover("#timeline svg", 0.25)
    width = browser.find("#timeline svg").size["width"]
    ActionChains(browser.driver, duration=50).click_and_hold().move_by_offset(
        round(width / 4), 0
    ).release().perform()
    assert shown_columns(browser, "#timeline") == pytest.approx(75, abs=2)
    ticks = [float(tick.text) for tick in browser.all("#timeline .x .tick")]
    assert 45 <= min(ticks) <= max(ticks) <= 94
    browser.click("[data-zoom='all']")
    assert shown_columns(browser, "#timeline") == pytest.approx(300)


def test_a_phase_is_shown_in_the_timeline(browser: Browser) -> None:
    browser.open("10-ranks")
    browser.click("#over-time details summary")
    browser.click("[data-from]")
    phase = analyses.rich(10).phases[0]
    assert shown_columns(browser, "#timeline") == pytest.approx(
        (phase.end - phase.start) * 1.5 / (184.2 / 300), rel=0.01
    )


def test_the_heat_map_shows_one_kind_on_demand(browser: Browser) -> None:
    browser.open("10-ranks")
    visible = (
        "return [...document.querySelectorAll('#timeline image')].filter((image) =>"
        " getComputedStyle(image).display !== 'none').length"
    )
    assert browser.run(visible) == 1
    assert browser.find("#timeline image.all").is_displayed()
    browser.click("input[value='read']")
    assert browser.run(visible) == 1
    assert browser.find("#timeline image.read").is_displayed()


def test_the_keyboard_reaches_the_theme_and_it_changes(browser: Browser) -> None:
    browser.open("10-ranks")
    tab_until(browser, "document.activeElement.id === 'theme'")
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert browser.run(ground) == "rgb(255, 255, 255)"
    browser.press(Keys.ENTER, Keys.ENTER)
    assert browser.run(ground) == "rgb(21, 24, 29)"
    assert browser.find("#theme").get_attribute("aria-label") == "Colours: dark"
    browser.driver.refresh()
    assert browser.run(ground) == "rgb(21, 24, 29)"


def tab_until(browser: Browser, condition: str, most: int = 60) -> None:
    for _ in range(most):
        browser.press(Keys.TAB)
        outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        if browser.run(f"return {condition}"):
            return
    pytest.fail(f"{most} tabs did not reach: {condition}")


def test_the_keyboard_opens_the_evidence(browser: Browser) -> None:
    browser.open("10-ranks")
    tab_until(browser, "document.activeElement.closest('#finding-1 summary') !== null")
    assert "median write" not in browser.find("#finding-1").text
    browser.press(Keys.ENTER)
    assert "median write" in browser.find("#finding-1").text


def test_tables_are_sorted_filtered_and_folded(browser: Browser) -> None:
    browser.open("10-ranks")
    rows = (
        "return [...document.querySelectorAll('#file-table tbody tr')].filter((r) =>"
        " r.offsetHeight).map((r) => r.cells[0].innerText)"
    )
    assert len(browser.run(rows)) == 15
    assert "checkpoint_0001.h5" in browser.run(rows)[0]
    column("read", browser).click()
    assert (
        column("read", browser).find_element(By.XPATH, "..").get_attribute("aria-sort")
        == "descending"
    )
    assert "table_000.nc" in browser.run(rows)[0]
    column("read", browser).click()
    assert "table_000.nc" not in browser.run(rows)[0]
    browser.find("#file-filter").send_keys("table_25")
    assert len(browser.run(rows)) == 9
    assert browser.find("#file-count").text == "9 of 300"
    browser.find("#file-filter").send_keys(Keys.BACKSPACE * 8)
    browser.click("#files .more")
    assert len(browser.run(rows)) == 300


def column(name: str, browser: Browser) -> Any:
    return next(
        button
        for button in browser.all("#file-table thead button")
        if button.text.split(" ")[0] == name
    )


def test_all_is_there_without_the_script(browser: Browser) -> None:
    browser.open("10-ranks", script=False)
    rows = "return [...document.querySelectorAll('#file-table tbody tr')]"
    assert browser.run(f"{rows}.filter((row) => row.offsetHeight).length") == 300
    assert not [item for item in browser.all(".needs-script") if item.is_displayed()]
    assert browser.find("#timeline image.all").is_displayed()
    assert len(browser.all("#timeline .x .tick")) > 3
    browser.click("input[value='write']")
    assert browser.find("#timeline image.write").is_displayed()
    assert browser.all("svg title")


def test_names_from_a_log_run_no_script(browser: Browser) -> None:
    browser.open("hostile")
    assert browser.driver.get_log("browser") == []
    assert browser.run("return document.querySelectorAll('main script, main b.host').length") == 0
    assert "<script>alert(1)</script>.h5" in browser.find("#file-table").get_attribute(
        "textContent"
    )


def test_print_opens_the_details_and_leaves_out_the_controls(browser: Browser) -> None:
    browser.open("10-ranks")
    data = base64.b64decode(browser.command("Page.printToPDF", printBackground=False)["data"])
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / "10-ranks.pdf").write_bytes(data)
    assert data.startswith(b"%PDF")
    browser.command("Emulation.setEmulatedMedia", media="print")
    assert not [
        item
        for item in browser.all("main button:not(thead button), #theme, nav")
        if item.is_displayed()
    ]
    heights = browser.run(
        "return [...document.querySelectorAll('#finding-1 details > ul')].map((list) =>"
        " list.getBoundingClientRect().height)"
    )
    assert min(heights) > 0
    browser.command("Emulation.setEmulatedMedia", media="")
