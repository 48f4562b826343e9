#!/usr/bin/env python3
"""A page of `ration report -o`, or of `ration diff -o`, in a browser: it is drawn, tells what is pointed at, filters, sorts and zooms, by mouse and by
keyboard, and asks nothing of a network. PAGE_SHOTS: a folder for pictures of it."""
import json
import os
import pathlib
import re
import sys

import browser
from browser import Browser
from harness import MIB, expect, expect_that, main
from made_log import BASE, GIB, training
from page_test import HOSTILE, made, ration


LEAK = "leak (leaky.py:12), from main (train.py:40)"


def with_page(*fills, check, verb="report", **meta):
    def case(folder):
        logs = []
        for i, fill in enumerate(fills):
            own = meta or {"pid": 100 + i, "group_limit": 12 * GIB if len(fills) > 1 else 0, "start_unix_ns": 1_700_000_000_000_000_000 + i * 300_000_000}
            logs.append(made(folder, f"{i}.jsonl", fill, **own))
        ration(folder, verb, *logs, "-o", "out.html")
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
    refused, left = (text(view, f"#banner li:nth-child({n})") for n in (1, 2))
    expect_that(f"first what was refused: {refused}", re.fullmatch(
        r"Refused: 2 calls of cuMemAlloc_v2, over the limit; the largest 7\.[0-9]+GiB \([0-9]+ bytes\) at [0-9.]+ m?s, at least 30MiB \(31457280 bytes\) short\. It needs a limit of at least .* "
        r"The program held [0-9]+MiB then: 512MiB by load \(loader\.py:7\), from main \(train\.py:40\), .*\sShow", refused))
    expect_that(f"then what was left: {left}", re.fullmatch(rf"Leaked: 80MiB in 5 blocks, 80MiB of it by {re.escape(LEAK)}; the oldest 1\.[0-9]+ s old\.\sShow", left))
    expect("its name", text(view, "#banner .left"), LEAK)
    for part in ("#banner .left", "#time-title"):
        expect_that(f"{part} is in the first screen", is_in_first_screen(view, part))
    expect("the title", (view.value("document.title"), text(view, "h1")), ("train – Ration report", "train"))
    view.wait_for("document.querySelectorAll('#time-chart canvas').length > 0")
    inked = ("(() => { const it = document.querySelector(%r); const all = it.getContext('2d').getImageData(0, 0, it.width, it.height).data;"
             " return new Set(new Uint32Array(all.buffer)).size; })()")
    expect_that("the map has colours", view.value(inked % "#map-canvas") > 3)
    expect_that("the flame graph has frames", view.value("document.querySelectorAll('#flame > div').length") > 3)
    expect("rows of callers", view.value("document.querySelectorAll('#callers tbody tr').length"), 3)


def hover(view):
    view.mouse("mouseMoved", *view.middle("#time-chart"))
    view.wait_for("!document.querySelector('#tip').hidden")
    expect_that("values", all(word in text(view, "#tip") for word in ("used", "reserved", "limit", "held by load (loader.py:7)")))
    view.mouse("mouseMoved", *view.middle("#map", y=0.1))
    view.wait_for("document.querySelector('#tip').textContent.includes('by load (loader.py:7)')")
    expect_that("the block's figures", all(word in text(view, "#map-values") for word in ("512MiB", "age", "slab 1")))
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
    expect("picked in the map", view.value("rationPage.map.picked"), LEAK)


def is_in_view(view, selector):
    return view.value(f"(() => {{ const at = document.querySelector({selector!r}).getBoundingClientRect();"
                      " return at.height > 0 && at.top < innerHeight && at.bottom > 0; })()")


def clicked(view):
    """What is clicked is brought into view: a moment with who held what then, a refusal, a caller."""
    view.value("document.body.scrollIntoView()")
    at = view.middle("#time-chart", x=0.3)
    view.mouse("mouseMoved", *at)
    view.mouse("mousePressed", *at, button="left", clickCount=1)
    view.mouse("mouseReleased", *at, button="left", clickCount=1)
    view.wait_for("!document.querySelector('#state').hidden")
    expect_that(f"the state in {text(view, '#state')}", all(word in text(view, "#state") for word in ("used ", "reserved ", "512MiB", "load (loader.py:7)")))
    expect_that("it is in view", is_in_view(view, "#state"))
    view.value("scrollTo(0, document.body.scrollHeight)")
    view.value("document.querySelector('#banner li:first-child button').click()")
    expect_that("the refusal is told", "refused, over the limit, at" in text(view, "#state") and is_in_view(view, "#time"))
    expect("the map is of it", view.value("rationPage.map.moment.why"), "refusal")
    view.value("document.querySelector('#banner li:nth-child(2) button').click()")
    expect_that("the caller is found", is_in_view(view, "#callers") and text(view, "#found") == "1 of 3")


def growing(view):
    expect_that(text(view, "#banner"), re.search(r"Grows: leak \(leaky\.py:12\), from main \(train\.py:40\): the least that it held rose from [0-9]+MiB to [0-9]+MiB; its oldest "
                                                 r"block lived for ", text(view, "#banner")))
    expect_that("it was freed, so it is no leak", "Leaked" not in text(view, "#banner"))


def after_a_refusal(view):
    """Weights that a program held when it could not go on are no leak."""
    expect_that(text(view, "#banner"), "Held at the end: 512MiB in 1 block, 512MiB of it by load" in text(view, "#banner"))
    expect_that("no leak", "Leaked" not in text(view, "#banner"))


def stacked(view):
    """The areas of callers are nowhere above what was used, and reach the peak."""
    sums = view.value("rationPage.chart.stack.points.map(point => [point.at, point.held.reduce((sum, each) => sum + each, 0)])")
    lane = "rationPage.model.lanes[0]"
    used = list(zip(*view.value(f"[{lane}.times, {lane}.used]")))
    expect_that("many points", len(sums) > 50)
    held = lambda points, at: next((value for time, value in reversed(points) if time <= at), 0)
    expect("times at which the areas are above the line",
           [at for at in sorted({at for at, _ in [*sums, *used]}) if at < sums[-1][0] and held(sums, at) > held(used, at)], [])
    expect("the highest", max(each for _, each in sums), view.value(f"{lane}.peak_bytes"))
    ticks = view.value("[...document.querySelectorAll('.dygraph-axis-label-x')].map(it => it.textContent)")
    expect("ticks are decimal", ticks[:3], ["0 ms", "100 ms", "200 ms"])


def names(view):
    long = "void gemm<float, tensor<half, 128>>(float const*, layout<8>) (gemm.cu:12), from step<8>(batch const&, int) (step.cu:100)"
    expect("abridged", view.value(f"abridged({json.dumps(long)})".replace("abridged", "rationPage.abridged")),
           "void gemm‹…›(…) (gemm.cu:12), from step‹…›(…) (step.cu:100)")
    expect("short ones as they are", view.value("rationPage.abridged('f<int>(char) (x.cc:1)')"), "f<int>(char) (x.cc:1)")
    expect("sizes as the command prints them", view.value("[1023, 1024, 1536, 10 << 20, 3 * 2 ** 30, 6871947673, 1023.6 * 2 ** 20].map(rationPage.bytes)"),
           ["1023B", "1KiB", "1.50KiB", "10MiB", "3.00GiB", "6.40GiB", "1.00GiB"])


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
    expect_that("which clock", text(view, "#subtitle").endswith("; all times count from then"))
    shown = r"([0-9.]+) (m?s)"
    for place, found, ms in (("the table", re.match(shown, text(view, "#processes tbody tr:nth-child(2) td:nth-child(4)")), "300 + 1e-6 * rationPage.model.lanes[1].peak_ts"),
                             ("the banner, one line for both", re.search(rf" at {shown}.*pid 100.*, .*pid 101.*the first", text(view, "#banner li:nth-child(1)")),
                              "1e-6 * rationPage.model.lanes[0].remedies[0].largest_ts")):
        at = view.value(ms)
        expect_that(f"in {place} {found[0]}, in the chart {at} ms", abs(float(found[1]) * (1 if found[2] == "ms" else 1000) - at) <= 0.5)
    expect("lines in the chart, with the sum and the group's limit", view.value("rationPage.chart.graph.numColumns()"), 9)
    most, of_callers = view.value("[rationPage.chart.sum.map(each => each[1]), rationPage.chart.stack.points.map(point => point.held.reduce((sum, each) => "
                                  "sum + each, 0))].map(all => Math.max(...all))")
    peak = view.value("rationPage.model.busiest.peak_bytes")
    expect_that(f"the sum {most} is of both, and that of callers {of_callers} about it", peak < most < 2 * peak and abs(most - of_callers) < most / 20)
    expect("the sum at the end", view.value("rationPage.chart.sum.at(-1)[1]"), 0)
    expect("the group's limit", view.value("rationPage.chart.groupLimit()"), 12 * GIB)
    expect("callers of both, each once", view.value("rationPage.callers.rows.map(row => [row.name, row.lanes.length, row.left.bytes])"),
           view.value("rationPage.model.lanes[0].callers.map(each => [each.name, 2, 2 * each.left.bytes])"))
    expect_that("said in the table", "2 processes" in text(view, "#callers tbody tr"))
    expect_that("the second begins later", view.value("rationPage.model.lanes[1].times[0]") > 300_000_000)
    view.value("(() => { const it = document.querySelector('#shown'); it.value = '1'; it.dispatchEvent(new Event('change')); })()")
    expect("its callers only", view.value("rationPage.callers.rows.every(row => row.lanes.length === 1 && row.lanes[0].number === 1)"), True)
    expect_that("its map", "pid 101" in text(view, "#map-facts"))


def hostile(view):
    expect("scripts that ran", view.value("document.querySelectorAll('script').length"), 3)
    expect_that("the name as it is", HOSTILE in view.value("document.querySelector('#banner .left').title"))


def without_memory(view):
    expect_that("it says so", "No device memory was requested" in text(view, "#banner"))


def difference(view):
    expect("the title", (view.value("document.title"), text(view, "h1")), ("0.jsonl → 1.jsonl – Ration diff", "0.jsonl → 1.jsonl"))
    rows = "[...document.querySelectorAll('#callers tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    expect("figures", view.value("[...document.querySelectorAll('#figures tbody tr')].slice(0, 2).map(row => [...row.cells].map(cell => cell.textContent))"),
           [["Device 0"], ["peak used", "512MiB", "84MiB", "−428MiB", "−84%"]])
    expect("at the peak, the largest change first", view.value(rows)[0], ["load (loader.py), from main (train.py)", "gone", "512MiB", "0B", "−512MiB", "−100%"])
    expect("worse", view.value("[...document.querySelectorAll('#figures td.bad')].length"), 0)
    expect("where they occur", sorted(row[1] for row in view.value(rows)), ["gone", "new", "new"])
    view.value("document.querySelector('#callers-of input[value=live_bytes]').click()")
    expect("not freed", [row[2:] for row in view.value(rows)][0], ["512MiB", "0B", "−512MiB", "−100%"])
    view.value("document.querySelector('#callers-of input[value=allocs]').click()")
    expect("counts", next(row[2:] for row in view.value(rows) if row[1] == "new"), ["0", "40", "+40", ""])
    view.value("(() => { const it = document.querySelector('#search'); it.value = 'gone'; it.dispatchEvent(new Event('input')); })()")
    expect("found", text(view, "#found"), "1 of 3")
    view.value("document.querySelector('#theme').click()")


def hostile_difference(view):
    expect("scripts that ran", view.value("document.querySelectorAll('script').length"), 2)
    expect_that("the name as it is", any(HOSTILE in title for title in view.value("[...document.querySelectorAll('#callers span[title]')].map(it => it.title)")))


def grows(log):
    log.slab(1, BASE, GIB)
    log.python_stacks()
    for turn in range(40):
        log.alloc(BASE + turn * 4 * MIB, 2 * MIB, stack=4, step=1_000_000)
        log.alloc(BASE + GIB // 2, 4 * MIB, stack=3, step=1_000_000)
        log.free(BASE + GIB // 2, 4 * MIB)
    for turn in range(40):
        log.free(BASE + turn * 4 * MIB, 2 * MIB)
    log.end()


def refused_at_last(log):
    log.slab(1, BASE, GIB)
    log.python_stacks()
    log.alloc(BASE, 512 * MIB, stack=2)
    log.refuse(8 * GIB, 512 * MIB)
    log.end()


def freed_early(log):
    """Most is freed long before the end."""
    log.slab(1, BASE, GIB)
    log.alloc(BASE, 512 * MIB, api="cuMemAllocManaged")
    log.alloc(BASE + 512 * MIB, 2 * MIB)
    log.free(BASE, 512 * MIB)
    log.write("trim", step=900_000_000, tid=1, dev=0, api="idle", slabs=0, granules=0, bytes=0)
    log.end()


def stacked_to_the_end(view):
    expect("what is held long after it was freed", view.value("rationPage.chart.stack.heldAt(rationPage.model.end / 2).map(each => each.slice(0, 2))"),
           [["cuMemAlloc_v2", 2 * MIB]])


def asked_again(log):
    """One refusal: an allocator frees what it keeps, and asks again by another function; then another one."""
    log.slab(1, BASE, GIB)
    log.alloc(BASE, 512 * MIB)
    log.alloc(BASE + 512 * MIB, 2 * MIB)
    log.refuse(8 * GIB, 514 * MIB, reason="pool_holds")
    log.free(BASE, 512 * MIB)
    log.refuse(8 * GIB, 2 * MIB)
    log.alloc(BASE, 512 * MIB)
    log.refuse(8 * GIB + MIB, 514 * MIB, reason="fault")
    log.end()


def one_refusal(view):
    banner = view.value("[...document.querySelectorAll('#banner li')].map(it => it.textContent).filter(it => it.startsWith('Refused'))")
    expect("lines of the banner", sorted(line.split(";")[0] for line in banner),
           ["Refused: 1 call of cuMemAlloc_v2, injected (--fail)", "Refused: 1 call of cuMemAlloc_v2, the pool was fragmented"])
    expect("in the chart", view.value("rationPage.model.lanes[0].refusals.map(each => [each.reason, each.times])"),
           [["the pool was fragmented", 2], ["injected (--fail)", 1]])
    expect("in the table", text(view, "#processes tbody td:last-child"), "3")


def refused_by_group(log):
    log.slab(1, BASE, GIB)
    log.alloc(BASE, 512 * MIB)
    log.refuse(4 * GIB, 512 * MIB, reason="group", group="team", group_limit=8 * GIB, group_reserved=7 * GIB, group_claimed=7 * GIB,
               holders=[{"pid": 55, "exe": "/opt/other", "reserved": 6 * GIB, "used": 6 * GIB, "guarantee": 0}])
    log.end()


def in_a_group(view):
    banner = text(view, "#banner li")
    expect_that(f"the group and who holds it in {banner}", "over the group's limit" in banner and "group team: 7.00GiB" in banner
                and "/opt/other (pid 55) held 6.00GiB" in banner)
    expect_that("no limit of its own", "of 16.0GiB, no limit of its own, in a group of 8.00GiB" in text(view, "#processes tbody"))
    view.mouse("mouseMoved", *view.middle("#time-chart"))
    view.wait_for("!document.querySelector('#tip').hidden")
    expect_that(text(view, "#tip"), "limit of its group 8.00GiB" in text(view, "#tip"))
    expect("points of a limit of its own", view.value("rationPage.chart.rows().filter(row => row[3] !== null).length"), 0)


def lossy(log):
    """All that it has was freed; three records were lost."""
    log.slab(1, BASE, GIB)
    log.python_stacks()
    log.alloc(BASE, 2 * MIB, stack=2)
    log.free(BASE, 2 * MIB)
    log.write("dropped", count=3)
    log.end()


def lower_bounds(view):
    expect_that(text(view, "#banner"), text(view, "#banner").startswith("Nothing was refused, and every block was freed, as far as the log goes.")
                and "the log lacks 3 records" in text(view, "#banner"))
    expect("the table", view.value("[...document.querySelectorAll('#processes tbody td')].map(it => it.textContent)")[-4:],
           ["at least 1.00GiB", "at least 1 / 1", "nothing", "at least 0"])


def unknown_difference(view):
    rows = view.value("[...document.querySelectorAll('#figures tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
    for row in (["peak used", "unknown", "84MiB", "unknown", ""], ["peak reserved", "at least 1.00GiB", "1.00GiB", "unknown", ""],
                ["allocations", "at least 1", "80", "unknown", ""], ["blocks not freed", "0", "0", "=", ""]):
        expect_that(f"{row} in {rows}", row in rows)
    standing = view.value("[...document.querySelectorAll('#callers tbody tr')].map(row => row.cells[1].textContent)")
    expect("standing", sorted(standing), ["gone", "unknown", "unknown"])


def odd_names(log):
    log.slab(1, BASE, GIB)
    log.python_stacks([(HOSTILE, f"/x/{HOSTILE}.py", 1)])
    log.alloc(BASE, 2 * MIB, stack=1)


if not browser.installed():
    print("skipped: no chromium")
    sys.exit(77)
main({check.__name__: with_page(*fills, check=check) for check, fills in (
    (overview, [training]), (hover, [training]), (zooms, [training]), (table, [training]), (keyboard, [training]), (themes, [training]),
    (clicked, [training]), (growing, [grows]), (after_a_refusal, [refused_at_last]),
    (lower_bounds, [lossy]), (stacked, [training]), (names, [training]), (two_processes, [training, training]), (hostile, [odd_names]), (without_memory, [lambda log: log.end()]))}
     | {check.__name__: with_page(fill, check=check, **meta) for check, fill, meta in (
         (stacked_to_the_end, freed_early, {}), (one_refusal, asked_again, {}), (in_a_group, refused_by_group, {"limit_asked": False, "group_limit": 8 * GIB}))}
     | {check.__name__: with_page(*fills, check=check, verb="diff") for check, fills in (
         (difference, [refused_at_last, grows]), (hostile_difference, [odd_names, training]), (unknown_difference, [lossy, grows]))})
