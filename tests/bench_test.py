#!/usr/bin/python3
"""usage: bench_test.py BUILD MPI LAUNCHER

What collx-bench prints and writes: that it is complete and fits together.  How fast anything is,
is not looked at."""

import csv
import re
import sys
import xml.dom.minidom
from pathlib import Path
from shutil import which

from job import Mpi, Skip, check, main, run

build, name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(name, launcher)
bench = build / "bench" / f"collx-bench-{name}"
library = build / "libcollx.so"
SHORT = ["--time=0.2", "--sizes=1..64KiB", "--step=64"]
SIZES = ["1", "64", "4096"]
POINTS = [("barrier", "0")] + [(kind, size) for kind in ("bcast", "allreduce") for size in SIZES]


def measured(folder, ranks=2, arguments=(), env=None):
    """The text and the rows of a job, in which collx has nothing to warn of."""
    file = folder / "figures.csv"
    text = mpi.mpirun(library, ranks, [bench, *SHORT, f"--csv={file}", *arguments], env=env,
                      timeout=120).expect().expect_quiet().out
    with file.open() as lines:
        return text, list(csv.DictReader(lines))


def check_rounds(text):
    """Each is in the table of a state, or was dropped."""
    shown = sum(int(rounds) for rounds in re.findall(r"^\w+: (\d+) rounds", text, re.M))
    dropped, every = map(int, re.search(r"^(\d+) of (\d+) rounds were dropped", text, re.M).groups())
    check(shown + dropped == every > 0, text)


def figures_fit_together(folder):
    text, rows = measured(folder)
    check_rounds(text)
    if not rows:
        # A busy machine may be in no state at all; then it has to say so.
        check(re.search(r"^(\d+) of \1 rounds were dropped", text, re.M), text)
        raise Skip("the machine was in no known state during any round")
    for row in rows:
        check(row["ranks"] == "2" and row["state"] in ("near", "middle", "far", "any"), row)
        low, us, high = (float(row[key]) for key in ("us_25", "us", "us_75"))
        check(0 < low <= us <= high, row)
        check(not row["ratio"] or
              float(row["ratio_25"]) <= float(row["ratio"]) <= float(row["ratio_75"]), row)
        if row["route"] == "mpi":
            check(float(row["ratio"]) == 1, row)
        check(int(row["rounds"]) > 0 and (row["collective"], row["bytes"]) in POINTS, row)
    for state in {row["state"] for row in rows}:
        check(re.search(rf"^{state}: \d+ rounds", text, re.M), f"no table for {state}:\n{text}")
    for kind, size in {(row["collective"], row["bytes"]) for row in rows}:
        check(re.search(rf"^{kind} +{size} \|.* shm$", text, re.M), f"no {kind} {size}:\n{text}")


def one_rank_has_every_point(folder):
    # There is no state to tell, so no round is dropped.
    text, rows = measured(folder, ranks=1)
    check_rounds(text)
    found = {(row["collective"], row["bytes"], row["route"]) for row in rows}
    wanted = {(*point, route) for point in POINTS for route in ("mpi", "collx")}
    check(wanted <= found, f"missing: {wanted - found}\n{text}")
    check({row["state"] for row in rows} == {"any"}, rows)
    check(re.search(r"^0 of \d+ rounds were dropped", text, re.M), text)


def ratios_are_the_mpi_librarys_time_by_the_routes(folder):
    # Of three rounds at most the quartiles are the least and the most, so that ratios lie between.
    rows = measured(folder, ranks=1, arguments=["--time=0.001"])[1]
    few = [row for row in rows if int(row["rounds"]) <= 3]
    own = {(row["collective"], row["bytes"]): row for row in few if row["route"] == "mpi"}
    found = 0
    for row in few:
        mpi_row = own.get((row["collective"], row["bytes"]))
        # "": no round has a time of both.
        if not mpi_row or not row["ratio"]:
            continue
        # Printed to 0.1 ns, which may be as good as nothing, and to a thousandth.
        shortest = float(row["us_25"]) - 1e-4
        least = (float(mpi_row["us_25"]) - 1e-4) / (float(row["us_75"]) + 1e-4) - 1e-3
        most = (float(mpi_row["us_75"]) + 1e-4) / shortest + 1e-3 if shortest > 0 else float("inf")
        check(all(least <= float(row[key]) <= most for key in ("ratio_25", "ratio", "ratio_75")),
              f"not from {least} to {most}: {row}; {mpi_row}")
        found += row["route"] != "mpi"
    check(found, rows)


def ratios_that_nobody_measured_are_none(folder):
    figures = build / "tests" / "programs" / f"figures-{name}"
    rows = list(csv.DictReader(run([figures]).expect().out.splitlines()))
    found = {(row["bytes"], row["route"]):
             [row[key] for key in ("us", "ratio", "ratio_25", "ratio_75")] for row in rows}
    check(found == {("1", "mpi"): ["3.0000"] + 3 * ["1.000"], ("1", "collx"): ["2.0000"] + 3 * ["1.500"],
                    ("2", "mpi"): ["3.0000"] + 3 * ["1.000"], ("2", "collx"): ["2.0000"] + 3 * [""],
                    ("3", "mpi"): ["3.0000"] + 3 * ["1.000"], ("3", "collx"): ["0.0000"] + 3 * [""]},
          f"{found}")
    text = run([figures, "text"]).expect().out
    check(re.search(r"^bcast +1 .* 1\.50x \( +1\.50, +1\.50\) \|", text, re.M), text)
    check(re.search(r"^bcast +2 \| +3\.000 +0% \| +2\.000 +0% +\| +2  collx$", text, re.M), text)


def limit_is_the_longer_of_what_none_can_do_without(folder):
    text = run([build / "tests" / "programs" / f"figures-{name}", "limits"]).expect().out
    check(re.search(r"^bcast +1 .* \| +0\.500 +4\.0x \| +2  collx$", text, re.M), text)
    check(re.search(r"^bcast +2 .* \| +0\.400 +5\.0x \| +2  collx$", text, re.M), text)


def root_may_be_one(folder):
    text, rows = measured(folder, arguments=["--collectives=bcast", "--root=first"])
    check("CPUs, --root=first\n" in text, text)
    check(rows or "rounds were dropped" in text, text)


def calls_may_follow_each_other(folder):
    text, rows = measured(folder, arguments=["--calls=row", "--collectives=bcast,allreduce"])
    check("CPUs, --calls=row\n" in text, text)
    check_rounds(text)
    check(rows or "rounds were dropped" in text, text)
    # As of one rank no round is dropped, all must be there.
    rows = measured(folder, ranks=1, arguments=["--calls=row"])[1]
    found = {(row["collective"], row["bytes"]) for row in rows if row["route"] == "collx"}
    check(found == set(POINTS), found)


def messages_may_be_of_other_elements(folder):
    """Results are checked, as always."""
    for what, size in (("long-double", 16), ("complex", 16), ("maxloc", 12), ("own", 8), ("strided", 64), ("fresh", 64)):
        text, rows = measured(folder, ranks=1, arguments=[f"--of={what}", "--step=16"])
        check(f"CPUs, --of={what}\n" in text, text)
        sizes = [int(row["bytes"]) for row in rows if (row["collective"], row["route"]) == ("bcast", "collx")]
        check(sizes[0] == size and sizes == sorted(set(sizes)) and all(s % size == 0 for s in sizes),
              f"{what}: {sizes}")
    measured(folder, arguments=["--of=strided", "--collectives=bcast,allreduce"])


def policy_of_the_user_holds(folder):
    policy = folder / "mine.yaml"
    policy.write_text("version: 1\nrules:\n  - match: { bytes: ..64 }\n    use: [pmpi]\n"
                      "  - use: [shm, pmpi]\n")
    _, rows = measured(folder, ranks=1, env={"COLLX_POLICY": policy})
    runs = {(row["collective"], row["bytes"], row["route"]): row["runs"] for row in rows}
    check(runs["bcast", "64", "collx"] == "pmpi", runs)
    check(runs["bcast", "64", "shm"] == "shm", runs)
    check(runs["bcast", "4096", "collx"] == "shm", runs)
    # The same as "collx", and so not measured twice.
    check(("bcast", "4096", "shm") not in runs, runs)


def policy_knows_the_world(folder):
    policy = folder / "world.yaml"
    policy.write_text("version: 1\nrules:\n  - match: { comm: MPI_COMM_WORLD, bytes: ..64 }\n"
                      "    use: [shm, pmpi]\n  - use: [pmpi]\n")
    _, rows = measured(folder, ranks=1, env={"COLLX_POLICY": policy})
    runs = {(row["collective"], row["bytes"]): row["runs"] for row in rows if row["route"] == "collx"}
    check(runs["bcast", "64"] == "shm" and runs["bcast", "4096"] == "pmpi", runs)


def policy_may_be_too_long(folder):
    policy = folder / "long.yaml"
    rules = ["  - { match: { comm: other%d }, use: [pmpi] }\n" % i for i in range(64)]
    policy.write_text("version: 1\nrules:\n" + "".join(rules))
    result = mpi.mpirun(library, 1, [bench, *SHORT], env={"COLLX_POLICY": policy})
    said = re.search(r"long.yaml has 64 rules, and (\d+) at most leave room", result.err)
    check(result.code != 0 and said, result.err)
    policy.write_text("version: 1\nrules:\n" + "".join(rules[:int(said[1])]))
    measured(folder, ranks=1, env={"COLLX_POLICY": policy})


def more_ranks_than_cpus(folder):
    text, rows = measured(folder, ranks=5, arguments=["--collectives=bcast", "--sizes=64..64"])
    check(all(float(row["limit_us"]) > 0 for row in rows), rows)
    check("5 ranks on" in text, text)


def plot_is_one(folder):
    if not which("gnuplot"):
        raise Skip("no gnuplot; Debian's gnuplot-nox has it")
    # To awk, which reads the figures for gnuplot, "n=1.csv" is an assignment.
    files = ["--csv=n=1.csv", "--svg=n=1.svg"]
    mpi.mpirun(library, 1, [bench, *SHORT, *files], cwd=folder).expect().expect_quiet()
    svg = xml.dom.minidom.parse(str(folder / "n=1.svg")).documentElement
    check(svg.tagName == "svg" and "Allreduce" in svg.toxml(), svg.toxml()[:300])


def plot_knows_no_decimal_commas(folder):
    if not which("gnuplot") or not which("localedef"):
        raise Skip("no gnuplot, or no localedef; Debian's gnuplot-nox and libc-bin have them")
    if run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"]).code:
        raise Skip("no source of a locale with decimal commas; Debian's locales has one")
    text, rows = measured(folder, ranks=1, arguments=[f"--svg={folder / 'plot.svg'}"],
                          env={"LOCPATH": folder, "LC_ALL": "de_DE.UTF-8"})
    us = {row["route"]: float(row["us"]) for row in rows if row["collective"] == "barrier"}
    title = f"Barrier: {us['mpi']:.3g} µs, with collx {us['collx']:.3g} µs"
    svg = (folder / "plot.svg").read_text()
    check(title in svg, f"not '{title}' but {re.findall('Barrier:[^<]*', svg)}\n{text}")


def overhead_is_a_table(folder):
    out = mpi.mpirun(library, 1, [bench, "--overhead", "--sizes=8..8", "--batch=20"]).expect().out
    for kind in ("barrier", "bcast", "allreduce"):
        check(re.search(rf"^{kind} +[08] +[\d.]+ +[\d.]+ +-?[\d.]+  \(-?[\d.]+ to -?[\d.]+\)$", out,
                        re.M), out)


def lives_are_a_table(folder):
    """Also such as are long enough to be set up; with results that are checked."""
    out = mpi.mpirun(library, 2, [bench, "--life=1,20", "--sizes=127..130048", "--step=1024", "--time=0.5"],
                     timeout=120).expect().expect_quiet().out
    found = set(re.findall(r"^(\w+) +(\d+) +(\d+) \| +[\d.]+ +\d+% \| +[\d.]+ +\d+% +[\d.]+x \( *[\d.]+, *[\d.]+\) \| +[1-9]\d*$",
                           out, re.M))
    wanted = {("barrier", "0"), *((kind, size) for kind in ("bcast", "allreduce") for size in ("127", "130048"))}
    wanted = {(*point, calls) for point in wanted for calls in ("1", "20")}
    check(found <= wanted, out)
    if found != wanted:
        raise Skip("the machine was in no known state in any round of some")


def refused(result, why):
    """There is no table; MPICH's launcher may have a word of its own."""
    check(result.code != 0 and why in result.err
          and not re.search(r"^(us|barrier|bcast|allreduce)\b", result.out, re.M), result.out + result.err)


def lives_need_collx(folder):
    refused(mpi.run(1, [bench, "--life=1", "--sizes=8..8"]), "collx is not there")


def overhead_needs_collx(folder):
    without = mpi.run(1, [bench, "--overhead", "--sizes=8..8"])
    switched_off = mpi.mpirun(library, 1, [bench, "--overhead", "--sizes=8..8"], env={"COLLX_ENABLE": "off"})
    for result in (without, switched_off):
        refused(result, "collx is not there")


def collx_may_be_switched_off(folder):
    result = mpi.mpirun(library, 1, [bench, *SHORT], env={"COLLX_ENABLE": "off"}).expect()
    check("not running under collx" in result.err, result.err)
    check(re.search(r"^barrier +0 \|", result.out, re.M) and "collx |" not in result.out, result.out)


def wrong_results_are_told(folder):
    spoilt = build / "tests" / "programs" / f"libspoilt-{name}.so"
    arguments = ["--time=0.01", "--sizes=1..1", "--collectives=bcast,allreduce"]
    # Rank 1 has 0 to give as rank 0 is the root, and 1 as it is itself.
    for spoils, said in (("", None), ("bcast", r"element 0 is (1, not 0|2, not 1)$"),
                         ("allreduce", r"element 0 is 2, not 1$")):
        result = mpi.mpirun(f"{spoilt} {library}", 2, [bench, *arguments],
                            env={"COLLX_TEST_SPOILT": spoils})
        check((result.code != 0) == (said is not None), f"exit code {result.code}: {result.err}")
        check(not said or re.search(rf"{spoils} of 1 bytes by collx on rank 1: {said}", result.err,
                                    re.M), result.err)


def mistakes_are_told(folder):
    for argument, said in [("--sizes=x", "'x' is not"), ("--collectives=bacst", "did you mean 'bcast'"),
                           ("--collectives=,", "barrier, bcast or allreduce"),
                           ("--time=-1", "'-1' is not a number of seconds"), ("more", "'more'"),
                           ("--svg=a.svg", "--csv=FILE"),
                           ("--csv=a.csv --svg=a.svg --collectives=barrier", "measure bcast or allreduce"),
                           ("--root=last", "turn or first, not 'last'"),
                           ("--calls=line", "alone or row, not 'line'"),
                           ("--life=0", "--life: "), ("--life=,", "how many calls"),
                           ("--life=1 --overhead", "ask for one"), ("--life=1 --csv=a.csv", "no files"),
                           ("--of=pears", "maxloc, own, strided, fresh, not 'pears'")]:
        result = run([bench, *argument.split()])
        check(result.code == 64 and said in result.err, f"{argument}: {result.code}\n{result.err}")
    check("LD_PRELOAD" in run([bench, "--help"]).expect().out, "no help")
    check(re.fullmatch(r"collx-bench \d[\d.]+\n", run([bench, "--version"]).expect().out), "no version")
    # Not as two programs of one job: Open MPI 5.0.7's mpirun crashes on that.
    other = "[ ${PMIX_RANK:-$PMI_RANK} = 0 ] || set -- --batch=20"
    result = mpi.mpirun(library, 2, ["sh", "-c", f"{other}; exec '{bench}' {' '.join(SHORT)} \"$@\""])
    check(result.code != 0 and "rank 1 has other arguments than rank 0" in result.err, result.err)
    if name == "openmpi":
        result = mpi.mpirun(library, 1, [bench, *SHORT, "--peers=tuned,nosuch"])
        check(result.code != 0 and "no component 'nosuch' for collectives" in result.err, result.err)
    else:
        result = run([bench, "--peers=sm"])
        check(result.code == 64 and "components of Open MPI" in result.err, f"{result.code}\n{result.err}")
    result = run(["sh", "-c", f"'{bench}' --time=0.2 --collectives=barrier >/dev/full"])
    check(result.code != 0 and "No space left on device" in result.err, f"{result.code}\n{result.err}")
    # What was measured is printed, and then the job fails.
    for file, why in (("/nowhere/a.csv", "No such file or directory"),
                      ("/dev/full", "No space left on device")):
        result = mpi.mpirun(library, 1, [bench, *SHORT, f"--csv={file}"])
        check(result.code != 0 and f"cannot write {file}: {why}" in result.err and
              "barrier" in result.out, result.out + result.err)


main([(f"{name}: {case.__name__.replace('_', ' ')}", case)
      for case in (figures_fit_together, one_rank_has_every_point,
                   ratios_are_the_mpi_librarys_time_by_the_routes,
                   ratios_that_nobody_measured_are_none,
                   limit_is_the_longer_of_what_none_can_do_without, root_may_be_one,
                   calls_may_follow_each_other, messages_may_be_of_other_elements,
                   policy_of_the_user_holds, policy_knows_the_world, policy_may_be_too_long,
                   more_ranks_than_cpus, plot_is_one, plot_knows_no_decimal_commas, lives_are_a_table,
                   lives_need_collx, overhead_is_a_table,
                   overhead_needs_collx, collx_may_be_switched_off, wrong_results_are_told, mistakes_are_told)])
