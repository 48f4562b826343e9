"""Programs as text, the settings that they run under, and the two ways of playing them: natively on a device of their
limit, and under libration.so on a larger one with that limit."""
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "preload"))
from harness import BUILD, LIBRARIES, Failure, clean_environment  # noqa: E402

QUICK_MS, PATIENT_MS = 40, 4000  # how long a call may wait where it does not natively

# Names and weights; a program's number chooses among them.
SETTINGS = [({}, 4), ({"RATION_PREALLOCATE": "false"}, 2), ({"RATION_PREALLOCATE_AFTER": "0"}, 2),
            ({"RATION_FREE": "synchronous"}, 1), ({"RATION_MODE": "async"}, 2), ({"RATION_MODE": "direct"}, 1)]
CHOICES = {"mixed": [setting for setting, weight in SETTINGS for _ in range(weight)],
           "failing": [{}, {"RATION_BACKING": "slab"}, {"RATION_MODE": "async"}, {"RATION_MODE": "direct"},
                       {"RATION_PREALLOCATE": "false"}, {"RATION_BACKING": "slab", "RATION_PREALLOCATE": "false"},
                       {"RATION_FREE": "synchronous"}, {"RATION_PREALLOCATE_AFTER": "0"}]}


@dataclass
class Program:
    name: str
    limit: int
    devices: int = 1
    header: list = field(default_factory=list)  # lines for the player: together, late
    settings: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)

    def text(self):
        """As a file of cases has it."""
        under = [f"under {' '.join(f'{key}={value}' for key, value in self.settings.items())}"] if self.settings else []
        return "\n".join([f"program {self.name}", f"limit {self.limit}", f"devices {self.devices}", *self.header, *under,
                          *self.steps, "end", ""])

    def for_player(self, environment, waited=()):
        lines = [f"set {key}={value}" for key, value in environment.items()]
        if waited:
            lines.append("waited " + " ".join(map(str, waited)))
        return "\n".join([f"program {self.name}", *lines, *self.header, *self.steps, "end", ""])

    def with_steps(self, steps):
        return replace(self, steps=steps)


def parse(text):
    """The programs of a text. Lines of `#` are left out."""
    programs = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "program":
            programs.append(Program(words[1], 0))
        elif words[0] in ("limit", "devices"):
            setattr(programs[-1], words[0], int(words[1]))
        elif words[0] == "under":
            programs[-1].settings = dict(word.split("=", 1) for word in words[1:])
        elif words[0] in ("together", "late"):
            programs[-1].header.append(line)
        elif words[0] != "end":
            programs[-1].steps.append(line)
    return programs


def generate(seed, first, count, family="mixed"):
    made = subprocess.run([BUILD / "bin/oracle_generate", str(seed), str(first), str(count), family], check=True,
                          capture_output=True, text=True)
    programs = parse(made.stdout)
    choices = CHOICES[family]
    for program in programs:
        program.settings = choices[int(program.name) % len(choices)]
    return programs


def play(texts, patience_ms, libraries=None):
    """The answers of each program, in order; `libraries` are preloaded."""
    environment = clean_environment() | {"LD_LIBRARY_PATH": f"{BUILD}/lib/ration/sim", "SIMCUDA_COSTS": "h100"}
    with tempfile.TemporaryDirectory() as state:
        os.chmod(state, 0o700)
        if libraries:
            environment |= {"LD_PRELOAD": libraries, "RATION_STATE_DIR": state}
        done = subprocess.run([BUILD / "bin/oracle_play", str(patience_ms)], input="".join(texts), env=environment,
                              capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(texts):
        raise Failure(f"the player ended with {done.returncode}: {done.stderr[-400:]}")
    return [line.split()[1:] for line in lines]


def play_natively(programs):
    return play([program.for_player(natively(program)) for program in programs], 0)


def natively(program, part=1):
    return {"SIMCUDA_DEVICES": f"{program.devices}x{program.limit // part}", "SIMCUDA_CONTEXT_BYTES": "0"}


def device_under(program):
    """Much larger than the limit; a larger one makes each run longer."""
    return 2 * program.limit + (4 << 30)


def play_under(programs, native, patience_ms, libraries=LIBRARIES):
    """`native`: the answers natively; calls that waited there may wait."""
    texts = []
    for program, answers in zip(programs, native):
        waited = [index for index, answer in enumerate(answers) if answer.endswith("w")]
        texts.append(program.for_player({"SIMCUDA_DEVICES": f"{program.devices}x{device_under(program)}", "RATION_LIMIT": program.limit}
                                        | program.settings, waited))
    return play(texts, patience_ms, libraries)
