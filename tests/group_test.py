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
        result = run([demo, ranks, node_size, most], settings)
        result.expect()
        said = dict(re.findall(r"^(\w+): (.*)$", result.out, re.M))
        check("good" in result.out, result.out + result.err)
        for collective, text in says.items():
            check(re.search(text, said[collective]), f"{collective}: {text}\n{result.out}")
        check("collx:" not in result.err, result.err)
        check(not list((folder / "sisci").glob("*")), "files are left behind")

    return case


def ways(folder):
    """Each call goes by the first rule for its size and operation."""
    rules = ["{match: {collective: allreduce, op: sum, bytes: 1KiB..2KiB}, use: [ordered]}",
             "{match: {collective: allreduce, op: sum, bytes: ..512}, use: [ordered]}",
             "{match: {collective: allreduce, op: max, bytes: 1KiB..1536}, use: [ordered]}",
             "use: [shm]"]
    wanted = {"sum 8": "messages", "sum 512": "messages", "sum 520": "memory", "sum 1016": "memory",
              "sum 1024": "messages", "sum 2048": "messages", "sum 2056": "memory",
              "max 8": "memory", "max 512": "memory", "max 1016": "memory", "max 1024": "messages",
              "max 1536": "messages", "max 1544": "memory"}
    env = policy(folder, *rules) | {"GROUP_DEMO_WAYS": " ".join(wanted)}
    result = run([demo, 3, 0, 100], env).expect()
    found = dict(re.findall(r"^((?:sum|max) \d+): (.*)$", result.out, re.M))
    check(found == wanted, result.out)


def without(rank):
    """What one rank cannot do none does: it goes another way, or another algorithm does it."""

    def case(folder):
        env = {"COLLX_SISCI_LIBRARY": standin, "COLLX_TEST_SISCI_FOLDER": folder,
               "GROUP_DEMO_WITHOUT": rank}
        for rules, way in ([], rf"cross by shm, not by sisci on rank {rank}: "), \
                          (["use: [hsb(over=sisci)]"], "cross by shm"):
            env |= policy(folder, *rules) if rules else {}
            result = run([demo, 4, 1, 3000], env).expect()
            check(re.search(rf"^barrier: nx \([^()]* {way}", result.out, re.M), result.out)
            check("good" in result.out, result.out + result.err)

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
        result = run([demo, 3, 0, 100], env).expect()
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
    result = run([demo, 4, 0, 100], {"GROUP_DEMO_SPACE": 800 << 10})
    if result.code == 77:
        raise Skip("a sanitizer needs address space of its own")
    result.expect()
    said = [line for line in result.err.splitlines() if "cannot share memory" in line]
    check(len(said) == 1 and "Cannot allocate memory" in said[0] and "ulimit -v" in said[0],
          result.err)


def little_space_alone(_folder):
    """One rank, be it one that leads or not, has less than that, or not even enough for itself:
    either there is a group on all ranks, and it works, or on none."""
    shared = set()
    for rank in "02":
        for space in [*range(4 << 10, 200 << 10, 20 << 10), *range(200 << 10, 4 << 20, 400 << 10)]:
            result = run([demo, 3, 0, 100], {"GROUP_DEMO_SPACE": space, "GROUP_DEMO_ALONE": rank})
            if result.code == 77:
                raise Skip("a sanitizer needs address space of its own")
            good = result.code == 0 and "good" in result.out
            none = result.code == 1 and result.err.count("no group: ") == 1
            check(good or none, f"rank {rank}, {space} bytes: {result.code}\n{result.out}{result.err}")
            shared.add((rank, "cannot share memory" not in result.err))
    check(len(shared) == 4, f"there was enough, or too little, for all: {shared}")


def moved(folder):
    """The name that the library was loaded by holds no more."""
    env = {**policy(folder, "use: [ordered]"), "LD_LIBRARY_PATH": ".", "GROUP_DEMO_FOLDER": folder}
    result = run([demo, 2, 0, 100], env, cwd=build).expect()
    check("allreduce: ordered, " in result.out, result.out + result.err)


def fails(rules, says):
    def case(folder):
        result = run([demo, 2, 0], policy(folder, *rules)).expect(1)
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
    ("sizes and operations go as a policy says", ways),
    ("one algorithm in two ways", works(
        4, 1, {"bcast": r"^nx \([^()]* to 1 other a round; [^()]*\), .*nx \([^()]* to 3 others"},
        ["{match: {collective: bcast, bytes: ..1KiB}, use: [nx(n=1)]}", "use: [nx(n=2)]"])),
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
    ("rank 0 alone has no library of Dolphin's", without(0)),
    ("another rank alone has no library of Dolphin's", without(2)),
    ("the root of the last Bcast has ended", late),
    ("a second group has not the options of the first", second("{ stall: 300ms }", "", 0)),
    ("a second group has its own options", second("", "{ stall: 300ms }", 1)),
    ("nothing to send messages by", says_why(
        "ordered of allreduce cannot be used on demo: there is no way to send messages")),
    ("the way that long messages go fastest", says_way),
    ("an option that is wrong is told once", once),
    ("no file may be as large as what they share", files_too_small),
    ("no address space for what they share", little_space),
    ("no address space for it on one rank", little_space_alone),
    ("the program has gone to another folder", moved),
    ("a policy that is wrong", fails(["use: [nosuch]"], "no group: .*nosuch")),
])
