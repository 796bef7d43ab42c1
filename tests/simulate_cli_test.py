#!/usr/bin/python3
"""usage: simulate_cli_test.py COLLX-SIMULATE

What collx-simulate prints: that the options reach the model, and wrong ones are refused."""

import csv
import re
import sys

from job import check, main, run

program = sys.argv[1]


def rows(*arguments):
    text = run([program, "--csv", *arguments]).expect().out
    return list(csv.DictReader(text.splitlines()))


def close(us, wanted):
    check(abs(float(us) - wanted) < 0.001, f"{us} us, not {wanted}")


def figures_are_those_of_the_model(folder):
    found = {(row["nodes"], row["barrier"]): row
             for row in rows("--nodes=2..64", "nx", "nx,n=2", "nx,n=all", "hsb,f_in=8,f_out=4")}
    check(len(found) == 63 * 4, f"{len(found)} rows")
    row = found["64", "nx"]
    close(row["us"], 13.1)
    check((row["fan_in"], row["rounds"], row["writes"], row["checks"]) == ("8", "2", "14", "2"), row)
    close(found["64", "nx,n=2"]["us"], 25.5)
    close(found["64", "nx,n=all"]["us"], 26.45)
    row = found["64", "hsb,f_in=8,f_out=4"]
    check((row["fan_in"], row["fan_out"], row["rounds"]) == ("8", "4", "5"), row)


def the_model_can_be_set(folder):
    # One step of one flag: 1 write, 10 check, 100 covered, 10000 poll, 100000 call.
    model = ["--write=1", "--check=10", "--covered=100", "--latency=0", "--poll=10000",
             "--call=100000"]
    close(rows("--nodes=2", *model, "nx")[0]["us"], 110111)
    # Then the flag is seen later than the check is done.
    close(rows("--nodes=2", *model, "--latency=1000", "nx")[0]["us"], 111001)


def the_table_says_the_same(folder):
    lines = run([program, "--nodes=4..1024", "--times=16"]).expect().out.splitlines()
    check(lines[2].split() == ["nodes", "nx", "hsb"], lines)
    check([line.split() for line in lines[3:]] ==
          [["4", "5.45", "7.65"], ["64", "13.10", "15.25"], ["1024", "21.80", "26.35"]], lines)


def fans_are_swept(folder):
    found = rows("--nodes=16", "--fans=2..5", "nx", "nx,mode=exchange", "nx,n=3", "hsb,f_in=8")
    fans = [(row["fan"], row["fan_in"], row["fan_out"]) for row in found]
    wanted = [pair for fan in "2345"
              for pair in ((fan, fan, fan), (fan, fan, fan), (fan, "3", "3"), (fan, "8", fan))]
    check(fans == wanted, fans)
    # Two rounds of three, and in exchange a round before and after where 16 is no power.
    rounds = {(row["barrier"], row["fan"]): row["rounds"] for row in found}
    check(rounds["nx", "5"] == "2" and rounds["nx,mode=exchange", "5"] == "3", rounds)
    check(rounds["nx", "4"] == rounds["nx,mode=exchange", "4"] == "2", rounds)


def the_best_is_found(folder):
    best = rows("--nodes=20..1000", "--times=7", "nx,n=best", "hsb,f=best")
    every = rows("--nodes=20..1000", "--times=7", "--fans=2..64", "nx", "hsb")
    for row in best:
        same = [float(other["us"]) for other in every
                if other["nodes"] == row["nodes"] and row["barrier"].startswith(other["barrier"])]
        close(row["us"], min(same))
    # Where checks cost little, more messages than the rounds need may be faster.
    for costs, name, best in ((["--check=0"], "nx", "nx,n=best"),
                              (["--check=0.3", "--covered=0.5"], "hsb", "hsb,f=best")):
        for nodes in "5", "26", "60":
            every = rows(f"--nodes={nodes}", *costs, f"--fans=2..{nodes}", name)
            close(rows(f"--nodes={nodes}", *costs, best)[0]["us"],
                  min(float(row["us"]) for row in every))


def what_costs_nothing_is_not_tried_for_ever(folder):
    free = ["--write=0", "--poll=0", "--covered=0"]
    check(rows("--nodes=200", *free, "nx,n=best")[0]["fan_in"] == "200", "one round is best")
    result = run([program, "--nodes=1048576", *free, "nx,n=best"]).expect(1)
    check("'nx,n=best': flags cost so little" in result.err and "raise --write" in result.err,
          result.err)
    # If one of them costs something it can be found: five rounds in groups of 16.
    close(rows("--nodes=1048576", *free[:2], "nx,n=best")[0]["us"], 27.1)


def what_is_wrong_is_refused(folder):
    for words, reason in ((["foo"], "barriers are nx and hsb"),
                          (["nx,n=1"], "too small"),
                          (["nx,f=3"], "there are n and mode"),
                          (["hsb,f_in=best"], "only f=best"),
                          (["--nodes=0"], "too low"),
                          (["--nodes=2.."], "has to end"),
                          (["--check=fast"], "not a number of microseconds"),
                          (["--check=-1"], "not a number of microseconds"),
                          (["nx"] * 17, "no more than 16")):
        result = run([program, *words]).expect(64)
        check(reason in result.err and not result.out, f"{words}: {result.err}{result.out}")
    result = run(["sh", "-c", f"'{program}' >/dev/full"]).expect(1)
    check("cannot write the figures: No space left on device" in result.err, result.err)


def version_is_told(folder):
    said = run([program, "--version"]).expect().out
    check(re.fullmatch(r"collx-simulate \d[\d.]+\n", said), said)


main([(function.__name__.replace("_", " "), function)
      for function in (figures_are_those_of_the_model, the_model_can_be_set,
                       the_table_says_the_same, fans_are_swept, the_best_is_found,
                       what_costs_nothing_is_not_tried_for_ever, what_is_wrong_is_refused,
                       version_is_told)])
