"""The item `verbs`: what the command says of members that run, and of a log, agrees with what they hold and did: `ration ps`
in each of its forms, `doctor`, `report`."""
import json

import items
import live
import members
import runs
import tree as trees

MIB, GIB = trees.MIB, trees.GIB


def first_lines(check, words, count):
    """The first JSON objects of a verb that goes on until it is ended."""
    with members.Lines(check, [check.tree.path("bin/ration"), *words]) as stream:
        seen = [json.loads(stream.line()) for _ in range(count)]
        runs.kill_session(stream.process.pid)
    return seen


def books(check, variant):
    """Two members of a group, in each form of `ps`, and in NVML's figure of the device."""
    name, limit, held = f"check-ps-{variant}", 6 * GIB, [2 * GIB, GIB]
    options = live.in_group(name, limit)
    with members.Device(check) as device:
        idle = device.settled()["used"]
        with live.Obeying(check, variant, options, "4GiB") as one, live.Obeying(check, variant, options) as other:
            codes = [one.take(held[0]), other.take(held[1]), other.take(limit)]
            seen, used = members.usage(check), device.ask()["used"]
            texts = [live.command(check, f"verbs.ps.{variant}", *words) for words in (["ps"], ["ps", "--prometheus"])]
            stream = first_lines(check, ["ps", "--json", "--watch=0.1"], 2)
            statuses = [other.finish(), one.finish()]
    pids = (one.pid, other.pid)
    rows, group = [members.row_of(seen, pid) for pid in pids], live.group_row(seen, name)
    if not all(rows):
        return items.Outcome("failed", {"seen": seen}, "a member is not shown")
    reserved = [row["reserved_bytes"] for row in rows]
    mine = next(row for row in seen["devices"] if row["uuid"] == rows[0]["uuid"])
    beyond = used - idle - sum(reserved)
    streamed = [{row["pid"] for row in each["processes"]} >= set(pids) for each in stream]
    figures = {"codes": codes, "rows": rows, "group": group, "device": mine, "beyond_the_books": beyond}
    return items.judged(
        figures, codes=codes == [0, 0, live.REFUSED], used=[row["used_bytes"] for row in rows] == held,
        reserved=all(has >= wanted for has, wanted in zip(reserved, held)), limits=[row["limit"] for row in rows] == [4 * GIB, None],
        failures=[sum(row["refusals_by_reason"].values()) for row in rows] == [0, 1],
        group=(group["reserved_bytes"], group["limit"], group["process_count"]) == (sum(reserved), limit, 2),
        free_of_the_group=group["free_bytes"] == limit - group["claimed_bytes"],
        device=(mine["reserved_bytes"], mine["process_count"]) == (sum(reserved), 2), NVML=0 <= beyond < 2 * GIB,
        as_text=all(ended.status == 0 and all(str(pid) in ended.out for pid in pids) for ended in texts),
        as_a_stream=streamed == [True, True], bytes_of_the_members=statuses == [0, 0])


def findings_by_id(answer):
    found = {}
    for one in answer["findings"]:
        found.setdefault(one["id"], []).append(one["what"])
    return found


def doctor(check):
    """It finds no trouble, tells a member from a program without Ration, and knows the device by its UUID."""
    with live.Obeying(check, "vmm", limit="2GiB") as member, live.Obeying(check, trees.NATIVE) as stranger:
        codes = [member.take(GIB), stranger.take(GIB)]
        questions = {"machine": [], "member": ["--pid", member.pid], "stranger": ["--pid", stranger.pid]}
        said = {what: live.document(check, f"verbs.doctor.{what}", "doctor", *words) for what, words in questions.items()}
        uuid = members.row_of(members.usage(check), member.pid)["uuid"]
    found = {what: findings_by_id(answer) for what, (_, answer) in said.items()}
    status = {what: answer[0] for what, answer in said.items()}
    return items.judged({"codes": codes, "status": status} | found, codes=codes == [0, 0], driver="driver" in found["machine"],
                        no_trouble_here=status["machine"] == 0 and said["machine"][1]["troubles"] == 0,
                        device=any(uuid in text for text in found["machine"].get("device", [])),
                        member=status["member"] == 0 and "process" in found["member"],
                        stranger=status["stranger"] == 1 and "process_without_ration" in found["stranger"])


def report(check):
    """What `ration report` reads in a log is what the program did, and what the summary of its run says."""
    log, page, limit, block = check.tree.scratch / "verbs.jsonl", check.tree.scratch / "verbs.html", 2 * GIB, 64 * MIB
    line, more = check.tree.under("vmm", [check.tree.path(members.PROGRAM), "fill"], str(limit), trees.SUMMARY, log)
    ended = check.run("verbs.report.run", line, **more)
    summary, said = trees.summary_figures(ended.err), live.document(check, "verbs.report", "report", log)[1]
    drawn = live.command(check, "verbs.report.page", "report", log, "-o", page)
    held = next((int(text.partition("=")[2]) for text in ended.out.splitlines() if text.startswith("held=")), 0)
    device, = said["logs"][0]["devices"]
    refusals = sum(one["refusals"] for one in device["refused_requests"])
    figures = {"held": held, "summary": summary, "reserved": device["reserved_peak_bytes"], "refusals": refusals}
    return items.judged(figures | {key: said[key] for key in ("peak_bytes", "allocs", "frees", "failures")},
                        run=ended.status == 0, peak=held == said["peak_bytes"] == summary.get("peak"), limit=device["limit"] == limit,
                        reserved=held <= device["reserved_peak_bytes"] == summary.get("reserved_peak") <= limit,
                        blocks=said["allocs"] == said["frees"] == held // block > 0, leaks=not said["leaks"],
                        failures=refusals == said["failures"] == summary.get("refused") == 1,
                        page=drawn.status == 0 and "<html" in page.read_text(encoding="utf-8")[:200])


def tests(check, _):
    made = [items.Test(f"verbs.ps.{variant}", lambda variant=variant: books(check, variant)) for variant in live.POOLS]
    return made + [items.Test(f"verbs.{body.__name__}", lambda body=body: body(check)) for body in (doctor, report)]
