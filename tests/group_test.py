#!/usr/bin/python3
"""usage: group_test.py BUILD

Collectives without MPI: tests/group_demo.c, on one node and on several, by all that there is."""

import re
import sys
from pathlib import Path

from job import Skip, check, main, run, without_numbers

build = Path(sys.argv[1])
demo = build / "tests" / "group-demo"
standin = build / "tests" / "sisci" / "libsisci.so"


def policy(folder, *rules, options="", name="policy.yaml", variable="COLLX_POLICY"):
    path = folder / name
    path.write_text("version: 1\n" + (f"options: {options}\n" if options else "") +
                    "rules:\n" + "".join(f"  - {rule}\n" for rule in rules))
    return {variable: path}


def works(ranks, node_size, says, rules=(), fail=None, env=None, most=30000):
    """`says`: for each collective, what has to be told of it."""

    def case(folder):
        settings = dict(env or {}) | (policy(folder, *rules) if rules else {})
        if fail is not None:
            (folder / "sisci").mkdir()
            settings |= {"COLLX_SISCI_LIBRARY": standin, "COLLX_TEST_SISCI_FAIL": fail,
                         "COLLX_TEST_SISCI_FOLDER": folder / "sisci", "COLLX_TEST_SISCI_LATE": 30}
        result = run([demo, ranks, node_size, most], {k: str(v) for k, v in settings.items()})
        result.expect()
        said = dict(re.findall(r"^(\w+): (.*)$", result.out, re.M))
        check("good" in result.out, result.out + result.err)
        for collective, text in says.items():
            check(re.search(text, said[collective]), f"{collective}: {text}\n{result.out}")
        check("collx:" not in result.err, result.err)
        check(not list((folder / "sisci").glob("*")), "files are left behind")

    return case


def late(folder):
    """Whether what is taken out is told at the end depends on how many there were."""
    for count in ("1", "2"):
        (folder / count).mkdir()
        result = run([demo, 2, 1, 0], {"COLLX_SISCI_LIBRARY": str(standin),
                                       "COLLX_TEST_SISCI_FOLDER": str(folder / count),
                                       "COLLX_SISCI_PATIENCE": "500ms", "GROUP_DEMO_LAST": count})
        result.expect()
        check("by sisci" in result.out, result.out)


def second(first_options, second_options, waits):
    """A rank is late in the second group, whose policy alone decides whether that is told."""

    def case(folder):
        env = (policy(folder, "use: [shm]", options=first_options) |
               policy(folder, "use: [shm]", options=second_options, name="second.yaml",
                      variable="GROUP_DEMO_NEXT"))
        result = run([demo, 3, 0, 100], {k: str(v) for k, v in env.items()}).expect()
        said = [line for line in without_numbers(result.err).splitlines() if "has waited" in line]
        check(len(said) == waits, result.err)
        check(all(re.search(r" m?s in Barrier for rank 2 \(process N\)\. ", line) for line in said),
              result.err)

    return case


def says_why(text):
    def case(_folder):
        result = run([demo, 2, 0, 100], {"GROUP_DEMO_SOCKETS": "0", "COLLX_VERBOSE": "1"}).expect()
        check(text in result.err and "MPI library" not in result.err, result.err)

    return case


def says_way(_folder):
    result = run([demo, 2, 0, 100], {"GROUP_DEMO_MANY": "500", "COLLX_VERBOSE": "2"}).expect()
    check(re.search("^collx: Bcast of .* KiB and more on demo: .* us ", result.err, re.M), result.err)


def once(_folder):
    """What is wrong for all ranks is said by one."""
    result = run([demo, 4, 0, 100], {"COLLX_STALL": "5"}).expect()
    check(result.err.count("COLLX_STALL: '5' is not right") == 1, result.err)


def files_too_small(_folder):
    """What is in the way is told, and what is done about that."""
    result = run(["sh", "-c", 'ulimit -f 1 && exec "$@"', "sh", demo, 2, 0, 100]).expect()
    said = [line for line in result.err.splitlines() if "cannot share memory" in line]
    check(len(said) == 1 and "File too large" in said[0] and "ulimit -f" in said[0], result.err)


def little_space(_folder):
    """Enough for each rank, but not for what they share."""
    result = run([demo, 4, 0, 100], {"GROUP_DEMO_SPACE": str(800 << 10)})
    if result.code == 77:
        raise Skip("a sanitizer needs address space of its own")
    result.expect()
    said = [line for line in result.err.splitlines() if "cannot share memory" in line]
    check(len(said) == 1 and "Cannot allocate memory" in said[0] and "ulimit -v" in said[0],
          result.err)


def moved(folder):
    """The name that the library was loaded by holds no more."""
    env = {**policy(folder, "use: [ordered]"), "LD_LIBRARY_PATH": ".", "GROUP_DEMO_FOLDER": folder}
    result = run([demo, 2, 0, 100], {k: str(v) for k, v in env.items()}, cwd=build).expect()
    check("allreduce: ordered, " in result.out, result.out + result.err)


def fails(rules, says):
    def case(folder):
        result = run([demo, 2, 0], {k: str(v) for k, v in policy(folder, *rules).items()}).expect(1)
        check(re.search(says, result.err), result.err)

    return case


main([
    ("one node", works(4, 0, {"barrier": "^shm", "bcast": "^shm", "allreduce": "^shm"})),
    ("one rank", works(1, 0, {"barrier": "^shm", "allreduce": "^shm"})),
    ("more ranks than CPUs", works(9, 0, {"allreduce": "^shm"}, most=5000)),
    ("what a policy leaves to MPI goes the usual way", works(
        2, 0, {"barrier": "^shm"}, ["use: [pmpi]"])),
    ("sizes go as a policy says", works(
        3, 0, {"allreduce": "^ordered, shm"},
        ["{match: {collective: allreduce, bytes: ..1KiB}, use: [ordered]}", "use: [shm]"])),
    ("the name is that of rank 0", works(
        3, 0, {"barrier": "^nx", "allreduce": "^ordered"},
        ["{match: {comm: demo, collective: allreduce}, use: [ordered]}",
         "{match: {comm: demo}, use: [nx]}"])),
    ("two nodes by shared memory", works(4, 2, {
        "barrier": r"^nx \(.* cross by shm\)", "bcast": r"^nx \(.* crosses by shm\)",
        "allreduce": r"^nx \(.* crosses by shm\), ordered$"})),
    ("nodes dealt out, by messages", works(
        5, -2, {"barrier": r"^hsb \(.* cross by p2p\)", "bcast": r"^hsb \(.* crosses by p2p\), nx",
                "allreduce": r"^hsb \(.* crosses by p2p\), nx"}, ["use: [hsb(over=p2p)]"], most=3000)),
    ("a rank a node, by Dolphin's, without sockets", works(
        4, 1, {"barrier": r"^nx \(.* cross by sisci\)", "bcast": r"^nx \(.* crosses by sisci\)",
               "allreduce": r"^nx \([^()]* crosses by sisci\)$"}, fail=10,
        env={"GROUP_DEMO_SOCKETS": "0"}, most=3000)),
    ("the root of the last Bcast has ended", late),
    ("a second group has not the options of the first", second("{ stall: 300ms }", "", 0)),
    ("a second group has its own options", second("", "{ stall: 300ms }", 1)),
    ("nothing to send messages by", says_why(
        "ordered of allreduce cannot be used on demo: there is no way to send messages")),
    ("the way that long messages go fastest", says_way),
    ("an option that is wrong is told once", once),
    ("no file may be as large as what they share", files_too_small),
    ("no address space for what they share", little_space),
    ("the program has gone to another folder", moved),
    ("a policy that is wrong", fails(["use: [nosuch]"], "no group: .*nosuch")),
])
