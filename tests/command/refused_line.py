"""The case of a wrong line of the command."""
import subprocess

from harness import BUILD, HANG, command_environment, expect, expect_that


def refused(words, part):
    """One line on stderr, with `part` in it, and the status of a usage error."""
    def case(_):
        done = subprocess.run([BUILD / "bin/ration", *words], env=command_environment(), capture_output=True, text=True, timeout=HANG, check=False)
        expect("status, stdout", (done.returncode, done.stdout), (2, ""))
        expect_that(f"{part!r} is in one line of {done.stderr!r}", part in done.stderr and len(done.stderr.splitlines()) == 1)
    return case
