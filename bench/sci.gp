# Barriers between nodes in the model, from the CSV of collx-simulate; scripts/figures has the commands.
#   gnuplot -e "csv = 'a.csv'; figure = 'nodes'; svg = 'a.svg'" sci.gp   over the number of nodes
#   gnuplot -e "csv = 'a.csv'; figure = 'fan'; svg = 'a.svg'" sci.gp     over n and f, panels by nodes

# The names of barriers are in quotes and have commas: take them by the quotes, and the nodes, the fan
# and the time by the commas around them.
rows(barrier, condition) = "< awk -F'\"' '$2 == \"".barrier."\" {split($1, a, \",\"); ".\
    "split($3, b, \",\"); nodes = a[1]; fan = a[2]; if (".condition.") print nodes, fan, b[4]}' ".csv

set grid xtics ytics lc rgb '#dddddd' lw 0.6
set border 3 lc rgb '#777777'
set tics nomirror textcolor rgb '#333333'
set style line 1 lc rgb '#0b6bcb' lw 1.8 pt 7 ps 0.25
set style line 2 lc rgb '#d98a1f' lw 1.8 pt 7 ps 0.25
set style line 3 lc rgb '#a0559b' lw 1.8 pt 7 ps 0.25
set style line 4 lc rgb '#4b9b51' lw 1.8
set style line 5 lc rgb '#555555' lw 1.8
set style line 6 lc rgb '#a0559b' lw 1.8 dt (6, 4)
set style line 7 lc rgb '#bcd8f3' lw 8
set ylabel 'microseconds'
height = figure eq 'fan' ? 400 : 480
set terminal svg size 960, height font 'Helvetica,13' background 'white'
set output svg

if (figure eq 'fan') {
    set yrange [0 : 35]
    set multiplot layout 1, 3 margins screen 0.06, 0.985, 0.14, 0.9 spacing screen 0.045, 0
    set key top center reverse Left samplen 2
    do for [panel in '16 36 64'] {
        only = 'nodes == '.panel.' && fan < nodes + 1'
        set title panel.' nodes' offset 0, -0.4
        set xlabel 'n, f'
        set xrange [2 : panel + 0]
        plot rows('nx', only) using 2:3 with linespoints ls 1 title 'nx, dissemination', \
             rows('nx,mode=exchange', only) using 2:3 with linespoints ls 2 title 'nx, exchange', \
             rows('hsb', only) using 2:3 with linespoints ls 3 title 'hsb'
        unset ylabel
    }
    unset multiplot
} else {
    set yrange [0 : 30]
    set key outside right center reverse Left samplen 2.5 spacing 1.4
    set xlabel 'nodes'
    set xrange [2 : 64]
    set xtics (2, 10, 16, 24, 36, 48, 64)
    plot rows('nx', '1') using 1:3 with steps ls 7 title 'nx, default n', \
         rows('nx,n=2', '1') using 1:3 with steps ls 2 title 'nx, n = 2', \
         rows('nx,n=6', '1') using 1:3 with steps ls 4 title 'nx, n = 6', \
         rows('nx,n=16', '1') using 1:3 with steps ls 1 title 'nx, n = 16', \
         rows('nx,n=all', '1') using 1:3 with steps ls 5 title 'nx, n = N', \
         rows('hsb,f=8', '1') using 1:3 with steps ls 3 title 'hsb, f = 8', \
         rows('hsb,f=all', '1') using 1:3 with steps ls 6 title 'hsb, f = N − 1'
}
