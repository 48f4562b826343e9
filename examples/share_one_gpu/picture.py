#!/usr/bin/env python3
"""Draws what run.sh did, from its logs and outputs: picture.py DEMO_FOLDER [--check]

Writes picture-light.svg and picture-dark.svg beside this file; --check compares them with what it would write. Both programs
fill at the same time in the last step, so that the picture takes them in turn: everything else is as it was.
"""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
WIDTH, HEIGHT, LEFT, TOP, PANEL, GAP, BOTTOM = 720, 330, 40, 60, 318, 40, 262  # narrow: readable on a telephone
LARGE, SMALL = 16, 14
THEMES = {"light": {"ink": "#1f2328", "soft": "#59636e", "a": "#0969da", "b": "#bf8700", "bad": "#cf222e"},
          "dark": {"ink": "#f0f6fc", "soft": "#9198a1", "a": "#4493f8", "b": "#d29922", "bad": "#f85149"}}


def number(text, pattern):
    return int(re.search(pattern, text)[1])


def without(folder):
    """(steps, bytes that b lacked): each step is the (a, b) bytes in use."""
    a, b = ((folder / f"{name}.without.out").read_text() for name in "ab")
    held, blocks = number(a, r"a: holds (\d+)"), number(a, r"in (\d+) blocks")
    planned, got = number(b, r"planned (\d+)"), number(b, r"and got (\d+)")
    block = 64 << 20
    steps = [(min(i * block, held), 0) for i in range(blocks + 1)]
    return steps + [(held, min(i * block, got)) for i in range(1, -(-got // block) + 1)], planned - got


def with_ration(folder):
    """(steps, limits, the size of the device)"""
    first, rest, limits, total = {}, {}, {}, 0
    for name in "ab":
        records = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        planned = number((folder / f"{name}.out").read_text(), r"in (\d+) blocks")
        sizes = [record["size"] for record in records if record["t"] == "alloc" and record["kind"] == "device"]
        first[name], rest[name] = sizes[:planned], sizes[planned:]
        device = records[0]["devices"][0]
        limits[name], total = device["limit"], device["total"]
    used, steps = {"a": 0, "b": 0}, [(0, 0)]
    for sizes in (first, rest):
        for name in "ab":
            for size in sizes[name]:
                used[name] += size
                steps.append((used["a"], used["b"]))
    return steps, limits, total


def corners(points):
    """Without the points that lie on a line between their neighbours."""
    kept = points[:1]
    for (x, y), (next_x, next_y) in zip(points[1:], points[2:]):
        last_x, last_y = kept[-1]
        if abs(last_y + (next_y - last_y) * (x - last_x) / (next_x - last_x) - y) > .05:
            kept.append((x, y))
    return kept + points[-1:]


class Panel:
    def __init__(self, left, steps, total, ink):
        self.left, self.steps, self.total, self.ink = left, steps, total, ink

    def x(self, step):
        return self.left + PANEL * step / (len(self.steps) - 1)

    def y(self, used):
        return BOTTOM - (BOTTOM - TOP) * used / self.total

    def area(self, name, lower, upper):
        """Between two of the steps' sums."""
        over, under = (corners([(self.x(i), self.y(sum_of(step))) for i, step in enumerate(self.steps)]) for sum_of in (upper, lower))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in over + under[::-1])
        return f'<polygon fill="{self.ink[name]}" fill-opacity=".75" points="{points}"/>'

    def line(self, used, dash, colour):
        y = self.y(used)
        return (f'<line x1="{self.left}" x2="{self.left + PANEL}" y1="{y:.1f}" y2="{y:.1f}" stroke="{self.ink[colour]}" '
                f'stroke-dasharray="{dash}"/>')

    def text(self, x, y, words, colour="ink", anchor="start", size=LARGE, weight="normal"):
        return (f'<text x="{x:.0f}" y="{y:.0f}" fill="{self.ink[colour]}" text-anchor="{anchor}" font-size="{size}" '
                f'font-weight="{weight}">{words}</text>')

    def drawn(self):
        return [self.area("a", lambda step: 0, lambda step: step[0]), self.area("b", lambda step: step[0], sum),
                self.line(self.total, "none", "soft"), self.line(0, "none", "soft")]


def gib(size):
    return f"{size / GIB:.2f} GiB"


def picture(folder, ink):
    plain, lacking = without(folder)
    shared, limits, total = with_ration(folder)
    left, right = Panel(LEFT, plain, total, ink), Panel(LEFT + PANEL + GAP, shared, total, ink)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">',
             "<title>Two programs that plan for 90 % of one GPU each: without Ration b dies, with it both run to the end</title>"]
    for panel, title in ((left, "Without Ration"), (right, "With Ration: 40 % and 50 %")):
        lines += panel.drawn()
        lines.append(panel.text(panel.left, 22, title, size=18, weight="600"))
    lines += [left.text(LEFT - 8, left.y(i * GIB) + 4, f"{i}", "soft", "end", SMALL) for i in (0, 4, 8, 12, 16)]
    lines.append(left.text(LEFT - 8, TOP - 14, "GiB", "soft", "end", SMALL))
    held, got = plain[-1]
    lines.append(left.text(LEFT + PANEL * .45, left.y(held * .3), f"a holds {gib(held)}"))
    lines.append(left.text(LEFT + PANEL, TOP - 10, f"b: out of memory, {gib(lacking)} short", "bad", "end", 16, "600"))
    a, b = shared[-1]
    end = right.left + PANEL
    lines += [right.line(limits["a"], "5 4", "ink"), right.line(limits["a"] + limits["b"], "5 4", "ink")]
    lines.append(right.text(end - 8, right.y(a * .45), f"a fills its {gib(limits['a'])}", anchor="end"))
    lines.append(right.text(end - 8, right.y(a + b * .4), f"b fills its {gib(limits['b'])}", anchor="end"))
    lines.append(right.text(end - 8, right.y(a + b) - 8, f"{gib(total - a - b)} left for others", "soft", "end", SMALL))
    for panel in (left, right):
        lines.append(panel.text(panel.left + PANEL / 2, BOTTOM + 20, "allocations, in order", "soft", "middle", SMALL))
    lines.append(left.text(LEFT, HEIGHT - 16, f"Each fills 90 % of the device that it sees, then the rest. A simulated GPU of {total // GIB} GiB.",
                           "soft", size=SMALL))
    return "\n".join([*lines, "</svg>", ""])


def main():
    folder, wrong = pathlib.Path(sys.argv[1]), []
    for theme, ink in THEMES.items():
        file, text = HERE / f"picture-{theme}.svg", picture(folder, ink)
        if "--check" not in sys.argv:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            wrong.append(file.name)
    for name in wrong:
        print(f"{name} is not what the demo's logs say: run examples/share_one_gpu/picture.py {folder}")
    return 1 if wrong else 0


sys.exit(main())
