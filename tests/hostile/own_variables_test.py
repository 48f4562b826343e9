#!/usr/bin/env python3
"""Programs that keep the driver's functions in exported variables of the same names."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import LIBRARIES, MIB, expect, main, run  # noqa: E402

BYTES = str(40 * MIB)  # two of them fit the device, one the limit
SERVED, LIMITED = "0 0 0 0 0 0 0\n", "0 0 0 0 0 2 0\n"
PROGRAMS_OF = {
    "a library that is loaded late": ("own_variables_opened", "libown_variables_library.so", BYTES),
    "a library that the program links with, by its table": ("own_variables_by_table", BYTES),
    "a library that the program links with, copied": ("own_variables_copied", BYTES),
    "a library and its user, lazily bound": ("own_variables_lazy", BYTES),
    "the program itself, exported": ("own_variables_exported", BYTES),
}


def says(program, wanted, **settings):
    def case(_):
        done = run(*program, SIMCUDA_DEVICES="16GiB", **settings)
        expect(f"status, having said {done.err}", done.status, 0)
        expect("answers", done.out, wanted)
        expect("stderr", done.err, "")
    return case


cases = {}
for name, program in PROGRAMS_OF.items():
    cases[f"{name}: without Ration"] = says(program, SERVED, preload="")
    cases[f"{name}: disabled"] = says(program, SERVED, preload=LIBRARIES, RATION_DISABLE=1, RATION_LIMIT="64MiB")
    cases[f"{name}: under a limit"] = says(program, LIMITED, preload=LIBRARIES, RATION_LIMIT="64MiB")
main(cases)
