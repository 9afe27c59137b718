# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the papers: an exchange of borders on many ranks, by size, with and without computing meanwhile."""

import by_size
import cluster
import columns
import figure
import report

NAME = "halo"
TITLE = "exchange of borders with both neighbours, on many ranks"
# Sizes by cluster. Each size takes minutes on 256 ranks.
PLACES = {cluster.Cluster(8, 64): "8K,64K,256K", cluster.Cluster(32, 256): "64K"}
QUICK_PLACES = {cluster.Cluster(4, 16): "64K"}
PATTERNS = {"halo": "nothing meanwhile", "stencil": "computing meanwhile, about as long as a message takes"}


def _places(settings):
    return QUICK_PLACES if settings.quick else PLACES


def _run(settings, column, turn):
    # The steps before the first that counts let the tuples get their queues.
    arguments = ["--patterns", ",".join(PATTERNS), "--warm-up", "2", "--settle", "38", "--ms", "5", "--block-us", "1"]
    arguments += [] if settings.cpu else ["--sleep"]
    seed = turn.seed(settings)
    results = []
    for place, sizes in _places(settings).items():
        program = ("patterns", *arguments, "--sizes", sizes)
        results += turn.case(
            place.text(), lambda place=place, program=program: cluster.run_matched(settings, place, column, *program, seed=seed)
        )
    return results


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    chosen = columns.choose(settings.columns, ["tupleq", "rput", "rget"])
    tasks = figure.measure(settings, chosen, lambda column, turn: _run(settings, column, turn))
    panels = []
    for place in _places(settings):
        for pattern, what in PATTERNS.items():
            wanted = (place.ranks, pattern)
            values = by_size.collect(
                tasks, lambda results: ((one["bytes"], one["mean_us"]) for one in results if (one["ranks"], one["pattern"]) == wanted)
            )
            title = f"{pattern}, {place.ranks} ranks on {place.nodes} nodes"
            figure.print_table(f"{title}: a step, with {what} (us)", tasks, values, report.size_text)
            panels.append((title, figure.ran(tasks), values, []))
    runs = {place.ranks: f"{place.ranks} ranks, all steps" for place in _places(settings)}
    figure.print_matched(tasks, lambda results: {one["ranks"]: one for one in results}.items(), runs.get)
    stem = report.write_json(settings, "paper-halo", tasks)
    figure.plot(stem, panels, "set logscale xy 2; set xlabel 'message size (B)'; set ylabel 'step (us)'; set key top left")
    return tasks
