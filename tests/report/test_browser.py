"""The page in headless Chromium: charts are drawn, read off, zoomed; nothing is loaded or fails.

Set REGBAYES_SCREENSHOTS to a folder to keep pictures of the page.
"""

import json
import os
import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regbayes.datasets import make_switching_labels
from regbayes.hmm import MaxMarginInfiniteHMM
from tests.report.conftest import HOSTILE

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
]

SIGNAL = "#signal svg[tabindex]"
DESKTOP = {"width": 1100, "height": 900, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


@pytest.fixture(scope="module")
def chromium():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(families, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        name: model.report(X, y, folder / f"{name}.html").as_uri()
        for name, (model, X, y) in families.items()
    }


@pytest.fixture
def open_page(chromium):
    """Opens an address on a screen, and in the end looks for errors and requests."""

    def opened(address, screen=DESKTOP, scheme="light"):
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        chromium.get(address)
        return chromium

    chromium.get_log("browser"), chromium.get_log("performance")
    yield opened
    assert chromium.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert sent
    assert all(event["request"]["url"].startswith("file:") for event in sent)


def window(page):
    svg = page.find_element(By.CSS_SELECTOR, SIGNAL)
    return float(svg.get_attribute("data-from")), float(svg.get_attribute("data-to"))


def tip(page):
    return page.find_element(By.ID, "tip").text


def scroll_to(page, node):
    """And wait until the page has heard of it, a frame later: whoever scrolls loses the tip."""
    page.execute_async_script(
        "arguments[0].scrollIntoView({block: 'center'});"
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[1], 0)))",
        node,
    )


def press(page, *keys):
    for key in keys:
        page.find_element(By.CSS_SELECTOR, SIGNAL).send_keys(key)


def background(page):
    return page.execute_script("return getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_of_every_family_is_drawn(pages, open_page, screen, scheme):
    for name, address in pages.items():
        page = open_page(address, screen, scheme)
        charts = page.find_elements(By.CSS_SELECTOR, "figure .chart")
        assert charts, name
        for chart in charts:
            marks = chart.find_elements(By.CSS_SELECTOR, "rect, circle, polyline, path")
            assert len(marks) > 0, name
            drawing = chart.find_element(By.CSS_SELECTOR, "svg[aria-label]")
            assert drawing.size["width"] > 100, name
            assert "NaN" not in chart.get_attribute("innerHTML"), name
            assert "undefined" not in chart.get_attribute("innerHTML"), name
        wide, room = page.execute_script(
            "return [document.documentElement.scrollWidth, innerWidth]"
        )
        assert wide <= room, name  # the page itself does not scroll sideways


def test_pointing_reads_off_the_step(pages, open_page, families):
    page = open_page(pages["chain"])
    svg = page.find_element(By.CSS_SELECTOR, SIGNAL)
    ActionChains(page).move_to_element(svg).perform()
    lines = dict(
        line.split(": ") if ": " in line else line.split(" ") for line in tip(page).split("\n")
    )
    model, X, y = families["chain"]
    step = int(lines["step"])
    assert 20 < step < 40  # of 60, near the middle
    assert float(lines["input 0"]) == pytest.approx(X[0][step, 0], rel=0.01)
    assert lines["label"] == y[0][step]
    assert lines["answer"] == model.predict(X)[0][step]
    assert int(lines["state"]) == model.decode(X)[0][step]
    ActionChains(page).move_to_element(page.find_element(By.TAG_NAME, "h1")).perform()
    assert not page.find_element(By.ID, "tip").is_displayed()


def test_cells_and_nodes_explain_themselves(pages, open_page):
    page = open_page(pages["chain"])
    for selector, word in (("#answers .cell", "answer"), ("#moves circle", "stays"), (".bar", ":")):
        node = page.find_element(By.CSS_SELECTOR, selector)
        scroll_to(page, node)
        ActionChains(page).move_to_element_with_offset(node, 3, 3).perform()
        assert word in tip(page)


def test_wheel_buttons_and_drag_zoom_and_move(pages, open_page):
    page = open_page(pages["chain"])
    svg = page.find_element(By.CSS_SELECTOR, SIGNAL)
    origin = webdriver.common.actions.wheel_input.ScrollOrigin.from_element(svg)
    assert window(page) == (0, 60)
    ActionChains(page).scroll_from_origin(origin, 0, -100).perform()
    low, high = window(page)
    assert 0 < low < high < 60
    svg = page.find_element(By.CSS_SELECTOR, SIGNAL)
    ActionChains(page).drag_and_drop_by_offset(svg, -60, 0).perform()
    assert window(page)[0] > low
    assert window(page)[1] - window(page)[0] == pytest.approx(high - low)
    button = {
        b.get_attribute("aria-label"): b
        for b in page.find_elements(By.CSS_SELECTOR, ".tools button")
    }
    button["Whole sequence"].click()
    assert window(page) == (0, 60)
    button["Zoom in"].click()
    assert window(page) == (15, 45)
    button["Later"].click()
    assert window(page) == (30, 60)
    button["Zoom out"].click()
    assert window(page) == (0, 60)
    page.find_element(By.CSS_SELECTOR, ".tools select").send_keys(Keys.ARROW_DOWN)
    assert window(page) == (0, 40)  # the second recording


def test_the_keyboard_reaches_and_reads_all(pages, open_page):
    page = open_page(pages["chain"])
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to the content"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    for _ in range(12):
        page.switch_to.active_element.send_keys(Keys.TAB)
        if page.switch_to.active_element.tag_name == "svg":
            break
    assert page.switch_to.active_element == page.find_element(By.CSS_SELECTOR, SIGNAL)
    press(page, "+")
    assert window(page) == (15, 45)
    assert page.switch_to.active_element.tag_name == "svg"  # a new drawing keeps the focus
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    spoken = page.find_element(By.CSS_SELECTOR, "[aria-live]").get_attribute("textContent")
    assert spoken.startswith("step 16")
    assert tip(page).startswith("step 16")
    press(page, Keys.ESCAPE, Keys.HOME)
    assert window(page) == (0, 60)
    assert not page.find_element(By.ID, "tip").is_displayed()


def test_tables_open_for_those_who_cannot_see_charts(pages, open_page):
    page = open_page(pages["mixture"])
    for details in page.find_elements(By.TAG_NAME, "details"):
        assert not details.find_element(By.TAG_NAME, "table").is_displayed()
        scroll_to(page, details)
        details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        assert details.find_element(By.TAG_NAME, "table").is_displayed()


def test_landmarks_and_names(pages, open_page):
    page = open_page(pages["chain"])
    for landmark in ("header", "nav[aria-label]", "main", "footer"):
        assert len(page.find_elements(By.CSS_SELECTOR, landmark)) == 1
    assert len(page.find_elements(By.TAG_NAME, "h1")) == 1
    for control in page.find_elements(By.CSS_SELECTOR, "button, select, a, svg[tabindex], .table"):
        assert control.accessible_name or not control.is_displayed()


def test_dark_and_light(pages, open_page):
    page = open_page(pages["mixture"], scheme="light")
    light = background(page)
    page.find_element(By.ID, "theme").click()
    dark = background(page)
    page.find_element(By.ID, "theme").click()
    assert background(page) == light != dark
    assert background(open_page(pages["mixture"], scheme="dark")) == dark


# Relative luminance and contrast of WCAG 2.
CONTRAST = """
const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = (css) => { const [r, g, b] = css.match(/[\\d.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
const around = (node) => { while (node) { const css = getComputedStyle(node).backgroundColor;
  if (!css.includes(", 0)")) return css; node = node.parentElement; } };
return [...document.querySelectorAll("h1, p, a, th, td, figcaption, summary, button, text.soft")]
  .map((node) => { const css = getComputedStyle(node);
    const [a, b] = [light(node.tagName === "text" ? css.fill : css.color), light(around(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); });
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(pages, open_page, scheme):
    ratios = open_page(pages["chain"], scheme=scheme).execute_script(CONTRAST)
    assert len(ratios) > 100
    assert min(ratios) > 4.5


def test_hostile_names_run_nothing(mixture, table, open_page, tmp_path):
    X, y = table
    path = mixture.report(X, y, tmp_path / "page.html", feature_names=[HOSTILE, "b"], title=HOSTILE)
    page = open_page(path.as_uri())
    assert page.title == HOSTILE
    assert page.find_element(By.TAG_NAME, "h1").text == HOSTILE
    assert not page.find_elements(By.TAG_NAME, "img")


def test_without_a_script_the_words_and_tables_remain(chromium, pages):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.get(pages["chain"])
        assert "labels are predicted right" in chromium.find_element(By.TAG_NAME, "main").text
        assert len(chromium.find_elements(By.TAG_NAME, "table")) > 5
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture(scope="module")
def showcase(tmp_path_factory):
    """A page worth a picture."""
    data = make_switching_labels((300, 200, 150), "sticky", means=[2.5, 0.0, -2.5], random_state=8)
    rng = np.random.default_rng(0)
    X = [np.column_stack([x, x[:, 0] / 2 + rng.normal(size=len(x))]) for x in data.data]
    y = [np.where(labels, "up", "down") for labels in data.target]
    model = MaxMarginInfiniteHMM(n_draws=300, burn_in=600, random_state=0).fit(X[:2], y[:2])
    return model.report(
        X,
        y,
        tmp_path_factory.mktemp("showcase") / "page.html",
        title="Three recordings of a switching signal",
        feature_names=["voltage", "pressure"],
    ).as_uri()


@pytest.mark.skipif("REGBAYES_SCREENSHOTS" not in os.environ, reason="no folder for pictures")
def test_screenshots(showcase, open_page):
    for look, screen in (
        ("desktop", DESKTOP | {"height": 1150}),
        ("phone", PHONE | {"height": 1500}),
        ("dark", DESKTOP | {"height": 1150}),
    ):
        page = open_page(showcase, screen, "dark" if look == "dark" else "light")
        if look != "phone":
            ActionChains(page).move_to_element(page.find_element(By.CSS_SELECTOR, SIGNAL)).perform()
        path = Path(os.environ["REGBAYES_SCREENSHOTS"], f"report-{look}.png")
        picture = Image.open(BytesIO(page.get_screenshot_as_png())).convert("RGB")
        picture.quantize(128).save(path, optimize=True)
        assert 10_000 < path.stat().st_size < 200_000
