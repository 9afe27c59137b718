# SPDX-License-Identifier: BSD-3-Clause
"""The computing time of SP: nanoseconds per point of each section, by class and number of ranks (the key A16: class A, 16 ranks),
measured on one rank alone. A file can keep these times: they vary by a tenth between measurements, and only runs with the same
times can be compared."""

import json
import os

import jobs

STEPS, REPEATS = 20, 5


def load(path):
    """Returns the times that a file keeps, none if there is no file. Raises OSError or ValueError if the file can't be used."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    if not isinstance(kept, dict) or not all(isinstance(one, dict) for one in kept.values()):
        raise ValueError("no times of sections by class and ranks")
    return kept


def sections(settings, case):
    """Returns the times of a case's sections, which are measured if they aren't known yet, and kept."""
    key = f"{case[0]}{case[1]}"
    if key not in settings.sections:
        settings.sections[key] = _measure(settings, case)
        if settings.computing:
            with open(settings.computing, "w", encoding="utf-8") as file:
                json.dump(settings.sections, file, indent=1)
                file.write("\n")
    return list(settings.sections[key].values())


def _measure(settings, case):
    """Returns the least time of each section, because other programs can only make computing longer."""
    program = os.path.join(settings.programs, "sp/sp")
    command = [program, "--class", case[0], "--measure", str(case[1]), "--steps", str(STEPS)]
    runs = [jobs.run_json(command, settings.timeout)[0]["ns_a_point"] for _ in range(REPEATS)]
    return {name: min(run[name] for run in runs) for name in runs[0]}
