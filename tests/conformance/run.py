#!/usr/bin/python3
"""Conformance tests of one MPI with one number of ranks, as TAP.

For every algorithm of one node that `collx info` lists, the conformance program is run under
LD_PRELOAD=libcollx.so with a policy that forces this algorithm for the collectives that it does;
every area of the program is one line.  What collx has to say fails, such as that it does without
that policy.  That the calls really went that way is looked up in a trace, where a form of the
algorithm is tested in full, with half of the numbers of ranks: with the others nothing is traced.
A new algorithm is found, and tested, without a change here; what is for several nodes run_nodes.py
finds, by its parameter `over`."""

import argparse
import collections
import csv
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

# What is tested with an algorithm for one of these collectives, and with any.
AREAS = {
    "barrier": ["barrier"],
    "bcast": ["bcast"],
    "allreduce": ["allreduce", "allreduce-user", "floats", "halves"],
}
AREAS_ALWAYS = ["progress", "mixes", "intercomm", "errors"]
# Wherever it is not a form's turn to be tested in full: all long messages, and a third of the short
# ones.
AREAS_SAMPLED = {"barrier", "bcast", "allreduce", "allreduce-user"}
TURNS = 3                    # all forms but the first have their turn with every third number of ranks
FEW = 4                      # with more ranks the first has its turn on one MPI, then on the other
TRACED_RANKS = (2, 3, 6, 7, 9)  # some of those with which any form is tested in full
GROUPED_RANKS = 9            # fewer are in no groups, whatever a policy says
GROUPS = {"COLLX_TOPOLOGY": "package:2 [numa] l3:1 core:8 pu:1"}  # one of eight ranks, and one alone
REST = "shm"                 # does what an algorithm that is tested leaves
THREADS_RANKS = range(2, 5)  # threads times ranks: more only take long
AREA_SECONDS = 60            # what one area may take at most, in one run


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def line(self, good, name, details=(), skip=None):
        self.count += 1
        self.failed += not good
        directive = f" # SKIP {skip}" if skip else ""
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}{directive}")
        sys.stdout.flush()
        # Meson shows of a TAP test that failed what it wrote here, not its comments.
        if not good:
            print(f"{name}:", *details, sep="\n", file=sys.stderr, flush=True)

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


class Algorithm:
    """One word of the policy language, for all collectives that have it; forms are counted from 0."""

    def __init__(self, use, name, collectives, form=0):
        self.use, self.name, self.collectives, self.form = use, name, collectives, form

    def in_full(self, ranks, mpi):
        """What depends on the MPI shows with few ranks; what depends on their number, on either."""
        if self.form == 0:
            return ranks <= FEW or ranks % 2 == (mpi == "openmpi")
        return (ranks - self.form) % TURNS == 0

    def grouped(self):
        return "groups=always" in self.use

    def policy(self):
        # What it does not do or take goes the usual way: MPI libraries have faults of their own,
        # and with more ranks than cores some are too slow to be mixed in.
        use = self.use if self.name == REST else f"{self.use}, {REST}"
        lines = ["version: 1", "rules:"]
        lines += [f"  - {{match: {{collective: {word}}}, "
                  f"use: [{use if word in self.collectives else REST}]}}" for word in AREAS]
        return "\n".join(lines) + "\n"


def variants(params):
    """Forms of use that try the limits of every parameter: "", "(n=2)", "(mode=exchange)"."""
    yield ""
    for name, initial, values in params:
        for value in values:
            # In groups only where they have to be: so few ranks gain nothing by them.
            if value != initial and (name, value) != ("groups", "never"):
                yield f"({name}={value})"


def algorithms(collx):
    text = subprocess.run([collx, "info"], check=True, capture_output=True, text=True,
                          timeout=60).stdout
    found = collections.OrderedDict()
    current = None
    for line in text.partition("\nAlgorithms\n")[2].splitlines():
        if line and not line.startswith(" "):
            break
        if head := re.fullmatch(r"  (\S+) of (\S+)", line):
            current = found.setdefault(head[1], {})[head[2]] = []
        elif param := re.fullmatch(r"      (\w+) = (-?\d+), from (-?\d+) to (-?\d+): .*", line):
            current.append((param[1], param[2], [param[3], param[4]]))
        elif param := re.fullmatch(r"      (\w+) = (\w+) \(([\w, ]+)\): .*", line):
            current.append((param[1], param[2], param[3].split(", ")))
    result = []
    for name, collectives in found.items():
        # Here is one node.  What is for several is tested by run_nodes.py.
        if any(param[0] == "over" for params in collectives.values() for param in params):
            continue
        forms = collections.OrderedDict()
        for word, params in collectives.items():
            if word in AREAS:
                for form in variants(params):
                    forms.setdefault(form, []).append(word)
        result += [Algorithm(name + form, name, words, number)
                   for number, (form, words) in enumerate(forms.items())]
    return result


class Runner:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        self.ranks = options.ranks
        self.library = Path(options.build) / "libcollx.so"

    def command(self, variables):
        if self.options.mpi == "openmpi":
            command = [self.options.launcher, "--oversubscribe", "-n", str(self.ranks)]
            for name in variables:
                command += ["-x", f"{name}={variables[name]}"]
        else:
            command = [self.options.launcher, "-n", str(self.ranks)]
            for name in variables:
                command += ["-genv", name, variables[name]]
        return command + [self.options.program]

    def run(self, areas, algorithm=None, trace=None, sampled=False):
        """(cases, failures and time of each area that came to its end, what was printed, how it ended)"""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("COLLX_") and name != "LD_PRELOAD"}
        # Where all there is to work as is root, as in a container.
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        arguments = ["--ranks", str(self.ranks), "--limit", str(AREA_SECONDS)] + ["--in-part"] * sampled
        variables = {}
        if algorithm:
            path = self.folder / "policy.yaml"
            path.write_text(algorithm.policy())
            variables = {"LD_PRELOAD": str(self.library), "COLLX_POLICY": str(path),
                         "COLLX_AT_ONCE": "on",
                         # Whatever CPU this is.
                         "COLLX_RETURN": "on" if self.options.mpi == "openmpi" else "off",
                         "COLLX_WHOLE_LINES":
                             "on" if self.ranks % 2 == (self.options.mpi == "openmpi") else "off",
                         **(GROUPS if algorithm.grouped() else {})}
            arguments += ["--library", "libcollx"]
            if trace:
                variables["COLLX_TRACE"] = str(trace)
        elif self.options.mpi == "mpich" and self.ranks > 2:
            arguments.append("--quick")
        # People preload into the launcher or into the ranks alone: both are tried.
        if self.ranks % 2:
            environment.update(variables)
            variables = {}
        process = subprocess.Popen(self.command(variables) + arguments + areas, text=True,
                                   env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, errors="replace",
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=AREA_SECONDS * 2)
            ended = f"exit code {process.returncode}" if process.returncode else ""
        except subprocess.TimeoutExpired:
            output, ended = self.kill(process), f"stopped after {AREA_SECONDS * 2} s"
        results = {name: (int(cases), int(failures), seconds)
                   for name, cases, failures, seconds in
                   re.findall(r"^area (\S+) cases (\d+) failures (\d+) seconds (\S+)$", output,
                              re.M)}
        return results, output, ended

    @staticmethod
    def kill(process):
        # The launcher ends its ranks when asked to, and leaves them behind when killed.
        for what in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(process.pid, what)
            try:
                return process.communicate(timeout=10)[0]
            except subprocess.TimeoutExpired:
                continue
        return ""

    def check(self, tap, title, areas, algorithm, sampled=False, traced=False):
        trace = self.folder / f"trace-{tap.count}" if traced else None
        areas = ["routes"] * traced + areas
        results, output, ended = self.run(areas, algorithm, trace, sampled)
        details = [line for line in output.splitlines() if not line.startswith("area ")]
        for area in areas:
            cases, failures, seconds = results.get(area, (0, 0, 0))
            if area not in results:
                tap.line(False, f"{title}: {area}",
                         [f"did not come to its end ({ended or 'exit code 0'})"] + details[:60])
                details = ["see above"]
            elif failures:
                tap.line(False, f"{title}: {area} ({failures} of {cases} cases failed)",
                         [line for line in details if f": {area}: " in line][:40])
            else:
                tap.line(True, f"{title}: {area} ({cases} cases, {seconds} s)")
        if said := [line for line in details if line.startswith("collx: ")]:
            tap.line(False, f"{title}: collx has nothing to say", said[:20])
        if ended and all(area in results and not results[area][1] for area in areas):
            tap.line(False, f"{title}: end of the run", [ended] + details[:60])
        if traced and not ended:
            self.check_routes(tap, title, algorithm, trace)

    def check_routes(self, tap, title, algorithm, trace):
        """The calls of area "routes" went where the policy says."""
        report = subprocess.run([Path(self.options.build) / "collx-report", "summary", trace,
                                 "--format", "csv"], capture_output=True, text=True, timeout=120)
        rows = [row for row in csv.DictReader(io.StringIO(report.stdout))
                if row.get("comm") == "conformance"]
        for word in algorithm.collectives:
            self.check_route(tap, f"{title}: route of {word}", algorithm, word, rows,
                             report.stderr)

    def why_not(self, algorithm, word):
        """Why the algorithm cannot run with these ranks, None: it can; and what is wrong with the
        policy: a job would do without that."""
        path = self.folder / "policy.yaml"
        path.write_text(algorithm.policy())
        result = subprocess.run([Path(self.options.build) / "collx", "policy", "explain", path,
                                 "--collective", word, "--ranks", str(self.ranks), "--nodes", "1"],
                                capture_output=True, text=True, timeout=60)
        refusal = re.search(rf"^ +not {re.escape(algorithm.name)}\b[^:]*: (.*)$", result.stdout,
                            re.M)
        return refusal[1] if refusal else None, result.stderr if result.returncode else ""

    def check_route(self, tap, title, algorithm, word, rows, problems):
        calls = collections.Counter()
        for row in rows:
            if row["collective"] == f"MPI_{word.capitalize()}":
                calls[row["route"], row["reason"]] += int(row["calls"])
        details = [f"{count} calls: {route} ({reason})" for (route, reason), count in
                   sorted(calls.items())] + problems.splitlines()
        routed = sum(count for (route, reason), count in calls.items()
                     if route == algorithm.name and reason == "policy")
        wrong = sum(count for (route, reason), count in calls.items()
                    if route not in (algorithm.name, REST) and reason != "warm-up")
        if not routed:
            details.insert(0, f"no call went to {algorithm.name}")
        tap.line(routed > 0 and not wrong, title, details)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], required=True)
    parser.add_argument("--launcher", required=True, help="its mpirun or mpiexec")
    parser.add_argument("--program", required=True, help="the conformance program for it")
    parser.add_argument("--build", required=True, help="folder with libcollx.so and collx")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--algorithm", help="only this one; e.g. shm")
    parser.add_argument("--area", action="append", help="only this one; may be repeated")
    parser.add_argument("--without-collx", action="store_true",
                        help="test the MPI library itself, and so these tests")
    options = parser.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="collx-conformance-") as folder:
        runner = Runner(options, folder)
        if options.without_collx:
            chosen = [Algorithm(None, "without collx", list(AREAS))]
        else:
            chosen = algorithms(Path(options.build) / "collx")
            chosen = [one for one in chosen if options.algorithm in (None, one.name, one.use)
                      and (options.ranks >= GROUPED_RANKS or not one.grouped())]
            if not chosen:
                print("Bail out! `collx info` lists no such algorithm for so many ranks")
                return 1
        for one in chosen:
            title = f"{options.mpi}, {options.ranks} ranks, {one.use or one.name}"
            for word in [] if options.without_collx else list(one.collectives):
                why, wrong = runner.why_not(one, word)
                if wrong:
                    tap.line(False, f"{title}: policy for {word}", wrong.splitlines())
                elif why:
                    tap.line(True, f"{title}: {word}", skip=why)
                if wrong or why:
                    one.collectives.remove(word)
            if not one.collectives:
                continue
            areas = [area for word in one.collectives for area in AREAS[word]] + AREAS_ALWAYS
            in_full = (one.in_full(options.ranks, options.mpi) or options.without_collx or
                       bool(options.area))
            areas = [area for area in areas if (in_full or area in AREAS_SAMPLED)
                     and (not options.area or area in options.area)]
            algorithm = None if options.without_collx else one
            # By hand, always: somebody has just written it.
            traced = not options.without_collx and bool(options.algorithm or (
                in_full and options.ranks in TRACED_RANKS and not options.area))
            if set(areas) - {"threads"}:
                runner.check(tap, title, areas, algorithm, not in_full, traced)
            if in_full and options.ranks in THREADS_RANKS and (
                    not options.area or "threads" in options.area):
                runner.check(tap, title, ["threads"], algorithm)
    return tap.finish()


sys.exit(main())
