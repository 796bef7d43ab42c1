#!/usr/bin/python3
"""usage: run_weather.py BUILD MPI LAUNCHER

Bad weather: processes that end, fork, have threads and sessions, get calls wrong, or find nothing
left of what they need."""

import os
import re
import shutil
import signal

from job import Failure, Report, Skip, check, main, run
from weather import (ALL_PMPI, RANKS, build, collx, ends_alike, good, in_front, job, made_up_by_launcher,
                     mpi, mpi_name, own_mounts, routes, said_once, simple, spoke, weather)

# A rank finds no memory, as the rest of the environment says; collx is behind that.
no_memory = build / "tests" / "programs" / "no_memory.so"
NO_MEMORY = {"LD_PRELOAD": f"{no_memory} {collx}"}


def shared_memory():
    return {name for name in os.listdir("/dev/shm") if "collx" in name}


def policy_of(folder, rule):
    """A policy of that rule alone."""
    policy = folder / "policy.yaml"
    policy.write_text(f"version: 1\nrules:\n  - {rule}\n")
    return policy


def killed(folder):
    before = shared_memory()
    result, calls = routes(folder, case="killed")
    if not made_up_by_launcher(result):
        ends_alike(result, "killed")
    check(shared_memory() == before, f"left in /dev/shm: {shared_memory() - before}")
    # 100 rounds of three calls on each rank; the last barriers never ended.
    ended = sum(calls.values())
    check(ended >= 300 * RANKS, f"only {ended} events of {300 * RANKS} are in the trace")


def survives(case, env=None, rule=None, words=()):
    """Who waits in collx would not hear that a rank is lost."""
    def run_case(folder):
        # Open MPI 5 has what the library in front has, and sets it by itself.
        given = {"LD_PRELOAD": in_front("survives"), "OMPI_MCA_mpi_ft_enable": 1, **(env or {})}
        if rule:
            given["COLLX_POLICY"] = policy_of(folder, rule)
        result, calls = routes(folder, given, case, with_collx=False)
        said_once(good(result), "shall survive the loss of others", "stay with the MPI library", *words)
        check(len(spoke(result)) == 1, result.err)
        check(set(calls) == {("pmpi", "setup failed"), ("pmpi", "warm-up")}, f"{calls}")

    return run_case


def loses_a_rank(folder):
    def one(env):
        launch, *words = mpi.command(RANKS, [weather, "loses-a-rank"], env)
        return run([launch, "--with-ft", "ulfm", *words], timeout=30)

    def with_collx(**env):
        # Open MPI 5.0.7 itself does not come to an end in 3 of 90 runs without collx, nor in more with
        # it.  What collx makes it do is in each.
        for last in False, False, True:
            try:
                return good(one({"LD_PRELOAD": collx, **env}))
            except Failure as failure:
                if last or "not over after" not in str(failure):
                    raise

    try:
        plain = one({}).code
    except Failure:
        plain = None
    if plain:
        raise Skip("this MPI library does not survive the loss of ranks, without collx either")
    for env in {}, {"COLLX_AT_ONCE": "on"}, {"COLLX_TRACE": folder / "trace"}:
        said_once(with_collx(**env), "shall survive the loss of others")
    calls = Report(build, folder / "trace").per_rank()
    # Of the one that is lost what it has written down; of the others also 616 calls that went well.
    check(min(calls) > 500 and max(calls) > 1200, f"{calls}")


def leaves_operation(folder):
    result, calls = routes(folder, {"COLLX_AT_ONCE": "on"}, "jump-out-of-operation", ranks=2)
    said_once(good(result), "an operation of the program's has left")
    check(len(spoke(result)) == 1, result.err)
    check(calls.get(("pmpi", "not taken")), f"{calls}")


def aborts(folder):
    result, calls = routes(folder, case="aborts")
    ends_alike(result, "aborts")
    # A rank that is killed as it leaves the last call has not written that one down.
    check(sum(calls.values()) > 149 * RANKS, f"events are missing from the trace: {calls}")


def own_error(case, words):
    """MPI reports a wrong call as it does without collx."""

    def run_case(folder):
        plain = job(case, with_collx=False, ranks=1)
        # Open MPI 6 looks for the words in memory that it has freed.
        if plain.code == 128 + signal.SIGSEGV:
            raise Skip("this MPI library crashes where it would say so, without collx either")
        result = job(case, ranks=1).expect_quiet()
        check(words in plain.err + plain.out, f"what MPI says has changed:\n{plain.err}")
        check(words in result.err + result.out, f"MPI does not say so:\n{result.err}")
        check(result.code == plain.code != 0, f"exit code {result.code}, not {plain.code}")

    return run_case


def no_finalize(folder):
    result, calls = routes(folder, case="no-finalize")
    if not made_up_by_launcher(result):
        ends_alike(result, "no-finalize")
    # The first rank to leave may take the others with it, as they come out of the last call.
    check(sum(calls.values()) > 149 * RANKS, f"not all calls are in the trace: {calls}")


def constructor(ranks, policy=None, name="constructor"):
    """One thread sets a communicator up while another one, which holds the loader's lock, does so
    with its own: what collx loads then must not be waited for with a lock held."""

    def case(folder):
        env = {"COLLX_TEST_CONSTRUCTOR": build / "tests" / "constructor.so"}
        if policy:
            env["COLLX_POLICY"] = folder / "policy.yaml"
            env["COLLX_POLICY"].write_text(policy)
        simple(name, ranks=ranks, env=env)(folder)

    return case


def becomes_another(folder):
    result, calls = routes(folder, case="exec")
    if not made_up_by_launcher(result):
        result.expect()
    check("good" in result.expect_quiet().out, f"not at its end\n{result.err}")
    check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")


def beside_the_root(folder):
    simple("beside-the-root", ranks=4)(folder)
    rows = [row for row in Report(build, folder / "trace").json["rows"] if row["comm_size"] == 2]
    calls = {}
    for row in rows:
        check(row["reason"] == "intercommunicator", f"{row}")
        check(row["matched_calls"] == 0, f"nobody can say who waited for whom here: {row}")
        sizes = calls.setdefault(row["collective"], {})
        sizes[row["bytes_max"]] = sizes.get(row["bytes_max"], 0) + row["calls"]
    # Of 4 bytes and of 300: the root has those of both ranks, and the one beside it has none.
    expected = {"MPI_Bcast": {8: 3, 0: 1}, "MPI_Reduce": {8: 3, 0: 1}, "MPI_Ibcast": {512: 3, 0: 1}}
    for name in ("Gather", "Gatherv", "Scatter", "Scatterv"):
        expected[f"MPI_{name}"] = {4096: 1, 512: 2, 0: 1}
    check(calls == expected, f"{calls}")


def belongs_together(folder, expected):
    """The report finds together what does, though one rank has made `expected` calls more that were
    refused."""
    rows = Report(build, folder / "trace").json["rows"]
    refused = sum(row["calls"] for row in rows if row["reason"] == "bad argument")
    check(refused == expected, f"{refused} calls of {expected} are told to have had bad arguments")
    for row in rows:
        wanted = 0 if row["reason"] == "bad argument" else row["calls"]
        check(row["matched_calls"] == wanted, f"not {wanted} calls found on all ranks: {row}")


def lonely_error(folder):
    simple("lonely-error")(folder)
    belongs_together(folder, {"openmpi": 18, "mpich": 15}[mpi_name])


def lonely_error_first(folder):
    simple("lonely-error-first", env={"COLLX_AT_ONCE": "on"})(folder)
    belongs_together(folder, 4)


def lonely_error_told(folder):
    """Also where the MPI library says no more of it than that."""
    simple("lonely-error-told")(folder)
    result, calls = routes(folder, {"LD_PRELOAD": in_front("quiet-errors")}, "lonely-error-told",
                           with_collx=False)
    good(result).expect_quiet()
    check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")
    belongs_together(folder, 12)


def handler_meanwhile(folder):
    policy = policy_of(folder, 'use: ["nx(over=p2p)", pmpi]')
    result, calls = routes(folder, {"LD_PRELOAD": in_front("handler-meanwhile"), "COLLX_POLICY": policy,
                                    "COLLX_NODE_SIZE": 1}, "handler-meanwhile", with_collx=False)
    good(result).expect_quiet()
    check(calls.get(("nx", "policy")), f"nothing was routed: {calls}")


def freed_in_warm_up(folder):
    good(job("freed-in-warm-up", {"LD_PRELOAD": in_front("late-to-return")}, with_collx=False)).expect_quiet()


def freed_in_warm_up_traced(folder):
    result, _ = routes(folder, {"LD_PRELOAD": in_front("late-to-return")}, "freed-in-warm-up", with_collx=False)
    good(result).expect_quiet()
    # Of two calls the first is on a communicator that nobody knows yet, and is looked at when it is over.
    sizes = [row for row in Report(build, folder / "trace").json["rows"]
             if row["collective"] == "MPI_Bcast" and row["function"] == "freed_in_warm_up" and row["bytes_min"]]
    check(sum(row["calls"] for row in sizes) >= RANKS + 1, f"the types that were freed had bytes: {sizes}")


def same_buffers(at_once):
    """An MPI library that does not refuse them."""
    preload = collx if mpi_name == "openmpi" else in_front("same-buffers")
    return simple("same-buffers", with_collx=False,
                  env={"LD_PRELOAD": preload, "OMPI_MCA_mpi_param_check": 0, **at_once})


def given_back(use):
    """What collx takes from the MPI library of what that counts: a job has many communicators."""

    def case(folder):
        policy = policy_of(folder, f'use: ["{use}", pmpi]')
        result, calls = routes(folder, {"LD_PRELOAD": in_front("given-back"), "COLLX_POLICY": policy,
                                        "COLLX_NODE_SIZE": 1 if "(" in use else 0,
                                        "COLLX_AT_ONCE": "on"}, "apart", with_collx=False)
        good(result).expect_quiet()
        check(calls.get((use.partition("(")[0], "policy")), f"nothing was routed: {calls}")
        kept = re.findall(r"^kept 0 groups, 0 error handlers and 0 of \d+ requests$", result.out, re.M)
        check(len(kept) == RANKS, result.out)

    return case


def forks_between_nodes(over):
    """A child that frees a communicator does not say so for its parent."""

    def case(folder):
        policy = policy_of(folder, f'use: ["nx(over={over})", pmpi]')
        (folder / "sisci").mkdir()
        env = {"COLLX_POLICY": policy, "COLLX_NODE_SIZE": 1,
               "COLLX_SISCI_LIBRARY": build / "tests" / "sisci" / "libsisci.so",
               "COLLX_TEST_SISCI_FOLDER": folder / "sisci"}
        result, calls = routes(folder, env, "forks", ranks=2)
        good(result).expect_quiet()
        check(calls.get(("nx", "policy")), f"nothing was routed: {calls}")

    return case


def on_their_way(rule, route, program="some-on-their-way", **env):
    """Nor may messages wait for communicators of the program's."""

    def case(folder):
        policy = policy_of(folder, rule)
        result, calls = routes(folder, {"COLLX_POLICY": policy, **env}, program, ranks=2)
        good(result).expect_quiet()
        check(calls.get((route, "policy")), f"nothing was routed: {calls}")

    return case


def in_place(folder):
    simple("in-place", expect_route=False)(folder)
    sizes = {}
    for row in Report(build, folder / "trace").json["rows"]:
        if row["collective"] != "MPI_Barrier":
            sizes.setdefault(row["collective"], set()).add((row["bytes_min"], row["bytes_max"]))
    wanted = {f"MPI_{name}": {(513, 4096)}
              for name in ("Allgatherv", "Gatherv", "Scatterv", "Alltoallv", "Alltoallw")}
    check(sizes == wanted, f"each rank contributed 600 bytes, but the trace says {sizes}")


def every_collective(folder):
    """In each form that the MPI library has: what each rank contributes, or else receives."""
    simple("every-collective", expect_route=False)(folder)
    calls = {}
    for row in Report(build, folder / "trace").json["rows"]:
        calls.setdefault(row["collective"], []).append((row["bytes_max"], row["calls"]))
    # 300 bytes; or as many for each of four ranks, or two neighbours.
    sizes = {"Barrier": 0} | dict.fromkeys((
        "Bcast", "Allreduce", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather",
        "Allgatherv", "Scan", "Exscan", "Neighbor_allgather", "Neighbor_allgatherv"), 512)
    sizes |= dict.fromkeys((
        "Alltoall", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block",
        "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"), 4096)
    persistent = any(name.endswith("_init") for name in calls)
    expected = {}
    for name, size in sizes.items():
        forms = [name, f"I{name.lower()}", *([f"{name}_init"] if persistent else [])]
        expected |= {f"MPI_{form}": [(size, RANKS)] for form in forms}
    check(calls == expected, f"{calls}\nnot\n{expected}")


def where_the_library_can(name, plain_runs=1, **options):
    """What not every release of the MPI libraries gets right by itself, or not in each of some runs."""
    def one(folder):
        try:
            simple(name, **options)(folder)
        except Failure:
            for _ in range(plain_runs):
                if job(name, with_collx=False, ranks=options.get("ranks", RANKS)).code:
                    raise Skip("this MPI library gets it wrong, without collx either")
            raise

    return one


def right_types(case):
    def one(folder):
        result, calls = routes(folder, case=case)
        good(result).expect_quiet()
        check(not calls.get(("pmpi", "bad argument")),
              f"calls that are right are called wrong: {calls}")

    return one


def told_apart(folder):
    """Launchers tell of two jobs alike, one after the other: a port is free again, a container
    counts its processes anew."""
    if mpi_name == "mpich":
        wrap = ["env", "MPIEXEC_PORT_RANGE=21500:21900"]
    else:
        wrap = ["unshare", "-pf", "--mount-proc"]
        if not shutil.which("unshare") or run([*wrap, "true"]).code:
            raise Skip("no container can be made here: it takes root, or CAP_SYS_ADMIN")
    for ranks in 3, 2:
        routes(folder, ranks=ranks, wrap=wrap)[0].expect_quiet()
    found = Report(build, folder / "trace").json
    check(len(found["ranks"]) == 2, f"not the later job alone, of 2 ranks: {found['ranks']}")
    check(any("of another job" in problem for problem in found["problems"]), found["problems"])


def out_of_order(folder):
    simple("out-of-order", expect_route=False)(folder)
    rows = [row for row in Report(build, folder / "trace").json["rows"]
            if row["collective"] == "MPI_Ibarrier"]
    calls = [sum(row[key] for row in rows) for key in ("calls", "completed_calls")]
    check(calls == [40 * RANKS, 40 * RANKS], f"{calls[0]} calls, of which {calls[1]} came to an end")


def in_comm_free_with_windows(folder):
    policy = policy_of(folder, 'use: ["nx(over=rma)", pmpi]')
    result, calls = routes(folder, {"COLLX_POLICY": policy, "COLLX_NODE_SIZE": 1}, "in-comm-free")
    good(result).expect_quiet()
    check(calls.get(("nx", "policy")), f"nothing was routed: {calls}")


def session_outlives_windows(folder):
    """Windows end with MPI_COMM_WORLD, so a session's communicator must not count on them."""
    policy = policy_of(folder, 'use: ["nx(over=rma)", pmpi]')
    result, calls = routes(folder, {"COLLX_POLICY": policy, "COLLX_NODE_SIZE": 1,
                                    "COLLX_VERBOSE": 1}, "session-outlives")
    good(result)
    check("windows need MPI_COMM_WORLD, whose MPI_Init" in result.err, result.err)
    check(calls and not [key for key in calls if key[0] == "nx"], f"it goes by windows: {calls}")


def session_used_late(folder):
    """Without a trace, which looks at communicators for itself."""
    result = good(job("session-used-late", {"COLLX_AT_ONCE": "on", "COLLX_VERBOSE": 1}))
    check(re.search("^collx: .*shm", result.err, re.M), f"nothing was routed: {result.err}")


def big_element_by_nx(folder):
    policy = policy_of(folder, "use: [nx, pmpi]")
    result, calls = routes(folder, {"COLLX_POLICY": policy}, "big-element", ranks=2, timeout=120)
    good(result).expect_quiet()
    check(calls.get(("nx", "policy")) and calls.get(("pmpi", "not taken")), f"{calls}")


def with_library(case):
    """A case in front of whose MPI library there is one that differs in what the case is about."""
    return simple(case, with_collx=False,
                  env={"LD_PRELOAD": in_front(case), "COLLX_AT_ONCE": "on"})


def none_nonblocking(at_once):
    """From the first nonblocking collective on all that polls in Open MPI takes longer."""

    def case(folder):
        if mpi_name != "openmpi":
            raise Skip("waiting ranks of MPICH would keep the CPU in one that blocks")
        for ranks in 1, 2, 3, RANKS:
            env = {"LD_PRELOAD": in_front("nonblocking"), **at_once}
            result = good(job("plain", env, ranks, with_collx=False)).expect_quiet()
            check("nonblocking" not in result.out + result.err, result.out + result.err)

    return case


def threads_as_ranks(folder):
    """They would have one state of collx in common."""
    for options in ({}, {"COLLX_AT_ONCE": "on"}):
        simple("threads-as-ranks", with_collx=False, ranks=2, timeout=30,
               env={"LD_PRELOAD": in_front("threads-as-ranks"), **options})(folder)


def larger_than_a_node(folder):
    """What goes to the MPI library whatever its ranks say to each other, they need not say."""
    def warm_up(env):
        """How many calls of each rank."""
        result, calls = routes(folder, env)
        return calls.get(("pmpi", "warm-up"), 0) // RANKS, good(result)

    between = {"COLLX_POLICY": policy_of(folder, "use: [nx, pmpi]")}
    calls, result = warm_up({"COLLX_NODE_SIZE": RANKS - 1})
    check(calls == 1, f"{calls} calls; the first one is made before collx looks at a communicator")
    result.expect_quiet()
    good(job("one-past", {"COLLX_NODE_SIZE": RANKS - 1}, timeout=20)).expect_quiet()
    # Where it fits into a node, where there are ways between nodes, or where somebody asks, they do.
    for env in ({"COLLX_NODE_SIZE": RANKS}, {}, {"COLLX_NODE_SIZE": RANKS - 1, **between},
                {"COLLX_NODE_SIZE": RANKS - 1, "COLLX_VERBOSE": 1},
                {"COLLX_NODE_SIZE": RANKS - 1, "COLLX_CHECK": "on"}):
        calls, _ = warm_up(env)
        check(calls > 1, f"{env}: {calls} calls")


def too_short(folder):
    """Who asks what collx does is told that it is there, also where nothing will be set up."""
    policy = folder / "policy.yaml"
    for rules, calls in ((None, r"after \d+ calls of"), (ALL_PMPI, r"after \d+ calls of"),
                         (ALL_PMPI + "    order: rank\n", "before its first")):
        if rules:
            policy.write_text(rules)
        env = {"COLLX_POLICY": policy} if rules else {}
        result = good(job("in-place", {"COLLX_VERBOSE": 1, **env}))
        check(len(spoke(result)) == 1, result.err)
        name = {"openmpi": r"Open MPI v\d", "mpich": r"MPICH Version: +\d"}[mpi_name]
        check(re.match(rf"collx: version \d\S+, {name}[^,]*, policy "
                       rf"{re.escape(str(policy)) if rules else 'built-in'}\. .*: {calls} MPI_Barrier",
                       spoke(result)[0]), spoke(result)[0])
        good(job("in-place", env)).expect_quiet()


def on_world_after_failure(folder):
    if mpi_name != "openmpi" or job("on-world-after-failure", with_collx=False).code:
        raise Skip("this MPI library does not get there, without collx either")
    good(job("on-world-after-failure")).expect_quiet()
    good(job("on-world-after-failure", {"LD_PRELOAD": in_front("strict-end")}, with_collx=False)).expect_quiet()


def communicators(folder):
    def growth(result):
        return {name: int(value) for name, value in
                re.findall(r"(fds|maps|kib) (-?\d+)", good(result).out)}

    plain = growth(job("communicators", with_collx=False, ranks=2, timeout=120))
    # What the MPI library keeps depends on how late ranks are; what we forget is forgotten each time.
    for _ in range(3):
        with_collx = growth(job("communicators", ranks=2, timeout=120).expect_quiet())
        # 9,000 times anything that is forgotten is more than this.
        if with_collx["kib"] <= plain["kib"] + 256:
            break
    check(with_collx["fds"] <= plain["fds"], f"open files: {plain} became {with_collx}")
    check(with_collx["maps"] <= plain["maps"] + 4, f"mappings: {plain} became {with_collx}")
    check(with_collx["kib"] <= plain["kib"] + 256, f"memory: {plain} became {with_collx}")


def full_shm(folder):
    words = own_mounts("mount -t tmpfs -o size=64m tmpfs /dev/shm")
    good(job("full-shm", {"COLLX_AT_ONCE": "on"}, wrap=words)).expect_quiet()


def no_memory_left(folder):
    result = good(job("plain", {"COLLX_MEMORY": "100KiB"}))
    said_once(result, "COLLX_MEMORY is used up")


def not_supported(folder):
    """What the kernel does not do is said by its name, though the ranks tell each other bits."""
    env = NO_MEMORY | {"COLLX_TEST_NO_FALLOCATE": 1}
    said_once(good(job("plain", env, with_collx=False)), "cannot share", "Function not implemented",
              "memfd_create and fallocate")


def no_memory_on_one(folder):
    for rank in 0, 1:
        env = NO_MEMORY | {"COLLX_TEST_NO_MEMORY": rank}
        result = good(job("plain", env, with_collx=False))
        said_once(result, "could not agree on their routes", "no memory left")


def one_block_missing(folder):
    """An algorithm that one rank alone cannot attach is one that nobody uses."""
    # One that has to be connected after it has been attached.
    connects = {"COLLX_POLICY": policy_of(folder, 'use: ["nx(over=p2p)", pmpi]')}
    good(job("one-block-missing", NO_MEMORY | connects, with_collx=False, ranks=2))
    result, calls = routes(folder, NO_MEMORY, "one-block-missing", with_collx=False, ranks=2)
    good(result)
    said_once(result, "could not agree on their routes", "no memory left")
    # The setup and its five lists, what is attached, three algorithms, their choices.
    check(int(re.search(r"^(\d+) blocks", result.out, re.M)[1]) >= 10, result.out)
    check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")


def one_block_missing_again(folder):
    """Nor can one rank alone have what another communicator had."""
    result, calls = routes(folder, NO_MEMORY, "one-block-missing-again", with_collx=False, ranks=2)
    good(result).expect_quiet()
    check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")


def none_for_loader(folder):
    """What a rank's threads have of their own has been made room for before."""
    good(job("none-for-loader", {"LD_PRELOAD": no_memory}, with_collx=False))
    result, calls = routes(folder, NO_MEMORY, "none-for-loader", with_collx=False)
    good(result)
    check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")


def none_for_call(folder):
    good(job("none-for-call", NO_MEMORY | {"COLLX_AT_ONCE": "on"}, with_collx=False)).expect_quiet()


def little_stack(folder):
    """Threads of the smallest stack that there is, 16 KiB, can call what they could without collx:
    it takes no more than 12, or, beside a frame, and one of a trace, what the MPI library does."""
    FRAME = 256
    program = build / "tests" / "programs" / f"stack-{mpi_name}"

    def depths(ranks, **env):
        result = good(mpi.run(ranks, [program], env))
        return {name: int(depth) for name, depth in re.findall(r"^(\w+) (\d+)$", result.out, re.M)}

    for ranks in 2, 9:
        plain = depths(ranks)
        check(len(plain) == 6, plain)
        for env in ({"COLLX_AT_ONCE": "off"}, {"COLLX_AT_ONCE": "on"},
                    {"COLLX_AT_ONCE": "on", "COLLX_VERBOSE": "1"},
                    {"COLLX_AT_ONCE": "on", "COLLX_TRACE": str(folder / "trace")}):
            found = depths(ranks, LD_PRELOAD=collx, **env)
            frames = FRAME * (1 + ("COLLX_TRACE" in env))
            deep = {name: depth for name, depth in found.items()
                    if depth > max(plain[name] + frames, 12 << 10)}
            check(not deep, f"{ranks} ranks, {env}: {deep}, not {plain}")


def late_elsewhere(folder):
    """Ranks of a communicator are told of so that one can find them."""
    result = good(job("late-elsewhere", {"COLLX_AT_ONCE": "on", "COLLX_STALL": "300ms"}))
    who = "rank 0 of part [ranks 2, 1 of MPI_COMM_WORLD] has waited"
    said = [line for line in spoke(result) if who in line and "in MPI_Barrier for rank 1 (process N)." in line]
    check(len(said) == 2 and len(spoke(result)) == 2, result.err)


def inexact(folder):
    if mpi_name == "mpich":
        raise Skip("this MPI library reckons with floating-point numbers itself")
    # Looking which way is the fastest, and telling of it, and of a rank that is late.
    for verbose in 0, 2:
        env = {"COLLX_AT_ONCE": "on", "COLLX_STALL": "300ms", "COLLX_VERBOSE": verbose}
        said_once(good(job("inexact", env, ranks=2)), "has waited")


def no_files(folder):
    """What is in the way of one communicator mostly is in the way of thousands."""
    if job("no-files", with_collx=False).code:
        raise Skip("this MPI library does not get on without files, without collx either")
    said_once(good(job("no-files")), "cannot share", "Too many open files", "ulimit -n")


def no_communicator_left(folder):
    """Ranks of one node need none; windows do."""
    result, calls = routes(folder, case="no-communicator", ranks=2)
    good(result).expect_quiet()
    check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")
    policy = policy_of(folder, 'use: ["nx(over=rma)", pmpi]')
    env = {"COLLX_POLICY": policy, "COLLX_NODE_SIZE": 1, "COLLX_VERBOSE": 1}
    result = good(job("no-communicator", env, ranks=2))
    check(re.search(r"not nx\(over=rma\): rma on rank 0: MPI_Comm_create_group: .*communicator", result.err), result.err)


def two_sessions(folder):
    env = {"COLLX_ADAPTER": build / "tests" / "programs" / "slow_adapter.so",
           "COLLX_TEST_ADAPTER": build / f"libcollx-{mpi_name}.so"}
    result, calls = routes(folder, env, case="two-sessions")
    good(result).expect_quiet()
    # In each 16 calls until it is set up, and 50 rounds of three.
    check(sum(calls.values()) == 2 * 166 * RANKS, f"calls are missing from the trace: {calls}")


def while_a_session_ends(case, used):
    """What begins or ends meanwhile on another thread finds all in place, and the last of them closes
    the trace."""

    def run_case(folder):
        library = build / "tests" / "programs" / f"libmpi.so.slow-end-{mpi_name}"
        if job(case, {"LD_PRELOAD": library}, with_collx=False).code:
            raise Skip("this MPI library cannot do it, without collx either")
        result, calls = routes(folder, {"LD_PRELOAD": f"{collx} {library}"}, case, with_collx=False)
        good(result).expect_quiet()
        # Each time 16 calls until it is set up, and 50 rounds of three.
        check(sum(calls.values()) == used * 166 * RANKS, f"calls are missing from the trace: {calls}")
        ranks = Report(build, folder / "trace").json["ranks"]
        check(all(rank["complete"] for rank in ranks), f"the trace was not closed: {ranks}")

    return run_case


def begins_again(folder):
    """One trace of a process, whatever began and ended in it."""
    if job("begins-again", with_collx=False).code:
        raise Skip("this MPI library cannot begin again, without collx either")
    result, calls = routes(folder, case="begins-again")
    good(result).expect_quiet()
    check(sum(calls.values()) == 2 * 166 * RANKS, f"calls are missing from the trace: {calls}")
    report = Report(build, folder / "trace")
    check(report.code == 0 and len(report.per_rank()) == RANKS, f"{report.err}{report.per_rank()}")


main([
    ("a rank is killed in a barrier", killed),
    ("a job that shall survive the loss of ranks", survives("plain")),
    ("a job that shall survive the loss of ranks, at once and compared",
     survives("plain", {"COLLX_AT_ONCE": "on", "COLLX_CHECK": "on"})),
    ("a job that shall survive the loss of ranks, although an order is demanded",
     survives("plain", rule="{use: [shm, pmpi], order: rank}",
              words=["although the policy demands order: rank"])),
    ("a rank goes past collx in a job that shall survive the loss of ranks", survives("one-past")),
    ("sessions that shall survive the loss of ranks", survives("sessions")),
    ("a job that survives the loss of a rank", loses_a_rank),
    ("MPI_Abort", aborts),
    ("a call before MPI_Init", own_error("before-init", {
        "openmpi": "was called before MPI_INIT", "mpich": "before initializing"}[mpi_name])),
    ("a call after MPI_Finalize", own_error("after-finalize", {
        "openmpi": "after MPI_FINALIZE", "mpich": "after finalizing"}[mpi_name])),
    ("a call after MPI_Finalize, on a communicator that was kept", own_error(
        "after-finalize-kept", {
            "openmpi": "MPI_Allreduce() function was called after MPI_FINALIZE",
            "mpich": "(internal_Allreduce) before initializing or after finalizing"}[mpi_name])),
    ("no MPI_Finalize", no_finalize),
    ("ranks fork", simple("forks")),
    ("ranks fork, and share memory between nodes", forks_between_nodes("shm")),
    ("ranks fork, and write to each other's nodes", forks_between_nodes("sisci")),
    ("ranks fork, and have windows", forks_between_nodes("rma")),
    ("a rank becomes another program", becomes_another),
    ("no nonblocking collectives", none_nonblocking({})),
    ("no nonblocking collectives, at once", none_nonblocking({"COLLX_AT_ONCE": "on"})),
    ("threads, each on its own communicator", simple("threads")),
    ("threads, one of which frees what another one's call uses",
     simple("freed-meanwhile", env={"COLLX_AT_ONCE": "on"})),
    ("threads, one of which frees what another one's call uses, before the setup", freed_in_warm_up),
    ("threads, one of which frees what another one's call uses, before the setup, traced",
     freed_in_warm_up_traced),
    ("threads, one in a constructor, with a policy",
     constructor(2, "version: 1\nrules:\n  - use: [shm, pmpi]\n")),
    ("threads, one in a constructor, of 9 ranks", constructor(9)),
    ("sessions", simple("sessions")),
    ("sessions of one rank each", simple("session-alone")),
    ("sessions of one rank each, compared",
     simple("session-alone", env={"COLLX_CHECK": "on"})),
    ("sessions of two threads at once", two_sessions),
    ("a session of two threads, one in a constructor", constructor(2, name="constructor-session")),
    ("a session begins while the last one ends", while_a_session_ends("session-meanwhile", 3)),
    ("MPI_Init while the last session ends", while_a_session_ends("init-meanwhile", 3)),
    ("MPI_Finalize while the last session ends", while_a_session_ends("finalize-meanwhile", 2)),
    ("MPI begins again", begins_again),
    ("handles that are 0", simple("zero-handles")),
    ("a call that one rank gets wrong", lonely_error),
    ("a call of nothing that one rank gets wrong", simple("lonely-error-of-nothing")),
    ("a call that one rank gets wrong, the first", lonely_error_first),
    ("a call that one rank gets wrong, with a handler of its own", lonely_error_told),
    ("an error handler that jumps out of a call", simple("jump-out-of-call", ranks=2)),
    ("an error handler that jumps out of calls on several communicators",
     simple("jump-out-of-several", ranks=2)),
    ("an error handler that calls a collective", simple("call-in-handler", ranks=2)),
    ("an error handler that jumps out of a call of another thread",
     simple("jump-out-in-thread", ranks=2)),
    ("an operation that jumps out of a call", leaves_operation),
    ("buffers that are the same, where MPI does not look", same_buffers({})),
    ("buffers that are the same at once, where MPI does not look",
     same_buffers({"COLLX_AT_ONCE": "on"})),
    ("collectives inside MPI_Finalize", simple("in-finalize")),
    ("collectives inside MPI_Comm_free", simple("in-comm-free")),
    ("collectives inside MPI_Comm_free, set up at once",
     simple("in-comm-free", env={"COLLX_AT_ONCE": "on"})),
    ("collectives inside MPI_Comm_free, with windows", in_comm_free_with_windows),
    ("collectives on a communicator that went with its last message", simple("after-comm-free")),
    ("collectives on a communicator that went with its last message, set up at once",
     simple("after-comm-free", env={"COLLX_AT_ONCE": "on"})),
    ("collectives on the communicator of a window or a file, which goes with it",
     simple("with-windows-and-files")),
    ("collectives on the communicator of a window or a file, which goes with it, set up at once",
     simple("with-windows-and-files", env={"COLLX_AT_ONCE": "on"})),
    ("an error handler that jumps out of MPI_Comm_free", simple("jump-out-of-free")),
    ("MPI_Comm_free fails", simple("free-fails")),
    ("collectives inside the MPI_Comm_free that an MPI_Comm_free calls", simple("in-nested-free")),
    ("a communicator that is freed with MPI_COMM_WORLD", simple("freed-with-world")),
    ("collectives that hang on MPI_COMM_WORLD", simple("on-world")),
    ("collectives that hang on MPI_COMM_WORLD, when what hung on MPI_COMM_SELF has failed",
     on_world_after_failure),
    ("types that come and go", simple("types-that-come-and-go")),
    ("types that a program keeps", simple("types-that-stay", env={"COLLX_AT_ONCE": "on"})),
    # Open MPI 5.0.7 leaves out elements of some that have complex numbers in them.
    ("types within types", where_the_library_can("nested-types")),
    ("types of C++", right_types("rare-types")),
    ("types of Fortran's kinds", right_types("types-of-kinds")),
    ("types of Fortran's kinds, set up at once",
     simple("types-of-kinds", env={"COLLX_AT_ONCE": "on"})),
    ("a session outlives MPI_COMM_WORLD", simple("session-outlives")),
    ("a session outlives MPI_COMM_WORLD, with windows", session_outlives_windows),
    ("a session's communicator is used when MPI_COMM_WORLD has gone", session_used_late),
    ("a session's communicator is used while MPI_COMM_WORLD comes up",
     simple("session-used-meanwhile", env={"COLLX_AT_ONCE": "on"})),
    ("ranks ask about one, on some before MPI_COMM_WORLD comes up and on another after that",
     simple("session-asks-meanwhile")),
    ("a session's communicator is used on one rank when MPI_COMM_WORLD has gone",
     simple("session-used-in-turns", env={"COLLX_AT_ONCE": "on"}, ranks=2)),
    # MPICH 4.2.1 stops 5 times of 6, of a message that does not fit.
    ("rank 0 alone has a session when MPI_COMM_WORLD comes up",
     where_the_library_can("session-of-one", plain_runs=5, env={"COLLX_AT_ONCE": "on"})),
    ("an error handler is set while a communicator is set up", handler_meanwhile),
    # Where a copy has the handler that MPI_COMM_WORLD had when it was made, it ends the program.
    ("a copy has the error handler that MPI_COMM_WORLD has now",
     where_the_library_can("handler-of-world", env={"COLLX_AT_ONCE": "on"})),
    ("a copy has the error handler that MPI_COMM_WORLD has now, with messages",
     where_the_library_can("handler-of-world", env={"COLLX_CHECK": "on", "COLLX_AT_ONCE": "on"})),
    ("a rank that never waits", simple("never-waits")),
    ("use that one rank alone takes for enough", simple("uneven-use")),
    ("what is taken from MPI is given back, shm", given_back("shm")),
    ("what is taken from MPI is given back, messages", given_back("nx(over=p2p)")),
    ("what is taken from MPI is given back, windows", given_back("nx(over=rma)")),
    ("beside the root of an intercommunicator", beside_the_root),
    ("what is contributed in place", in_place),
    ("each collective in each form, traced", every_collective),
    ("nonblocking collectives that are over in another order", out_of_order),
    ("two jobs of which the launcher tells the same", told_apart),
    ("communicators that are on their way", simple("some-on-their-way", ranks=2)),
    ("the copy of a communicator that is on its way while that is set up",
     simple("own-copy-on-its-way", env={"COLLX_AT_ONCE": "on"})),
    ("the copy of a communicator that is on its way while that is set up, with messages",
     on_their_way('use: ["nx(over=p2p)", pmpi]', "nx", "own-copy-on-its-way", COLLX_AT_ONCE="on",
                  COLLX_NODE_SIZE=1)),
    ("communicators that are on their way, and messages between nodes",
     on_their_way('use: ["nx(over=p2p)", pmpi]', "nx", COLLX_NODE_SIZE=1)),
    ("communicators that are on their way, and a demanded order",
     on_their_way("order: rank\n    use: [shm, pmpi]", "shm")),
    ("what a program has hung on communicators", simple("attributes")),
    ("what a program has in errno", simple("keeps-errno", env={"COLLX_AT_ONCE": "on"})),
    ("an INTEGER of 8 bytes", with_library("wide-integers")),
    ("an MPI library of another release", with_library("another-release")),
    ("a communicator whose ranks are threads", threads_as_ranks),
    ("an element of more than 2 GiB, where a size that is no int aborts",
     simple("big-element", with_collx=False, ranks=2, timeout=120, env={"LD_PRELOAD": in_front("int-sizes")})),
    ("an element of more than 2 GiB, by nx", big_element_by_nx),
    ("an element with more behind it than there is memory",
     where_the_library_can("huge-extent", env={"COLLX_AT_ONCE": "on"}, ranks=2)),
    ("a communicator of more ranks than a node has", larger_than_a_node),
    ("a program too short for a setup", too_short),
    ("10,000 communicators", communicators),
    ("no communicator left", no_communicator_left),
    ("/dev/shm is full", full_shm),
    ("no memory left to share", no_memory_left),
    ("a kernel that cannot set memory aside", not_supported),
    ("no memory left to set up with, on one rank", no_memory_on_one),
    ("no memory for one block of a setup's, on one rank", one_block_missing),
    ("no memory for one block of what is taken over, on one rank", one_block_missing_again),
    ("no memory for the loader once MPI is up", none_for_loader),
    ("no memory for a call, on one rank", none_for_call),
    ("a stderr that nobody reads", simple("nobody-reads",
                                          env={"COLLX_AT_ONCE": "on", "COLLX_STALL": "300ms"})),
    ("a stderr that is read late", simple("read-slowly", ranks=2,
                                          env={"COLLX_AT_ONCE": "on", "COLLX_STALL": "300ms"})),
    ("a rank is late that has another number elsewhere", late_elsewhere),
    ("a program that traps what is not exact", inexact),
    ("threads with little stack", little_stack),
    ("no more files may be opened", no_files),
])
