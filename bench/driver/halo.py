# SPDX-License-Identifier: BSD-3-Clause
"""What an exchange adds to a step that works meanwhile, by size and work."""

import columns
import jobs
import report
from rounds import Task, take_turns

# 76880 and 169136 bytes are what SP's sweeps send with class A on four ranks.
SIZES = "16K,76880,169136,1M"
WORK = "0,25,50,100,200,400,800,1600"
QUICK_SIZES = "169136"
QUICK_WORK = "0,50,100,200,400"


def _task(settings, column):
    arguments = ["--sizes", QUICK_SIZES if settings.quick else SIZES]
    arguments += ["--work", QUICK_WORK if settings.quick else WORK]
    command = jobs.mpirun(settings, column, "halo", *arguments, *settings.arguments)

    def run(show):
        return jobs.run_json(
            command,
            settings.timeout,
            lambda o: show(f"{report.size_text(o['bytes'])}, {o['asked_us']} us: {o['added_us']:.1f} us more"),
        )

    return Task(column.name, run, column.own)


def _values(tasks):
    """{size: {work: {column: [what was added per round]}}}"""
    found = {}
    for task in tasks:
        for objects in task.results:
            for o in objects:
                works = found.setdefault(o["bytes"], {}).setdefault(o["asked_us"], {})
                works.setdefault(task.name, []).append(o["added_us"])
    return found


def _print_tables(tasks, added):
    names = [task.name for task in tasks]
    for size, by_work in sorted(added.items()):
        rows = []
        for work, by_column in sorted(by_work.items()):
            rows.append([f"{work} us", *(report.cell(by_column.get(name)) for name in names)])
        report.table(f"{report.size_text(size)} each way: what a step takes beyond its work, in us", ["work", *names], rows)


def _plot(stem, tasks, added):
    """A graph per size, in which each column has a line."""
    ran = [task.name for task in tasks if task.results]
    if not ran:
        return
    script = [
        f"set terminal pngcairo size {500 * len(added)},500 font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout 1,{len(added)}",
        "set xlabel 'work in a step (us)'; set ylabel 'step less work (us)'; set yrange [0:*]; set grid",
    ]
    for size, by_work in sorted(added.items()):
        script.append(f"set title '{report.size_text(size)}'")
        script.append("plot " + ", ".join(f"'-' with yerrorlines title '{n}' noenhanced lw 2" for n in ran))
        for name in ran:
            for work, by_column in sorted(by_work.items()):
                middle, around = report.median(by_column[name]), report.spread(by_column[name])
                script.append(f"{work} {middle} {middle - around} {middle + around}")
            script.append("e")
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Measures, prints and writes it all. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE)]
    take_turns(tasks, settings.rounds)
    added = _values(tasks)
    _print_tables(tasks, added)
    report.print_skipped(tasks)
    stem = report.write_json(settings, "halo", tasks)
    _plot(stem, tasks, added)
    return tasks
