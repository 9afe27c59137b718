# SPDX-License-Identifier: BSD-3-Clause
"""Latency, bandwidth and depth beside the figures of perftest on the same adapter."""

import columns
import jobs
import perftest
import report
import virtual
from rounds import Task, take_turns

LATENCY_TARGET = 1.5
BANDWIDTH_TARGET = 0.9
DEPTH_TARGET = 1.05
DEPTH_PAIRS = 15

PERFTEST = "perftest XRC"
ONE_NODE = " on one node"
DEVICE_WITHIN = ("tupleq", "ob1-openib", "ucx-rc_v")  # the columns of the adapter that are measured within a node too
LOCAL = ["tupleq-auto", *columns.SHARED_MEMORY]
NEAR_TARGET = 1.3


def _perftest_task(settings):
    latency_n, bandwidth_n = virtual.effort(
        settings,
        real=["5000", "1000"] if settings.quick else ["20000", "5000"],
        virtual=["2000", "500"],
        exact=["200", "200"],
    )

    def run(show):
        show("ib_send_lat")
        latency = perftest.figures(settings, "ib_send_lat", "-c", "XRC", "-s", "8", "-n", latency_n)
        show("ib_send_bw")
        bandwidth = perftest.figures(
            settings, "ib_send_bw", "-c", "XRC", "-s", str(1 << 20), "-n", bandwidth_n, "--report_gbits"
        )
        return {
            "latency": {"half_us": perftest.typical(latency), "printed": latency},
            "bandwidth": {"gb_per_s": perftest.gigabytes(bandwidth), "printed": bandwidth},
        }

    return Task(PERFTEST, run)


def _mpi_task(settings, column, one_node=False):
    extra = settings.one_node if one_node else ()
    pairs = -(-DEPTH_PAIRS // settings.rounds)
    few = settings.quick
    programs = {
        "latency": virtual.effort(
            settings, real=["--ms", "50" if few else "150"], virtual=["--most", "1000"], exact=["--most", "50"]
        ),
        "bandwidth": virtual.effort(
            settings, real=["--ms", "150" if few else "400"], virtual=["--most", "10"], exact=["--least", "2", "--most", "2"]
        ),
        "depth": virtual.effort(
            settings,
            real=["--pairs", str(pairs), "--repeats", "300" if few else "1000"],
            virtual=["--pairs", str(pairs), "--repeats", "100"],
            exact=["--pairs", "1", "--repeats", "20"],
        ),
    }
    if one_node:
        del programs["depth"]

    def run(show):
        results = {}
        for program, arguments in programs.items():
            show(program)
            command = jobs.mpirun(settings, column, program, *arguments, extra=extra)
            results[program] = jobs.run_json(command, settings.timeout)[0]
        return results

    return Task(column.name + (ONE_NODE if one_node else ""), run, column.own)


def _per_round(task, program, field):
    return [results[program][field] for results in task.results if program in results]


def _ratio(task, to, program, field):
    """Returns ratios to another task, or none without one."""
    return report.ratios(_per_round(task, program, field), _per_round(to, program, field)) if to else []


def _print_table(tasks, title, program, field, to):
    base = next((task for task in tasks if task.name == to and task.results), None)
    rows = [
        [task.name, report.cell(_per_round(task, program, field)), report.cell(_ratio(task, base, program, field))]
        for task in tasks
        if not task.skipped
    ]
    report.table(title, ["", "median", f"ratio to {to}"], rows)


def _depth_ratios(task):
    return [ratio for values in _per_round(task, "depth", "ratio") for ratio in values]


def _print_depth(tasks):
    rows = []
    for task in tasks:
        ratios = _depth_ratios(task)
        if not ratios:
            continue
        none = [time for times in _per_round(task, "depth", "none_us") for time in times]
        posted = [time for times in _per_round(task, "depth", "with_us") for time in times]
        rows.append([task.name, report.cell(none), report.cell(posted), report.cell(ratios), str(len(ratios))])
    report.table(
        "8 B, half a round trip (us), with other receives posted", ["", "none", "4096", "ratio", "pairs"], rows
    )


def _judge_ratio(text, ratios, limit, at_most=True):
    if not ratios:
        report.judge(text, None)
        return
    value = report.median(ratios)
    report.judge(text, value <= limit if at_most else value >= limit, f"{value:.3f}")


def _judge(by_name):
    report.print_targets("tupleq")
    own, bound = by_name.get("tupleq"), by_name.get(PERFTEST)
    if not own:
        print("  tupleq was not measured")
        return
    _judge_ratio(
        f"8 B latency at most {LATENCY_TARGET} x ib_send_lat -c XRC",
        _ratio(own, bound, "latency", "half_us"),
        LATENCY_TARGET,
    )
    for rival in ("ob1-openib", "ucx-rc_v"):
        ratios = _ratio(own, by_name.get(rival), "latency", "half_us")
        _judge_ratio(f"8 B latency below that of {rival}", ratios, 1)
    _judge_ratio(
        f"1 MiB bandwidth at least {BANDWIDTH_TARGET} x ib_send_bw -c XRC",
        _ratio(own, bound, "bandwidth", "gb_per_s"),
        BANDWIDTH_TARGET,
        at_most=False,
    )
    _judge_ratio(f"with 4096 receives posted at most {DEPTH_TARGET} x none", _depth_ratios(own), DEPTH_TARGET)


def _judge_within(by_name):
    own = by_name.get("tupleq-auto")
    if not own:
        return
    report.print_targets("tupleq-auto, within a node")
    for rival, limit in (("ob1-vader", NEAR_TARGET), ("ucx-sm", 1)):
        ratios = _ratio(own, by_name.get(rival), "latency", "half_us")
        _judge_ratio(f"8 B latency at most {limit} x {rival}", ratios, limit)
    for rival in columns.SHARED_MEMORY:
        ratios = _ratio(own, by_name.get(rival), "bandwidth", "gb_per_s")
        _judge_ratio(f"1 MiB bandwidth at least that of {rival}", ratios, 1, at_most=False)
    _judge_ratio(f"with 4096 receives posted at most {DEPTH_TARGET} x none", _depth_ratios(own), DEPTH_TARGET)


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    chosen = columns.choose(settings.columns, [*columns.DEVICE, *LOCAL])
    between = [_perftest_task(settings), *(_mpi_task(settings, column) for column in chosen if not column.local)]
    within = [_mpi_task(settings, column) for column in chosen if column.local]
    within += [_mpi_task(settings, column, True) for column in chosen if column.name in DEVICE_WITHIN]
    tasks = between + within
    take_turns(tasks, settings.rounds)
    _print_table(between, "8 B, half a round trip (us)", "latency", "half_us", PERFTEST)
    _print_table(between, "1 MiB, one way (GB/s)", "bandwidth", "gb_per_s", PERFTEST)
    _print_depth(tasks)
    _print_table(within, "Within a node: 8 B, half a round trip (us)", "latency", "half_us", "ob1-vader")
    _print_table(within, "Within a node: 1 MiB, one way (GB/s)", "bandwidth", "gb_per_s", "ob1-vader")
    report.print_skipped(tasks)
    by_name = {task.name: task for task in tasks}
    _judge(by_name)
    _judge_within(by_name)
    report.write_json(settings, "latency", tasks)
    return tasks
