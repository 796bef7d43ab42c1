# Barriers between nodes by the number of nodes, a panel for each MPI; scripts/hwbarrier has the CSV.
#   gnuplot -e "csv = 'a.csv'; svg = 'a.svg'" hwbarrier.gp

rows(mpi, route) = "< awk -F, '$1 == \"".mpi."\" && $3 == \"".route."\" {print $2, $4}' ".csv
has(mpi) = system("grep -c '^".mpi.",' ".csv) > 0

set terminal svg size 960, 400 font 'Helvetica,13' background 'white'
set output svg
set logscale y
set format y '%g'
set grid xtics ytics lc rgb '#dddddd' lw 0.6
set border 3 lc rgb '#777777'
set tics nomirror textcolor rgb '#333333'
set key outside bottom center horizontal maxrows 2 reverse Left samplen 2
set xlabel 'nodes'
set xrange [1.8 : 6.2]
set xtics 1
set yrange [0.1 : 100000]
set ylabel 'microseconds'
set style line 1 lc rgb '#8a8a8a' lw 1.8 pt 7 ps 0.4
set style line 2 lc rgb '#d98a1f' lw 1.8 pt 7 ps 0.4
set style line 3 lc rgb '#a0559b' lw 1.8 pt 7 ps 0.4
set style line 4 lc rgb '#0b6bcb' lw 1.8 pt 7 ps 0.4
set multiplot layout 1, 2
do for [mpi in 'openmpi mpich'] {
    if (has(mpi)) {
        set title mpi eq 'mpich' ? 'MPICH' : 'Open MPI'
        plot rows(mpi, 'mpi') using 1:2 with linespoints ls 1 title 'the MPI library', \
             rows(mpi, 'nx') using 1:2 with linespoints ls 2 title 'nx', \
             rows(mpi, 'hsb') using 1:2 with linespoints ls 3 title 'hsb', \
             rows(mpi, 'hwbarrier') using 1:2 with linespoints ls 4 title 'hwbarrier, emulated board'
    }
}
unset multiplot
