#!/usr/bin/env python3
"""A page of `ration report -o` in a browser: it is drawn, tells what is pointed at, filters, sorts and zooms, by mouse and by
keyboard, and asks nothing of a network. PAGE_SHOTS: a folder for pictures of it."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import browser  # noqa: E402
from browser import Browser  # noqa: E402
from harness import MIB, expect, expect_that, main  # noqa: E402
from made_log import BASE, GIB, MadeLog, training  # noqa: E402
from page_test import HOSTILE, made, ration  # noqa: E402


def with_page(*fills, check):
    def case(folder):
        logs = [made(folder, f"{i}.jsonl", fill, pid=100 + i, start_unix_ns=1_700_000_000_000_000_000 + i * 300_000_000)
                for i, fill in enumerate(fills)]
        ration(folder, "report", *logs, "-o", "out.html")
        page = pathlib.Path(folder) / "out.html"
        with Browser(folder) as view:
            view.open(page)
            check(view)
            expect("complaints", view.complaints, [])
            expect("requests", [url for url in view.requests if not url.startswith("data:")], [page.as_uri()])
            if shots := os.environ.get("PAGE_SHOTS"):
                view.value("document.body.scrollIntoView()")
                view.screenshot(pathlib.Path(shots) / f"{check.__name__}.png")
    return case


def text(view, selector):
    return view.value(f"document.querySelector({selector!r}).textContent")


def is_in_first_screen(view, selector):
    return view.value(f"(() => {{ const at = document.querySelector({selector!r}).getBoundingClientRect();"
                      " return scrollY === 0 && at.height > 0 && at.top >= 0 && at.bottom <= innerHeight; })()")


def window_of_chart(view):
    return view.value("rationPage.chart.graph.xAxisRange()")


def overview(view):
    expect("the leak's name", text(view, "#top-leak-name"), "leak (leaky.py:12), from main (train.py:40)")
    expect_that("the leak is in the first screen", is_in_first_screen(view, "#top-leak-name"))
    expect_that("the chart begins in the first screen", is_in_first_screen(view, "#time-title"))
    expect_that("what would have helped", "a limit of" in text(view, "#remedies"))
    view.wait_for("document.querySelectorAll('#time-chart canvas').length > 0")
    inked = ("(() => { const it = document.querySelector(%r); const all = it.getContext('2d').getImageData(0, 0, it.width, it.height).data;"
             " return new Set(new Uint32Array(all.buffer)).size; })()")
    expect_that("the map has colours", view.value(inked % "#map-canvas") > 3)
    expect_that("the flame graph has frames", view.value("document.querySelectorAll('#flame > div').length") > 3)
    expect("rows of callers", view.value("document.querySelectorAll('#callers tbody tr').length"), 3)


def hover(view):
    view.mouse("mouseMoved", *view.middle("#time-chart"))
    view.wait_for("!document.querySelector('#tip').hidden")
    expect_that("values", all(word in text(view, "#tip") for word in ("used", "reserved", "limit", "held at")))
    view.mouse("mouseMoved", *view.middle("#map", y=0.1))
    view.wait_for("document.querySelector('#tip').textContent.includes('by load (loader.py:7)')")
    expect_that("the block's figures", all(word in text(view, "#map-values") for word in ("512 MiB", "age", "slab 1")))
    view.mouse("mouseMoved", *view.middle("#flame > div:nth-child(3)"))
    view.wait_for("document.querySelector('#tip').textContent.includes('of all')")
    view.mouse("mouseMoved", 2, 2)
    view.wait_for("document.querySelector('#tip').hidden")


def zooms(view):
    before = window_of_chart(view)
    view.drag(view.middle("#time-chart", x=0.4), view.middle("#time-chart", x=0.6))
    view.wait_for(f"rationPage.chart.graph.xAxisRange()[0] > {before[0]}")
    dragged = window_of_chart(view)
    expect_that("a fifth is shown", 0.1 < (dragged[1] - dragged[0]) / (before[1] - before[0]) < 0.3)
    x, y = view.middle("#time-chart")
    view.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
    view.wait_for(f"rationPage.chart.graph.xAxisRange()[0] > {dragged[0]}")
    view.key("0", text="0")
    view.wait_for(f"rationPage.chart.graph.xAxisRange()[1] >= {before[1]}")
    view.key("+", text="+")
    view.wait_for(f"rationPage.chart.graph.xAxisRange()[0] > {before[0]}")
    view.value("document.querySelector('#flame').focus()")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        view.key(key)
    view.wait_for("rationPage.flame.top !== rationPage.flame.root")
    view.key("Escape")
    view.mouse("mousePressed", *(at := view.middle("#flame > div:nth-child(4)")), button="left", clickCount=1)
    view.mouse("mouseReleased", *at, button="left", clickCount=1)
    view.wait_for("rationPage.flame.top.depth === 1")


def table(view):
    view.value("document.querySelector('#search').focus()")
    view.call("Input.insertText", text="leak")
    view.wait_for("document.querySelectorAll('#callers tbody tr').length === 1")
    expect("found", text(view, "#found"), "1 of 3")
    view.value("(() => { const it = document.querySelector('#search'); it.value = ''; it.dispatchEvent(new Event('input')); })()")
    view.value("document.querySelector('#callers [data-column=\"6\"]').click()")
    expect_that("sorted by what was left", text(view, "#callers tbody tr td").startswith("leak"))
    expect("said to those who do not see it", view.value("document.querySelector('#callers th[aria-sort=descending]').textContent"), "Never freed ▼")
    view.value("document.querySelector('#callers tbody td button').click()")
    expect("picked in the map", view.value("rationPage.map.picked"), "leak (leaky.py:12), from main (train.py:40)")


def keyboard(view):
    order = view.value("[...document.querySelectorAll('a[href],button:not(:disabled),select,input,[tabindex]')].map(it => it.tabIndex)")
    expect_that("the order of the page is that of the Tab key", set(order) == {0})
    for chart, word in (("#time", "used"), ("#map", "age"), ("#flame", "blocks")):
        view.value(f"document.querySelector({chart!r}).focus()")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
            view.key(key)
        expect_that(f"{chart} tells {text(view, chart + '-values')!r}", word in text(view, chart + "-values"))
    view.value("document.querySelector('#moment-after').click()")
    expect_that("another moment", "peak" not in view.value("document.querySelector('#moment').selectedOptions[0].textContent"))
    unnamed = view.value("[...document.querySelectorAll('button,select,input')].filter(it => it.offsetParent && !(it.textContent.trim() || it.ariaLabel || "
                         "it.labels?.length)).length")
    expect("controls without a name", unnamed, 0)


def themes(view):
    view.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    view.wait_for("document.documentElement.dataset.theme === 'dark'")
    dark = view.value("getComputedStyle(document.body).backgroundColor")
    view.value("document.querySelector('#theme').click()")
    view.wait_for("document.documentElement.dataset.theme === 'light'")
    expect_that("another colour", dark != view.value("getComputedStyle(document.body).backgroundColor"))
    view.value("document.querySelector('#theme').click()")


def two_processes(view):
    expect("lines of processes", view.value("document.querySelectorAll('#processes tbody tr').length"), 2)
    expect("lines in the chart", view.value("rationPage.chart.graph.numColumns()"), 7)
    expect_that("the second begins later", view.value("rationPage.model.lanes[1].times[0]") > 300_000_000)
    view.value("(() => { const it = document.querySelector('#shown'); it.value = '1'; it.dispatchEvent(new Event('change')); })()")
    expect("its callers only", view.value("new Set(rationPage.callers.rows.map(row => row.lane.number)).size"), 1)
    expect_that("its map", "pid 101" in text(view, "#map-facts"))


def hostile(view):
    expect("scripts that ran", view.value("document.querySelectorAll('script').length"), 3)
    expect_that("the name as it is", HOSTILE in text(view, "#top-leak-name"))


def without_memory(view):
    expect_that("it says so", "No device memory was requested" in text(view, "#top-leak"))


def odd_names(log):
    log.slab(1, BASE, GIB)
    log.python_stacks([(HOSTILE, f"/x/{HOSTILE}.py", 1)])
    log.alloc(BASE, 2 * MIB, stack=1)


if not browser.installed():
    print("skipped: no chromium")
    sys.exit(77)
main({check.__name__: with_page(*fills, check=check) for check, fills in (
    (overview, [training]), (hover, [training]), (zooms, [training]), (table, [training]), (keyboard, [training]), (themes, [training]),
    (two_processes, [training, training]), (hostile, [odd_names]), (without_memory, [lambda log: log.end()]))})
