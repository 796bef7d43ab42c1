# shellcheck shell=bash
# MPI jobs and what their times come to: sourced after setup.sh, by the scripts that measure.
#
#   collx_launch MPI RANKS COMMAND...   runs it as a job of openmpi or mpich
#   collx_seconds FILE LIBRARY COMMAND...   runs it with the library preloaded, prints how long it took;
#                                       its output is in FILE and FILE.err
#   collx_quartiles                     of the numbers on standard input, as "median low high"

# mpirun of Open MPI does not run for root unless it is told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

collx_launch() {
    case $1 in
    openmpi) mpirun.openmpi --oversubscribe -n "$2" "${@:3}" ;;
    mpich) mpiexec.mpich -n "$2" "${@:3}" ;;
    esac
}

collx_seconds() {
    local file=$1 begin=$EPOCHREALTIME
    LD_PRELOAD=$2 "${@:3}" >"$file" 2>"$file.err" </dev/null || {
        tail -n 30 "$file" "$file.err" >&2
        collx_die "the program failed: ${*:3}"
    }
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN {printf "%.3f\n", end - begin}'
}

collx_quartiles() {
    sort -n | awk '{v[NR] = $1}
        END {quarter = int((NR + 3) / 4)
            printf "%.3f %.3f %.3f\n", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[quarter], v[NR + 1 - quarter]}'
}
