"""usage: manual_test.py PAGE PROGRAM

A manual page and the --help of its program know the same options."""
import pathlib
import re
import subprocess
import sys

COMMANDS = {"collx": [["hw", "free"], ["hw", "probe"], ["hw", "test"], ["info"], ["policy", "check"],
                      ["policy", "explain"]]}

page, program = pathlib.Path(sys.argv[1]), sys.argv[2]
helped = set()
for command in [[]] + COMMANDS.get(pathlib.Path(program).name, []):
    text = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True,
                          timeout=60).stdout
    for short, long in re.findall(r"^ +(?:(-\S), +)?(--[a-z_]+)", text, re.M):
        helped |= {short, long} - {""}
described = set()
for line in page.read_text().replace("\\-", "-").splitlines():
    if line.startswith("."):
        described |= {"-" + word for word in re.findall(r"\bFl (-?[a-zA-Z?][a-z_]*)", line)}
for option in sorted(helped - described):
    print(f"FAIL: {page.name} does not describe {option}")
for option in sorted(described - helped):
    print(f"FAIL: --help does not know {option} of {page.name}")
if not helped:
    print(f"FAIL: --help of {program} has no options")
sys.exit(1 if helped != described or not helped else 0)
