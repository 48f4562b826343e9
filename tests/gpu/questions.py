"""The item `questions`: programs of tests/gpu/questions, each of which prints its answers as JSON, an object a line.

Natively each answer is a result of its own. Under Ration a program must only end. Which of its answers differ is recorded,
and fails nothing: many must differ, such as the code of an allocation in a capture, which the pool can serve.
"""
import json
import os

import items
import tree as trees

FOLDER = "tests/gpu/questions"
UNDER_RATION, UNDER_RATION_OVER_SIM = ("vmm", "capture", "edges", "exports"), ("capture", "exports")
OUTPUTS = "outputs"  # begins the names of those about failing calls, which have to fail under Ration as natively, in any mode
LIMIT, SECONDS, SECONDS_OVER_SIM = "4GiB", 45, 20
MOST_DIFFERENCES = 200


def programs(check):
    if check.tree.build is None:  # not built yet: by the sources
        return sorted(source.stem for source in (trees.HERE / "questions").glob("*.cc") if source.stem != "question")
    folder = check.tree.path(FOLDER)
    return sorted(name for name in os.listdir(folder) if os.access(folder / name, os.X_OK) and
                  (folder / name).is_file()) if folder.is_dir() else []


def answers(out):
    """(the answers, how many lines are none)."""
    found, bad = [], 0
    for line in out.splitlines():
        try:
            answer = json.loads(line)
            found.append((str(answer["name"]), answer["status"], answer.get("figures") or {}, str(answer.get("note") or "")))
        except (ValueError, KeyError, TypeError):
            bad += bool(line.strip())
    return found, bad


def seconds(check):
    return SECONDS_OVER_SIM if check.tree.sim else SECONDS


def own_machine(check, program):
    """Over the simulator: a machine that no other program uses."""
    if not check.tree.sim:
        return {}
    folder = check.tree.scratch / f"machine-{program}"
    folder.mkdir(exist_ok=True)
    return {"SIMCUDA_MACHINE": folder}


def ask_natively(check, program):
    command = [check.tree.path(f"{FOLDER}/{program}")]
    ended = check.run(f"questions.{program}", command, seconds(check), **own_machine(check, program))
    found, bad = answers(ended.out)
    for name, status, figures, note in found:
        if check.tree.sim and status == "failed":
            status, note = "skipped", f"over the simulator: {note}"
        check.results.add(f"questions.{program}.{name}", status, figures, note)
    figures = {"answers": len(found), "seconds": round(ended.seconds, 2)}
    explained = any(status == "failed" for _, status, _, _ in found)
    if bad or not found or (ended.status != 0 and not explained):
        over_sim = check.tree.sim and (ended.status is None or ended.status >= 0)
        return items.Outcome("skipped" if over_sim else "failed", figures | ended.tail(), ended.why())
    return items.Outcome("ok", figures, "" if ended.status == 0 else "some answers are no good")


def native_tests(check, _):
    # Over the simulator no time that a program measures means anything, so they need not run alone.
    return [items.Test(f"questions.{name}", lambda name=name: ask_natively(check, name), name if check.tree.sim else "")
            for name in programs(check)]


def is_exact(value):
    return not isinstance(value, float)


def differing(natively, here, one="natively", other="here"):
    """The answers whose status or whose figures, other than fractions, differ: times are fractions."""
    rest = {name: (status, figures) for name, status, figures, _ in natively}
    found = []
    for name, status, figures, note in here:
        there_status, there = rest.pop(name, ("missing", {}))
        if status != there_status:
            found.append(f"{name}: {there_status} {one}, {status} {other}: {note[:120]}")
        exact = [key for key in there | figures if is_exact(there.get(key)) and is_exact(figures.get(key))]
        found += [f"{name}.{key}: {there.get(key)!r} {one}, {figures.get(key)!r} {other}" for key in exact
                  if there.get(key) != figures.get(key)]
    return found + [f"{name}: only {one}" for name in rest]


def ask_under(check, references, program, variant):
    path = check.tree.path(f"{FOLDER}/{program}")
    native = references.get(program, lambda: check.run(f"questions.{program}.again", [path], seconds(check)))
    ended, figures = check.run_variant(f"under.{program}.{variant}", variant, [path], LIMIT, seconds(check))
    found = differing(answers(native.out)[0], answers(ended.out)[0])
    figures |= {"native_status": native.status, "status": ended.status, "differences": found[:MOST_DIFFERENCES]}
    has_ended = ended.status is not None and ended.status >= 0 and ended.status < 125
    return items.Outcome("ok" if has_ended else "failed", figures | ({} if has_ended else ended.tail()),
                         note_on(found) if has_ended else ended.why())


def note_on(differences):
    if not differences:
        return "ended, with the native answers"
    return f"ended; {len(differences)} difference{'s' if len(differences) > 1 else ''} from its native run: recorded, not judged"


def tests_under_ration(check, _):
    references = items.References()
    chosen = UNDER_RATION_OVER_SIM if check.tree.sim and not check.full else UNDER_RATION
    return [items.Test(f"under_ration.{name}.{variant}",
                       lambda name=name, variant=variant: ask_under(check, references, name, variant), lane=name)
            for name in programs(check) if name in chosen or name.startswith(OUTPUTS)
            for variant in ("slab", "vmm", *(("direct",) if name.startswith(OUTPUTS) else ()))]
