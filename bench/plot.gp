# Latency by size, a column of panels for each CSV file of collx-bench.
#   gnuplot -e "files = 'a.csv b.csv'; svg = 'speed.svg'; routes = 'mpi collx'" plot.gp
# routes: those to draw; all, if not given.  In each file the state with most rounds is drawn.

set datafile separator ','
if (!exists("routes")) routes = ''
columns = words(files)
set terminal svg size 480 * columns, 660 font 'Helvetica,13' background 'white'
set output svg

# What awk finds in a file; $4: state, $6: collective, $7: bytes, $8: route, $9: rounds, $10: us,
# $13: ratio.
state_of(file) = system("awk -F, 'NR > 1 {n[$4] += $9} END {for (s in n) if (n[s] > n[best]) best = s; print best}' ".file)
cell(file, condition, what) = system("awk -F, '$4 == \"".state_of(file)."\" && ".condition." {print ".what."; exit}' ".file)
routes_of(file) = routes ne '' ? routes : system("awk -F, 'NR > 1 && !seen[$8]++ {printf \"%s \", $8}' ".file)
rows(file, kind, route) = "< awk -F, '$4 == \"".state_of(file)."\" && $6 == \"".kind."\" && $8 == \"".route."\"' ".file
# A label at every fourth size is legible.
labels(file, kind) = "< awk -F, '$4 == \"".state_of(file)."\" && $6 == \"".kind."\" && $8 == \"collx\" && log($7)/log(16) % 1 == 0' ".file
barrier(file, route, what) = cell(file, '$6 == "barrier" && $8 == "'.route.'"', what)

set logscale xy
set xtics ('1' 1, '16' 16, '256' 256, '4 Ki' 4096, '64 Ki' 65536, '1 Mi' 1048576, '16 Mi' 16777216)
set format y '%g'
set grid xtics ytics lc rgb '#dddddd' lw 0.6
set border 3 lc rgb '#777777'
set tics nomirror textcolor rgb '#333333'
set key top left reverse Left samplen 2 spacing 1.1
set xrange [0.4 : 6e7]
set offsets graph 0, graph 0, graph 0, graph 0.12
set style line 1 lc rgb '#8a8a8a' lw 2 pt 7 ps 0.35
set style line 2 lc rgb '#0b6bcb' lw 2.4 pt 7 ps 0.35
set style line 3 lc rgb '#d98a1f' lw 1.4 pt 7 ps 0.3
set style line 4 lc rgb '#4b9b51' lw 1.4 pt 7 ps 0.3
set style line 5 lc rgb '#a0559b' lw 1.4 pt 7 ps 0.3
style_of(route, i) = route eq 'mpi' ? 1 : route eq 'collx' ? 2 : 3 + (i % 3)
title_of(route, file) = route eq 'mpi' ? cell(file, '1', '$1') : route eq 'collx' ? 'with collx' : route

set multiplot layout 2, columns columnsfirst \
    margins screen 85.0 / (480 * columns), 1 - 15.0 / (480 * columns), 0.06, 0.85 \
    spacing screen 90.0 / (480 * columns), 0.11
do for [c = 1:columns] {
    file = word(files, c)
    middle = (c - 0.46) / columns
    set label 1 cell(file, '1', '$1 ", " $2 " ranks on " $3 " CPUs"') \
        at screen middle, 0.965 center font ',16'
    if (barrier(file, 'collx', '$10') ne '') {
        set label 2 sprintf('Barrier: %s µs, with collx %s µs: {/:Bold %s×}', \
            barrier(file, 'mpi', 'sprintf("%.3g", $10)'), \
            barrier(file, 'collx', 'sprintf("%.3g", $10)'), \
            barrier(file, 'collx', 'sprintf("%.1f", $13)')) at screen middle, 0.923 center
    }
    do for [kind in 'bcast allreduce'] {
        if (cell(file, '$6 == "'.kind.'"', '1') eq '') { continue }
        set title (kind eq 'bcast' ? 'Bcast' : 'Allreduce').', µs a call by bytes' offset 0, -0.6
        these = routes_of(file)
        plot for [i = 1:words(these)] rows(file, kind, word(these, i)) using 7:10 with linespoints \
                 ls style_of(word(these, i), i) title title_of(word(these, i), file), \
             labels(file, kind) using 7:10:(sprintf('%.1f×', $13)) with labels offset 0.5, -0.9 \
                 textcolor rgb '#0b6bcb' font ',12' notitle
        unset label 1
        unset label 2
    }
}
unset multiplot
