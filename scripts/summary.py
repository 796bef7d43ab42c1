#!/usr/bin/python3
"""usage: scripts/summary.py LOG...

Counts what `meson test` has run and written to these logs, such as build/meson-logs/testlog: every
case of a Google Test program, every line of a TAP test, every other test once.  Lists what failed and what was skipped, in one line what a
test skips for one reason, and ends with "N passed, N failed, N skipped".  Exit code 1 if anything
failed, or nothing was run."""

import json
import sys
import xml.etree.ElementTree as et
from collections import Counter
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
GOOD = {"OK", "EXPECTEDFAIL", "SKIP"}  # of testlog.json; what else there is, is a failure


def reason(element):
    return " ".join((element.get("message") or element.text or "").split())


def outcome(case):
    for tag in ("failure", "error"):
        if case.find(tag) is not None:
            return FAILED, ""
    skipped = case.find("skipped")
    if skipped is not None:
        return SKIPPED, reason(skipped) or (case.findtext("system-out") or "").strip()
    if case.get("status") == "notrun":
        return SKIPPED, "disabled"
    return PASSED, ""


def cases_of(log):
    """(test, case, outcome, reason) of everything that the tests were made of; a test that is one
    case of its own has no case."""
    try:
        tests = [json.loads(line) for line in Path(f"{log}.json").read_text().splitlines()]
        suites = et.parse(f"{log}.junit.xml").getroot().findall("testsuite")
    except (OSError, et.ParseError, json.JSONDecodeError) as error:
        yield "meson test", "", FAILED, f"did not finish: {error}"
        return
    for test in tests:
        name, result = test["name"], test["result"]
        found = []
        for suite in suites:
            # "project" holds the plain tests, "project.test" those with cases of their own.
            project, _, rest = suite.get("name").partition(".")
            if rest == name or rest.startswith(name + "."):
                found += [(case.get("name"), *outcome(case)) for case in suite.findall("testcase")]
            elif not rest:
                found += [(name, *outcome(case)) for case in suite.findall("testcase")
                          if case.get("name") == name]
        # A test that crashed or ran out of time need not have written so.
        if result not in GOOD and not any(what == FAILED for _, what, _ in found):
            found = [case for case in found if case[0] != name]
            found.append((name, FAILED, result.lower()))
        elif not found:
            found.append((name, SKIPPED if result == "SKIP" else PASSED, ""))
        for case, what, why in found:
            yield name, "" if case == name else case, what, why


def main(logs):
    if not logs or logs[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if logs else 2
    counts = {PASSED: 0, FAILED: 0, SKIPPED: 0}
    for log in logs:
        folder = str(Path(log).parent.parent)
        cases = list(cases_of(log))
        alike = Counter((test, why) for test, _, what, why in cases if what == SKIPPED and why)
        for test, case, what, why in cases:
            counts[what] += 1
            if what == PASSED:
                continue
            number = alike.pop((test, why), 0) if what == SKIPPED and why else 1
            if number:
                case = f"{number} cases" if number > 1 else case
                print(": ".join(filter(None, (what, folder, test, case, why))))
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 0 if counts[PASSED] and not counts[FAILED] else 1


sys.exit(main(sys.argv[1:]))
