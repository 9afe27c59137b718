# SPDX-License-Identifier: BSD-3-Clause
"""A whole program that overlaps: SP, or a user's build of a program of the NAS parallel benchmarks."""

import os
import re

import columns
import jobs
import report
from rounds import Task, take_turns

BASE = "rget"

# The last lines of every program of the NAS parallel benchmarks.
_NPB = {
    "class": r"^\s*Class\s*=\s*(\S+)",
    "seconds": r"^\s*Time in seconds\s*=\s*(\S+)",
    "mop_per_s": r"^\s*Mop/s total\s*=\s*(\S+)",
    "verification": r"^\s*Verification\s*=\s*(\S.*\S)",
}


def _npb_result(text):
    """Returns the result of a program of the NAS parallel benchmarks, with the names of our JSON."""
    found = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in _NPB.items()}
    missing = [name for name, match in found.items() if not match]
    if missing:
        raise jobs.Failed(f"the program printed no {', '.join(missing)}, as the NAS parallel benchmarks do", text)
    result = {name: match[1] for name, match in found.items()}
    if result.pop("verification") != "SUCCESSFUL":
        raise jobs.Failed("the verification was not successful", text)
    result["seconds"] = float(result["seconds"])
    result["mop_per_s"] = float(result["mop_per_s"])
    return result


def _task(settings, column):
    def run(_show):
        if settings.npb:
            return _npb_result(jobs.run(jobs.mpirun(settings, column, settings.npb), settings.timeout))
        command = jobs.mpirun(settings, column, "sp/sp", "--class", settings.problem)
        return jobs.run_json(command, settings.timeout)[0]

    return Task(column.name, run, column.own)


def _per_round(task, field):
    return [result[field] for result in task.results if field in result]


def _ratios(task, base):
    """Returns ratios of times, or none without a base."""
    return report.ratios(_per_round(task, "seconds"), _per_round(base, "seconds")) if base else []


def _print_table(title, tasks):
    base = next((task for task in tasks if task.name == BASE and task.results), None)
    rows = [
        [
            task.name,
            report.cell(_per_round(task, "seconds")),
            report.cell(_ratios(task, base)),
            report.cell(_per_round(task, "mop_per_s")),
            report.cell([100 * share for share in _per_round(task, "mpi_share")]),
        ]
        for task in tasks
        if task.results
    ]
    report.table(title, ["", "time (s)", f"ratio to {BASE}", "Mop/s", "in MPI (%)"], rows)


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    settings.problem = settings.problem or ("S" if settings.quick else "W")
    title = os.path.basename(settings.npb) if settings.npb else f"SP, class {settings.problem}"
    title += f", on {settings.ranks} ranks"
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.MPI)]
    take_turns(tasks, settings.rounds)
    _print_table(title, tasks)
    report.print_skipped(tasks)
    stem = report.write_json(settings, "sp", tasks)
    report.bars(stem, title, {task.name: _per_round(task, "seconds") for task in tasks if task.results})
    return tasks
