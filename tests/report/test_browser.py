"""The page of a report in a real browser: it sorts, it fits, it is quiet, and nothing leaves it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from mipmech.report import report
from tests.report.comparisons import made_up, real
from tests.report.runs import HOSTILE, TINY, hostile, keep

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not here"),
]
# Quiet, alone, and without what containers lack.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
# What a page may fetch: itself, and pictures that it holds.
LOCAL = ("file:", "data:", "about:", "blob:")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A real comparison with pictures, one whose every name is an attack, and such a batch."""
    place = tmp_path_factory.mktemp("pages")
    found = real(place / "real", TINY)
    problems = [replace(p, name=name) for p, name in zip(found.problems, HOSTILE, strict=False)]
    keep(replace(found, problems=tuple(problems)), place / "real")
    keep(made_up(8, HOSTILE[:4], names=HOSTILE), place / "hostile")
    keep(made_up(9, ("exact", "slow", "luck"), groups=3), place / "plain")
    hostile().write(place / "batch")
    names = ("real", "hostile", "plain", "batch")
    for name in names:
        report(place / name, place / f"{name}.html")
    return {name: (place / f"{name}.html").as_uri() for name in names}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(30)
    yield driver
    driver.quit()


def wide(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )


def preferring(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def opened(browser, url, width=1400):
    """Open a page afresh, with no memory of the last one."""
    wide(browser, width)
    preferring(browser, "light")
    browser.get(url)
    browser.execute_script("try { localStorage.clear(); } catch {}")
    browser.get(url)


def column(browser, table, place):
    script = """
    return Array.from(document.querySelectorAll(`#table-${arguments[0]} tbody tr`))
      .filter((row) => !row.hidden).map((row) => row.cells[arguments[1]].dataset.value ?? null);
    """
    return browser.execute_script(script, table, place)


def head(browser, table, place):
    return browser.find_elements("css selector", f"#table-{table} thead tr:last-child th")[place]


def heads(browser, table):
    found = browser.find_elements("css selector", f"#table-{table} thead tr:last-child th")
    return [entry.text for entry in found]


def numbers(values):
    return [float(value) for value in values]


def test_tables_sort_by_mouse_and_by_keyboard(browser, pages):
    opened(browser, pages["plain"])
    names = heads(browser, "instances")
    place = names.index("at least")
    before = column(browser, "instances", place)
    button = head(browser, "instances", place).find_element("css selector", "button")
    button.click()
    down = column(browser, "instances", place)
    assert down != before
    assert numbers(down) == sorted(numbers(before), reverse=True)
    assert head(browser, "instances", place).get_attribute("aria-sort") == "descending"
    button.send_keys("\ue007")  # Enter
    assert numbers(column(browser, "instances", place)) == sorted(numbers(before))
    assert head(browser, "instances", place).get_attribute("aria-sort") == "ascending"
    button.send_keys(" ")
    assert column(browser, "instances", place) == down
    assert browser.switch_to.active_element == button
    # By group, then the order within each group must still be the one by gain.
    group = names.index("group")
    head(browser, "instances", group).find_element("css selector", "button").click()
    rows = list(
        zip(
            column(browser, "instances", group),
            numbers(column(browser, "instances", place)),
            strict=True,
        )
    )
    assert rows == sorted(rows, key=lambda row: (row[0], -row[1]))
    assert head(browser, "instances", place).get_attribute("aria-sort") == "none"
    assert head(browser, "instances", group).get_attribute("aria-sort") == "ascending"


def test_nothing_comes_last_when_sorted(browser, pages):
    opened(browser, pages["plain"])
    place = heads(browser, "oracles").index("seeds differ by")
    for _ in range(2):
        head(browser, "oracles", place).find_element("css selector", "button").click()
        values = column(browser, "oracles", place)
        assert values[0] is not None
        assert values[-2:] == [None, None]


def test_a_group_and_an_oracle_can_be_chosen(browser, pages):
    from selenium.webdriver.support.ui import Select

    opened(browser, pages["plain"])
    Select(browser.find_element("name", "group")).select_by_value("group-1")
    assert set(column(browser, "instances", 1)) == {"group-1"}
    assert browser.find_element("css selector", "form.filter output").text == "3 instances"
    Select(browser.find_element("name", "oracle")).select_by_value("luck")
    assert [name for name in heads(browser, "questions") if name][-2:] == ["level", "luck"]
    Select(browser.find_element("name", "group")).select_by_value("")
    Select(browser.find_element("name", "oracle")).select_by_value("")
    assert len(column(browser, "instances", 1)) == 9
    assert heads(browser, "questions")[-3:] == ["exact", "slow", "luck"]


def test_a_batch_sorts_and_each_part_has_a_choice_of_its_own(browser, pages):
    from selenium.webdriver.support.ui import Select

    opened(browser, pages["batch"])
    place = heads(browser, "certify").index("at most")
    before = numbers(column(browser, "certify", place))
    head(browser, "certify", place).find_element("css selector", "button").click()
    assert numbers(column(browser, "certify", place)) == sorted(before, reverse=True) != before
    own, compared = browser.find_elements("css selector", "form.filter")
    Select(own.find_element("name", "group")).select_by_index(1)
    assert len(column(browser, "certify", place)) == len(before) / 2
    rows = "return document.querySelectorAll('#c1-table-instances tbody tr:not([hidden])').length"
    assert browser.execute_script(rows) == 2
    Select(compared.find_element("name", "group")).select_by_index(1)
    assert browser.execute_script(rows) == 1
    assert compared.find_element("css selector", "output").text == "1 instances"


def test_pictures_have_a_size_and_texts(browser, pages):
    opened(browser, pages["real"])
    sizes = browser.execute_script("""
      return Array.from(document.querySelectorAll("figure > svg")).map((svg) => {
        const box = svg.getBoundingClientRect();
        return [box.width, box.height, svg.querySelectorAll("text").length,
          svg.querySelectorAll("path, use, image").length];
      });
    """)
    assert len(sizes) >= 7
    for width, height, texts, shapes in sizes:
        assert width > 150
        assert height > 100
        assert texts >= 4
        assert shapes >= 5
    lost = browser.execute_script("""
      return Array.from(document.querySelectorAll("use")).filter((use) =>
        !document.querySelector(use.getAttribute("href"))).length;
    """)
    assert lost == 0


def test_no_label_is_cut_off(browser, pages):
    for name in ("real", "plain"):
        opened(browser, pages[name])
        outside = browser.execute_script("""
          const found = [];
          for (const figure of document.querySelectorAll("figure")) {
            const frame = figure.getBoundingClientRect();
            for (const text of figure.querySelectorAll("svg text")) {
              const box = text.getBoundingClientRect();
              if (box.left < frame.left || box.right > frame.right) found.push(text.textContent);
            }
          }
          return found;
        """)
        assert outside == []


@pytest.mark.parametrize("name", ["real", "hostile", "plain", "batch"])
def test_nothing_sticks_out(name, browser, pages):
    for width in (375, 768, 1400):
        opened(browser, pages[name], width)
        found = browser.execute_script("""
          const root = document.documentElement;
          return [root.scrollWidth, document.body.scrollWidth, root.clientWidth];
        """)
        assert max(found) <= width, (width, found)
    # Tables that are wider than a phone scroll inside their own box.
    wide(browser, 375)
    inner = browser.execute_script("""
      return Array.from(document.querySelectorAll(".scroll")).map((box) =>
        [box.scrollWidth, box.clientWidth, getComputedStyle(box).overflowX]);
    """)
    assert any(content > box for content, box, _ in inner)
    assert {overflow for *_, overflow in inner} == {"auto"}


@pytest.mark.parametrize("name", ["real", "hostile", "batch"])
def test_strangers_names_do_nothing_and_are_seen(name, browser, pages):
    from selenium.common.exceptions import NoAlertPresentException

    opened(browser, pages[name])
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert  # noqa: B018
    assert browser.execute_script("return window.hacked") is None
    text = browser.find_element("tag name", "main").text
    assert HOSTILE[0] in text
    assert HOSTILE[1] in text
    assert browser.find_elements("css selector", "main img, main script") == []


def test_scripts_of_others_are_refused_by_the_page_itself(browser, pages):
    opened(browser, pages["plain"])
    browser.execute_script("""
      const script = document.createElement("script");
      script.textContent = "window.hacked = true";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked = true'>");
    """)
    assert browser.execute_async_script("setTimeout(arguments[0], 200)") is None
    assert browser.execute_script("return window.hacked") is None
    said = " ".join(entry["message"] for entry in browser.get_log("browser"))
    assert "Content Security Policy" in said


def test_quiet_and_offline(browser, pages):
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what others left
    for name, url in pages.items():
        opened(browser, url)
        browser.execute_script("window.scrollTo(0, document.body.scrollHeight)")
        assert browser.get_log("browser") == [], name
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert len([url for url in asked if url.startswith("file:")]) >= len(pages)
    assert [url for url in asked if not url.startswith(LOCAL)] == []


def colours(browser):
    return browser.execute_script("""
      const of = (choice, what) => getComputedStyle(document.querySelector(choice))[what];
      return [of("body", "backgroundColor"), of("body", "color"), of("figure svg text", "fill"),
        of(".scroll", "backgroundColor")];
    """)


def test_dark_by_preference_and_by_the_switch(browser, pages):
    opened(browser, pages["real"])
    light = colours(browser)
    assert light[2] == light[1]  # texts in pictures have the colour of the page's text
    preferring(browser, "dark")
    dark = colours(browser)
    assert not set(dark) & set(light)
    assert dark[2] == dark[1]

    def press(theme):
        browser.find_element("css selector", f".theme input[value={theme}]").click()

    press("light")
    assert colours(browser) == light
    preferring(browser, "light")
    press("dark")
    assert colours(browser) == dark
    browser.refresh()
    assert colours(browser) == dark  # remembered
    press("auto")
    assert colours(browser) == light


def test_without_a_memory_the_switch_still_works(browser, pages):
    opened(browser, pages["plain"])
    forbid = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": forbid})
    try:
        browser.get(pages["plain"])
        light = colours(browser)
        browser.find_element("css selector", ".theme input[value=dark]").click()
        assert colours(browser) != light
        assert browser.get_log("browser") == []
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
