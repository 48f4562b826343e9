#!/usr/bin/env python3
"""at_once.py COMMAND...: starts it as server a and as server b, and lets both plan before either takes its memory."""
import subprocess
import sys

servers = [subprocess.Popen([*sys.argv[1:], name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "ab"]
for server in servers:
    print(server.stdout.readline(), end="", flush=True)
for server in servers:  # one after the other, so that each run prints the same
    server.stdin.write("take it\n")
    server.stdin.flush()
    print(server.stdout.readline(), end="", flush=True)
sys.exit(max(server.communicate() and server.returncode for server in servers))
