#!/usr/bin/env python3
"""at_once.py COMMAND...: starts it as server a and as server b. Both have planned before either takes its memory."""
import subprocess
import sys

servers = []
for name in "ab":
    servers.append(subprocess.Popen([*sys.argv[1:], name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    print(servers[-1].stdout.readline(), end="", flush=True)
for server in servers:
    server.stdin.write("take it\n")
    server.stdin.flush()
    print(server.stdout.readline(), end="", flush=True)
statuses = [server.communicate() and server.returncode for server in servers]
sys.exit(max(statuses))
