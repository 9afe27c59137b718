# SPDX-License-Identifier: BSD-3-Clause
"""Portals 3.0, figure 6: the time that is left to wait, by the work between posting and waiting."""

import by_size
import cluster
import columns
import figure
import report

NAME = "bypass"
TITLE = "Portals 3.0, section 5.3: ten messages of 50 KB, time left to wait by work interval"
WORK = "0,100,200,300,400,500,600,800,1000,1500"
QUICK_WORK = "0,400,1000"
TESTS = (0, 3)


def _run(settings, column, turn):
    arguments = ["--work", QUICK_WORK if settings.quick else WORK, "--tests", ",".join(map(str, TESTS))]
    arguments += ["--least", "3", "--most", "5" if settings.cpu == 0 else "20", "--ms", "20", "--warm-up", "20"]
    arguments += [] if settings.cpu else ["--sleep"]
    turn.show("batches")
    return cluster.run(settings, cluster.Cluster(2, 2), column, "bypass", *arguments)


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    tasks = figure.measure(settings, columns.choose(settings.columns, columns.DEVICE), lambda column, turn: _run(settings, column, turn))
    panels = []
    for tests in TESTS:
        values = by_size.collect(
            tasks, lambda results: ((one["asked_us"], one["wait_us"]) for one in results if one["tests"] == tests)
        )
        title = f"{tests or 'no'} calls of MPI_Test in the work"
        figure.print_table(f"{title}: wait (us); the paper's Portals needs none", tasks, values, lambda work: f"{work} us of work")
        panels.append((title, figure.ran(tasks), values, []))
    stem = report.write_json(settings, "paper-bypass", tasks)
    figure.plot(stem, panels, "set xlabel 'work (us)'; set ylabel 'wait (us)'; set yrange [0:*]")
    return tasks
