"""Each kind of difference is found where it is made on purpose."""
from difference import Line, differences
from minimise import minimise
from programs import BUILD, QUICK_MS, generate, natively, play, play_natively, play_under

COUNT = 150
BROKEN = str(BUILD / "lib/ration/broken/libration.so")  # reuses freed blocks at once


def found_by(programs, native, under):
    return [difference for three in zip(programs, native, under) for difference in differences(*three)]


def on_half_a_device(programs, _patience=QUICK_MS):
    native = play_natively(programs)
    under = play([program.for_player(natively(program, part=2)) for program in programs], QUICK_MS)
    return [list(differences(*three)) for three in zip(programs, native, under)]


def refusals(programs, _native):
    return [each for found in on_half_a_device(programs) for each in found if (each.native[0], each.under[0]) == ("0", "2")]


def made_smaller(programs, native):
    """A context and one or two blocks are enough for a refusal on half a device."""
    difference = max(refusals(programs, native), key=lambda each: len(each.program.steps))
    smallest = minimise(difference.program, difference.signature(), play=on_half_a_device)
    return [" ".join(smallest.steps)] if len(smallest.steps) <= 6 < len(difference.program.steps) else []


def waits(programs, native):
    """Calls that may wait natively may not here."""
    under = play([program.for_player(natively(program)) for program in programs], QUICK_MS)
    return [each for each in found_by(programs, native, under) if each.verb == "free" and each.under == "0W"]


def foreign_bytes(programs, native):
    under = play_under(programs, native, QUICK_MS, BROKEN)
    return [each for each in found_by(programs, native, under) if each.under.endswith("!")]


def line_matches(_programs, _native):
    line = Line("alloc free*", "0*", "2W", ["mode=pool", "fill>=80", "not-busy"], "", "")
    where = {"mode": "pool", "fill": 80, "busy": False}

    class Found:
        def __init__(self, under, more):
            self.under, self.where = under, where | more

        def signature(self):
            return "free_async", "0:1", self.under

    cases = [(Found("2W", {}), True), (Found("2", {}), False), (Found("2W", {"busy": True}), False),
             (Found("2W", {"fill": 79}), False), (Found("2W", {"mode": "async"}), False)]
    return ["all"] if all(line.matches(case) == wanted for case, wanted in cases) else []


def self_test():
    programs = generate(1, 0, COUNT)
    native = play_natively(programs)
    good = True
    for kind in (refusals, waits, foreign_bytes, made_smaller, line_matches):
        found = kind(programs, native)
        print(f"{'ok     ' if found else 'FAILED '} {kind.__name__}: {len(found)}, such as {found[0] if found else 'none'}", flush=True)
        good = good and bool(found)
    return good
