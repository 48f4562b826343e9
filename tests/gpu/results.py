"""The result file: rewritten as a whole after each test, so that a run that is killed leaves all that it had.

Threads: add() may be called from any.
"""
import json
import os
import pathlib
import threading

STATUSES = ("ok", "failed", "skipped")
LONGEST = 80  # figures that are printed


def short(figures):
    """The figures as text, where they are few: the note of a question does not answer it."""
    few = all(isinstance(value, (bool, int, float, str)) for value in (figures or {}).values())
    text = ", ".join(f"{key} {value}" for key, value in (figures or {}).items()) if few else ""
    return text if len(text) <= LONGEST else ""


class Results:
    def __init__(self, path, date, commit):
        self.path = pathlib.Path(path)
        self.head = {"gpu": None, "uuid": None, "driver": None, "cuda": None, "date": date, "commit": commit}
        self.tests = []
        self._lock = threading.Lock()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write()

    def describe(self, **head):
        """Fills keys of the head: gpu, uuid, driver, cuda."""
        with self._lock:
            self.head |= head
            self._write()

    def add(self, name, status, figures=None, note=""):
        if status not in STATUSES:
            status, note = "failed", f"unknown status {status!r}; {note}"
        with self._lock:
            self.tests.append({"name": name, "status": status, "figures": figures or {}, "note": note})
            self._write()
            answer = short(figures) if status == "ok" else ""
            print(f"{status:8}{name}{': ' if note else ''}{note.splitlines()[0] if note else ''}{f' [{answer}]' if answer else ''}", flush=True)

    def count(self, status):
        return sum(test["status"] == status for test in self.tests)

    def _write(self):
        beside = self.path.with_name(self.path.name + ".part")
        beside.write_text(json.dumps(self.head | {"tests": self.tests}, indent=1, default=str) + "\n", encoding="utf-8")
        os.replace(beside, self.path)
