# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI's own mtl/portals4 on libportals beside pml/tupleq: what of the host is left, depth, latency."""

import os

import columns
import jobs
import report
import virtual
from rounds import Task, take_turns

NAME = "mtl-portals4"
# The size of Sandia's COMB, and what of the host has to be left while it is received.
COMB_BYTES = 100_000
COMB_TARGET = 98
DEPTHS = "0,16,128,1024,4096,8192"
QUICK_DEPTHS = "0,8192"
DEPTH_TARGET = 1.05
LATENCY_TARGET = 1.5


def _components(settings):
    """Returns the folder of Open MPI's components, which bench/mpi/run.sh has had built. Raises Failed if they aren't there."""
    folder = os.path.normpath(os.path.join(settings.programs, "..", "..", "portals-openmpi"))
    if not os.path.exists(os.path.join(folder, "mca_mtl_portals4.so")):
        raise jobs.Failed("Open MPI's components for Portals 4 aren't built; tests/portals/components.sh says why")
    return folder


def _portals(settings):
    path = ":".join([_components(settings), os.environ.get("OMPI_MCA_mca_base_component_path", "SYSTEM_DEFAULT:USER_DEFAULT")])
    options = columns.mca(pml="cm", mtl="portals4", coll="^tupleq,portals4", osc="^portals4", mca_base_component_path=path)
    return columns.Column(NAME, options, own=True)


def _programs(settings):
    """Returns the options of each program."""
    few = settings.quick
    depths = ["--depths", QUICK_DEPTHS if few else DEPTHS, "--pairs", "5"]
    return {
        "overlap": ["--sizes", str(COMB_BYTES), "--side", "recv,send", *virtual.work(settings)],
        "depth": depths + virtual.effort(settings, real=["--repeats", "300"], virtual=["--repeats", "100"], exact=["--repeats", "50"]),
        "latency": virtual.effort(settings, real=["--ms", "100"], virtual=["--most", "1000"], exact=["--most", "200"]),
    }


def _task(settings, name, make_column):
    def run(show):
        column = make_column()
        results = {}
        for program, arguments in _programs(settings).items():
            show(program)
            results[program] = jobs.run_json(jobs.mpirun(settings, column, program, *arguments), settings.timeout)
        return results

    # Without the sources of its component a column can't run, which is no failure.
    return Task(name, run, own=name == "tupleq")


def _figures(task):
    """Returns {figure: [value per round]}."""
    found = {}
    for results in task.results:
        for one in results["overlap"]:
            found.setdefault(f"host left, {one['side']} of 100 KB (%)", []).append(100 * one["work_us"] / one["loop_us"])
        for one in results["depth"]:
            found.setdefault(f"latency with {one['depth']} receives posted, to none", []).extend(one["ratio"])
        found.setdefault("8 B, half a round trip (us)", []).append(results["latency"][0]["half_us"])
    return found


def _judge(figures):
    report.print_targets("mtl/portals4")
    ours, tupleq = figures.get(NAME, {}), figures.get("tupleq", {})
    left = ours.get("host left, recv of 100 KB (%)")
    text = f"receiving 100 KB leaves at least {COMB_TARGET} % of the host"
    report.judge(text, left and report.median(left) >= COMB_TARGET, f"{report.median(left):.1f} %" if left else "")
    ratios = {name: report.median(values) for name, values in ours.items() if name.startswith("latency with")}
    text = f"latency with up to 8192 receives posted: at most {DEPTH_TARGET} x none"
    report.judge(text, max(ratios.values()) <= DEPTH_TARGET if ratios else None, f"{max(ratios.values()):.3f}" if ratios else "")
    name = "8 B, half a round trip (us)"
    found = report.ratios(ours.get(name, []), tupleq.get(name, []))
    text = f"8 B: at most {LATENCY_TARGET} x tupleq's"
    report.judge(text, report.median(found) <= LATENCY_TARGET if found else None, f"{report.median(found):.2f}" if found else "")


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [
        _task(settings, "tupleq", lambda: columns.COLUMNS["tupleq"]),
        _task(settings, NAME, lambda: _portals(settings)),
    ]
    take_turns(tasks, settings.rounds)
    figures = {task.name: _figures(task) for task in tasks}
    names = list(dict.fromkeys(name for found in figures.values() for name in found))
    rows = [[name, *(report.cell(figures[task.name].get(name)) for task in tasks)] for name in names]
    report.table("pml/tupleq and Open MPI's mtl/portals4", ["", *(task.name for task in tasks)], rows)
    report.print_skipped(tasks)
    _judge(figures)
    report.write_json(settings, "portals", tasks)
    return tasks
