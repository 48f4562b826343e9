"""Two processes of one group side by side: each prints what it does alone, and together they never hold more than the limit.

Neither preallocates, which would take all that the group may have. Used by the items `runtime` and `frameworks`.
"""
import concurrent.futures
import json
import time

import items
import members
import tree as trees

LOOK_SECONDS = 0.1  # between two looks at the books


def peak_of_group(err, name):
    """The most that a group's members held or were guaranteed, by the summary of a run."""
    documents = [json.loads(line) for line in err.splitlines() if line.startswith('{"schema":"ration.summary/')]
    groups = [group for document in documents for process in document["processes"] for device in process["devices"]
              for group in device["groups"]]
    return max((group["claimed_peak_bytes"] for group in groups if group["name"] == name), default=None)


def watch(check, name, pair):
    """(the most that the group held, the most members at once) while the two run."""
    most, together = 0, 0
    while not all(one.done() for one in pair):
        seen = members.usage(check)
        most = max([most, *(row["reserved_bytes"] for row in seen["groups"] if row["name"] == name)])
        using = [row for row in seen["processes"] if row["used_bytes"] and name in [group["name"] for group in row["groups"]]]
        together = max(together, len(using))
        time.sleep(LOOK_SECONDS)
    return most, together


def run(check, name, native, command, limit, lines_of, share=(), seconds=items.SECONDS, **settings):
    """`limit`: of the group, in bytes; `share`: options of each of the two."""
    group = f"check-{name.replace('.', '-')}"
    options = (*trees.SUMMARY, "--group", group, "--group-limit", str(limit), *share)
    line, more = check.tree.under("vmm", command, options=options)
    more["RATION_PREALLOCATE"] = "false"
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        pair = [workers.submit(check.run, f"{name}.{number}", line, seconds, **(more | settings)) for number in range(2)]
        most, together = watch(check, group, pair)
    ended = [one.result() for one in pair]
    peaks = [peak_of_group(one.err, group) for one in ended]
    figures = {f"process{number}": {"seconds": round(one.seconds, 2)} | trees.summary_figures(one.err)
               for number, one in enumerate(ended)}
    figures |= {"limit": limit, "most_seen": most, "members_seen": together, "peaks_of_the_group": peaks}
    for one in ended:
        outcome = items.compared(native, one, {}, lines_of)
        if outcome.status != "ok":
            return items.Outcome("failed", figures | outcome.figures, outcome.note)
    return items.judged(figures, within_the_limit=most <= limit, its_peak_is_told=None not in peaks,
                        its_peak_is_within=max(filter(None, peaks), default=0) <= limit)
