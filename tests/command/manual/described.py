"""What the command's help shows: its verbs, and the options of each. The list that pages and completions must cover."""
import functools
import re
import subprocess

from harness import BUILD, command_environment, expect

SHARE = BUILD / "share"
OF_VERBS = ("Run and limit", "Look", "Explain a log", "Set up")
OF_OPTIONS = ("Limits", "Groups", "Logs", "Tests", "Options")


@functools.cache
def printed(*arguments):
    done = subprocess.run([BUILD / "bin/ration", *arguments], capture_output=True, text=True, env=command_environment(), check=False)
    expect(f"ration {' '.join(arguments)}", (done.returncode, done.stderr), (0, ""))
    return done.stdout


def part_of_help(text, heading):
    """The lines below a heading, in the capitals of any version of CLI11."""
    match = re.search(rf"^{heading}:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S | re.I)
    return match.group(1).splitlines() if match else []


def verbs():
    """But help, which has no options and no page."""
    return [line.split()[0] for heading in OF_VERBS for line in part_of_help(printed("--help"), heading) if re.match(r"  \S", line)]


def options(*verb):
    """The names of the options of a verb, or of the command itself."""
    lines = [re.match(r"  ((?:--?[\w-]+,? *)+)", line)
             for heading in OF_OPTIONS for line in part_of_help(printed(*verb, "--help-all"), heading)]
    return [name.strip(" ,") for line in filter(None, lines) for name in re.findall(r"--?[\w-]+", line.group(1))]
