"""The smallest program that still shows a difference."""
from dataclasses import replace

from difference import differences
from programs import PATIENT_MS, QUICK_MS, play_natively, play_under


def differences_of(programs, patience_ms):
    native = play_natively(programs)
    under = play_under(programs, native, patience_ms)
    return [list(differences(*three)) for three in zip(programs, native, under)]


def shows(found, signature, listed):
    return any(difference.signature() == signature and not listed(difference) for difference in found)


def confirmed(program):
    """The differences that a patient run shows."""
    return differences_of([program], PATIENT_MS)[0]


def without_parts(steps, length):
    return [steps[:start] + steps[start + length:] for start in range(0, len(steps), length)]


def simpler(program):
    """The same steps with less around them."""
    return ([replace(program, settings={})] if program.settings else []) + \
           ([replace(program, devices=1)] if program.devices > 1 else []) + \
           [replace(program, header=[line for line in program.header if line != each]) for each in program.header
            if each == "late"] + \
           ([program.with_steps(["t0" + step[2:] for step in program.steps])] if any(step[1] != "0" for step in program.steps)
            and not any(line.startswith("together") for line in program.header) else [])


def minimise(program, signature, listed=lambda difference: False, play=differences_of):
    """Removes steps as long as the program still has this difference, and no list has it."""
    length = max(1, len(program.steps) // 2)
    while True:
        candidates = [program.with_steps(steps) for steps in without_parts(program.steps, length)] + simpler(program)
        found = play(candidates, 4 * QUICK_MS)
        smaller = next((candidate for candidate, each in zip(candidates, found) if shows(each, signature, listed)), None)
        if smaller is not None:
            program = smaller
            length = min(length, max(1, len(program.steps) // 2))
        elif length > 1:
            length //= 2
        else:
            return program
