#!/usr/bin/python3
"""usage: run_fpga.py SOURCE

The FPGA's Verilog: simulated by Icarus, linted by verilator, proved by yosys.  Each property that is
proved has a mutant of the board that it has to refuse, else it would say nothing."""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from job import Skip, check, main, run  # noqa: E402

source = Path(sys.argv[1])
here = source / "tests/fpga"
rtl = source / "hw/fpga"

# What is proved: the harness, its parameters, and how long the induction may get.
NODES_3 = {"NODES": 3, "WIRES": 1}
NODES_60 = {"NODES": 60, "WIRES": 0, "DELAY": 1}
OWNERS = {"NODES": 4, "CHANNELS": 2}
OTHERS = {"THEFT": 0, "HASTY": 0, "LATE": 0}
PROOFS = {
    "nobody is released early, with cables": ("barrier_formal", {**NODES_3, "LATE": 0}, 12),
    "everybody is released, with cables": ("barrier_formal", NODES_3, 12),
    "nobody of 60 is released early": ("barrier_formal", {**NODES_60, "LATE": 0}, 4),
    "everybody of 60 is released": ("barrier_formal", NODES_60, 4),
    "no channel is stolen": ("owners_formal", {**OWNERS, **OTHERS, "THEFT": 1}, 4),
    "no channel is free too early": ("owners_formal", {**OWNERS, **OTHERS, "HASTY": 1}, 4),
    "no claim is forgotten": ("owners_formal", {**OWNERS, **OTHERS, "LATE": 1}, 18),
}
EARLY = ["nobody is released early, with cables", "nobody of 60 is released early"]
RELEASED = ["everybody is released, with cables", "everybody of 60 is released"]
# What it is, which proofs have to refuse it, the file, and what is put for what there.
MUTANTS = [
    ("one arrival releases", EARLY, "collx_barrier.v", "&(arrived | ~participants)",
     "|(arrived & participants)"),
    ("one node is not waited for", EARLY, "collx_barrier.v", "&(arrived | ~participants)",
     "&(arrived[NODES-1:1] | ~participants[NODES-1:1])"),
    ("others are waited for, too", RELEASED, "collx_barrier.v", "&(arrived | ~participants)",
     "&arrived"),
    ("it never goes back", RELEASED[:1], "collx_barrier.v", "state <= !state", "state <= 1"),
    ("a wire is slow", RELEASED[:1], "collx_wire.v", "parameter FILTER = 4", "parameter FILTER = 7"),
    ("anybody may claim", ["no channel is stolen"], "collx_owners.v",
     "old == 0 || (old & self) != 0", "1"),
    ("who leaves leaves for all", ["no channel is free too early"], "collx_owners.v",
     "gone == old;", "1;"),
    ("a node is forgotten", ["no claim is forgotten"], "collx_owners.v",
     "due <= claims[turn]", "due <= claims[turn] && !self[2]"),
]
BENCH_MUTANTS = [
    ("no filter", "single", "collx_wire.v", "else if (&seen)", "else if (1)"),
    ("one arrival releases", "single", "collx_barrier.v", "&(arrived | ~participants)",
     "|(arrived & participants)"),
    ("frames do not start afresh", "channels", "collx_config.v", "end else if (start) begin",
     "end else if (start && !active) begin"),
    ("the masks of two are mixed", "channels", "collx_owners.v", "joins ? want", "joins ? want | old"),
    ("nobody's channel runs", "channels", "collx_barrier.v", " && |participants", ""),
]


def needs(program, package):
    if not shutil.which(program):
        raise Skip(f"no {program}; Debian's {package} has it")


def mutant(folder, name, old, new):
    """A copy of the boards in which one place of one file is wrong."""
    copy = Path(folder) / "rtl"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(rtl, copy)
    text = (copy / name).read_text()
    check(text.count(old) == 1, f"{name}: '{old}' is there {text.count(old)} times, not once")
    (copy / name).write_text(text.replace(old, new))
    return copy


def prove(boards, harness, parameters, steps, how="-tempinduct"):
    """Runs yosys' induction, and tells whether it came through and whether it found a fault."""
    sources = " ".join(str(path) for path in [*sorted(boards.glob("*.v")), here / f"{harness}.sv"])
    chosen = " ".join(f"-set {name} {value}" for name, value in parameters.items())
    result = run(["yosys", "-p", f"""
        read_verilog -formal -sv {sources}
        chparam {chosen} {harness}
        prep -flatten -top {harness}
        memory_map; opt -full; chformal -early; async2sync
        sat {how} -prove-asserts -set-assumes -seq 1 -maxsteps {steps}"""])
    proved = "Induction step proven: SUCCESS!" in result.out
    fault = "model found for base case: FAIL!" in result.out
    check(result.code == 0 and (proved or fault or "proof" in result.out), result.out[-1500:] + result.err)
    return proved, fault, result.out[-1500:]


def proof(name):
    def case(folder):
        needs("yosys", "yosys")
        proved, fault, text = prove(rtl, *PROOFS[name])
        check(proved and not fault, text)
    return case


def refused(name, proofs, *change):
    def case(folder):
        needs("yosys", "yosys")
        copy = mutant(folder, *change)
        for proof in proofs:
            harness, parameters, _ = PROOFS[proof]
            proved, fault, text = prove(copy, harness, parameters, 24, "-tempinduct-baseonly -tempinduct")
            check(fault and not proved, f"'{proof}' has nothing against it\n{text}")
    return case


def simulate(folder, boards, bench):
    needs("iverilog", "iverilog")
    program = Path(folder) / bench
    run(["iverilog", "-g2005-sv", "-Wall", "-Wno-timescale", "-o", program, here / f"{bench}_bench.v",
         *sorted(boards.glob("*.v"))]).expect()
    return run(["vvp", "-n", program]).expect().out


def bench(name):
    def case(folder):
        out = simulate(folder, rtl, name)
        check(out.splitlines()[-1] == "passed", out)
    return case


def bench_mutant(name, *change):
    def case(folder):
        out = simulate(folder, mutant(folder, *change), name)
        check("passed" not in out.splitlines(), "the bench passed:\n" + out)
    return case


def lint(folder):
    needs("verilator", "verilator")
    quiet = ["-Wno-DECLFILENAME", "-Wno-PINCONNECTEMPTY"]
    # That registers have a first value without a reset, which an FPGA can give them; not all releases know it.
    if run(["verilator", "-Wno-PROCASSINIT", "--version"]).code == 0:
        quiet.append("-Wno-PROCASSINIT")
    for top in ("collx_single", "collx_channels"):
        result = run(["verilator", "--lint-only", "-Wall", *quiet, "--top-module", top,
                      *sorted(rtl.glob("*.v"))])
        check(result.code == 0, result.err)


main([("lint", lint), ("bench of single", bench("single")), ("bench of channels", bench("channels"))]
     + [("proof: " + name, proof(name)) for name in PROOFS]
     + [("mutant: " + entry[0], refused(*entry)) for entry in MUTANTS]
     + [("mutant of bench: " + entry[0], bench_mutant(*entry[1:])) for entry in BENCH_MUTANTS])
