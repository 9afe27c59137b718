# SPDX-License-Identifier: BSD-3-Clause
"""What is compared: each column is a way to run the same MPI program."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A name and what mpirun is told for it. A column that is the project's own has to work."""

    name: str
    options: tuple
    own: bool = False
    what: str = ""
    softhca_options: tuple = ()  # on softhca alone
    local: bool = False  # all ranks have to be on one host
    suffix: str = ""  # of the program's name, where the column has one of its own


def mca(**parameters):
    """Options of mpirun that set MCA parameters."""
    return tuple(word for name, value in parameters.items() for word in ("--mca", name, value))


def _tupleq(protocol, what):
    return Column(protocol, mca(pml="tupleq", pml_tupleq_protocol=protocol), own=True, what=what)


# Every queue is of RC: openib's XRC queues would be named X.
_RC_QUEUES = "P,128,256,192,128:S,2048,1024,1008,64:S,65536,1024,1008,64"

_ALL = [
    _tupleq("tupleq", "tuple queues"),
    _tupleq("tupleq-copy", "tuple queues, small messages copied by the sender"),
    _tupleq("rput", "eager, and RDMA WRITE after a rendezvous"),
    _tupleq("rget", "eager, and RDMA READ after a rendezvous"),
    Column(
        "ob1-openib",
        mca(
            pml="ob1",
            btl="openib,self",
            btl_openib_allow_ib="1",
            btl_openib_cpc_include="udcm",
            btl_openib_receive_queues=_RC_QUEUES,
            mpi_leave_pinned="1",
        ),
        what="Open MPI's own, over RC",
    ),
    Column(
        "ucx-rc_v",
        mca(pml="ucx", osc="ucx", opal_common_ucx_devices="any", opal_common_ucx_tls="any")
        + ("-x", "UCX_TLS=rc_v,self"),
        what="UCX, over RC",
        softhca_options=("-x", "UCX_NET_DEVICES=softhca0:1"),
    ),
    Column("ob1-vader", mca(pml="ob1", btl="vader,self"), what="Open MPI's shared memory", local=True),
    Column(
        "ucx-sm",
        mca(pml="ucx", osc="ucx", opal_common_ucx_devices="any", opal_common_ucx_tls="any")
        + ("-x", "UCX_TLS=sm,self"),
        what="UCX's shared memory",
        local=True,
    ),
]

# No library: what is left by the adapter to any. It runs where its program is built.
_VERBS = Column(
    "verbs",
    mca(pml="ob1", btl="tcp,self"),
    what="bare verbs, RC: a receive is posted, a completion queue polled",
    suffix="_verbs",
)

# The same pml with Open MPI's collectives; and those that Open MPI has for shared memory.
_COLLECTIVES = [
    Column("tupleq-tuned", mca(pml="tupleq", coll="^tupleq"), own=True, what="tuple queues, Open MPI's collectives"),
    Column(
        "ob1-vader-sm",
        mca(pml="ob1", btl="vader,self", coll_sm_priority="90"),
        what="Open MPI's shared memory, coll/sm",
        local=True,
    ),
]

COLUMNS = {column.name: column for column in _ALL + [_VERBS] + _COLLECTIVES}

# What messages are compared on; of these, those without an adapter and those that use it.
SHARED_MEMORY = ["ob1-vader", "ucx-sm"]
DEVICE = [column.name for column in _ALL if column.name not in SHARED_MEMORY]
COLLECTIVES = ["tupleq", "tupleq-tuned", "ob1-openib", "ucx-rc_v", "ob1-vader", "ob1-vader-sm"]
# What runs any MPI program.
MPI = [name for name, column in COLUMNS.items() if not column.suffix]


def choose(text, default, there=MPI):
    """The columns of a comma-separated list, or those of the default list. `there`: those that the part has programs for."""
    names = text.split(",") if text else default
    for name in names:
        if name not in there:
            raise SystemExit(f"there is no column {name} here; there are: {', '.join(there)}")
    return [COLUMNS[name] for name in names]
