# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the papers: an exchange of borders on many ranks, by size, with and without computing meanwhile."""

import by_size
import cluster
import columns
import figure
import report

NAME = "halo"
TITLE = "exchange of borders with both neighbours, on many ranks"
PLACE = cluster.Cluster(32, 256)
QUICK_PLACE = cluster.Cluster(4, 16)
PATTERNS = {"halo": "nothing meanwhile", "stencil": "computing meanwhile, about as long as a message takes"}
SIZES, QUICK_SIZES = "8K,64K,256K", "64K"


def _place(settings):
    return QUICK_PLACE if settings.quick else PLACE


def _run(settings, column, turn):
    arguments = ["--patterns", ",".join(PATTERNS), "--sizes", QUICK_SIZES if settings.quick else SIZES]
    # The steps before the first that counts let the tuples get their queues.
    arguments += ["--warm-up", "2", "--settle", "38", "--ms", "5", "--block-us", "1"]
    arguments += [] if settings.cpu else ["--sleep"]
    place = _place(settings)
    turn.show(place.text())
    return cluster.run_matched(settings, place, column, "patterns", *arguments, seed=turn.seed(settings))


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    print(_place(settings).text())
    chosen = columns.choose(settings.columns, ["tupleq", "rput", "rget"])
    tasks = figure.measure(settings, chosen, lambda column, turn: _run(settings, column, turn))
    panels = []
    for pattern, what in PATTERNS.items():
        values = by_size.collect(
            tasks, lambda results: ((one["bytes"], one["mean_us"]) for one in results if one["pattern"] == pattern)
        )
        figure.print_table(f"{pattern}: a step, with {what} (us)", tasks, values, report.size_text)
        panels.append((f"{pattern}: {what}", figure.ran(tasks), values, []))
    figure.print_matched(tasks, lambda results: (("all steps", one) for one in results[:1]))
    stem = report.write_json(settings, "paper-halo", tasks)
    figure.plot(stem, panels, "set logscale xy 2; set xlabel 'message size (B)'; set ylabel 'step (us)'; set key top left")
    return tasks
