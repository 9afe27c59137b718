# SPDX-License-Identifier: BSD-3-Clause
"""The columns: ways to run the same MPI program that are compared."""

from dataclasses import dataclass, replace

from mpich import genv


@dataclass(frozen=True)
class Column:
    """A name and the options of mpirun. A column of this project has to work."""

    name: str
    options: tuple
    own: bool = False
    what: str = ""
    softhca_options: tuple = ()  # further options, on softhca alone
    local: bool = False  # whether all ranks have to be on one host
    real: bool = False  # whether the column has figures in real time alone
    suffix: str = ""  # the end of the program's name, if the column has programs of its own

    def uncached(self):
        """Returns the column without a cache of registrations: each message registers its buffers."""
        options = list(self.options)
        if "mpi_leave_pinned" in options:
            options[options.index("mpi_leave_pinned") + 1] = "0"
        else:
            options += mca(mpi_leave_pinned="0")
        return replace(self, options=(*options, "-x", "UCX_IB_REG_METHODS=direct"))


def mca(**parameters):
    """Returns options of mpirun that set MCA parameters."""
    return tuple(word for name, value in parameters.items() for word in ("--mca", name, value))


# Messages within a node go through the adapter, too, as in the papers.
_HCA = mca(pml_tupleq_intranode="hca")


def _tupleq(protocol, what):
    return Column(protocol, mca(pml="tupleq", pml_tupleq_protocol=protocol) + _HCA, own=True, what=what)


# All queues are of RC; XRC queues would have an X.
_RC_QUEUES = "P,128,256,192,128:S,2048,1024,1008,64:S,65536,1024,1008,64"

_ALL = [
    _tupleq("tupleq", "tuple queues"),
    _tupleq("tupleq-copy", "tuple queues, small messages copied by the sender"),
    _tupleq("rput", "eager, and RDMA WRITE after a rendezvous"),
    _tupleq("rget", "eager, and RDMA READ after a rendezvous"),
    Column("ob1-btl", mca(pml="ob1", btl="tupleq,self", btl_tupleq_intranode="hca"), own=True, what="ob1 over btl/tupleq"),
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

# No library: the figures that an adapter leaves to any library. Only some parts have its programs.
_VERBS = Column(
    "verbs",
    mca(pml="ob1", btl="tcp,self"),
    what="bare verbs, RC: a receive is posted, a completion queue polled",
    suffix="_verbs",
)

# tupleq with Open MPI's collectives, or its nonblocking ones alone, and Open MPI's collectives for shared memory.
_COLLECTIVES = [
    Column("tupleq-tuned", mca(pml="tupleq", coll="^tupleq") + _HCA, own=True, what="tuple queues, Open MPI's collectives"),
    Column(
        "tupleq-tuned-auto",
        mca(pml="tupleq", coll="^tupleq", pml_tupleq_intranode="auto"),
        own=True,
        what="tuple queues, shared memory for short messages, Open MPI's collectives",
    ),
    Column(
        "tupleq-libnbc",
        mca(pml="tupleq", coll_tupleq_ring="0") + _HCA,
        own=True,
        what="tuple queues, Open MPI's nonblocking collectives",
    ),
    Column(
        "ob1-vader-sm",
        mca(pml="ob1", btl="vader,self", coll_sm_priority="90"),
        what="Open MPI's shared memory, coll/sm",
        local=True,
    ),
]

# Through libfabric: Open MPI's own module for it, over this project's provider. Open MPI 4.1 and 5.0 name their parameters
# differently, and ignore the other's.
_LIBFABRIC = Column(
    "mtl-ofi",
    mca(pml="cm", mtl="ofi", mtl_ofi_provider_include="tupleq", opal_common_ofi_provider_include="tupleq"),
    own=True,
    what="Open MPI's mtl/ofi, over the provider of libfabric",
)

# tupleq as it is by default, for --one-node.
_SHARED_CONTROL = Column(
    "tupleq-auto",
    mca(pml="tupleq", pml_tupleq_intranode="auto"),
    own=True,
    what="tuple queues, and shared memory for short messages",
    local=True,
)

# MPICH's, which --mpirun names. All ranks of softhca's nodes are on one host, where MPICH would take its own shared memory.
_MPICH = [
    Column(
        "mpich-tupleq",
        genv(FI_PROVIDER="tupleq", MPIR_CVAR_NOLOCAL="1"),
        own=True,
        what="MPICH's ch4:ofi, over the provider of libfabric",
    ),
    Column(
        "mpich-tcp",
        genv(FI_PROVIDER="tcp;ofi_rxm", MPIR_CVAR_NOLOCAL="1"),
        what="MPICH's ch4:ofi, over libfabric's provider for TCP",
        real=True,
    ),
]

_OF_OPEN_MPI = _ALL + [_VERBS] + _COLLECTIVES + [_LIBFABRIC, _SHARED_CONTROL]
COLUMNS = {column.name: column for column in _OF_OPEN_MPI + _MPICH}

# Columns without an adapter, those that use it, those of one-sided operations and of
# collectives, and those that run any MPI program.
SHARED_MEMORY = ["ob1-vader", "ucx-sm"]
DEVICE = [column.name for column in _ALL if column.name not in SHARED_MEMORY]
ONE_SIDED = ["tupleq", "ob1-btl", "ob1-openib", "ucx-rc_v"]
COLLECTIVES = ["tupleq", "tupleq-tuned", "ob1-openib", "ucx-rc_v", "ob1-vader", "ob1-vader-sm"]
ONE_NODE = ["tupleq-auto", "tupleq", *SHARED_MEMORY]
MPICH = [column.name for column in _MPICH]
MPI = [name for name, column in COLUMNS.items() if not column.suffix]


def choose(text, default, there=MPI):
    """Returns the columns of a comma-separated list, or those of the default list. `there`: the columns of the part."""
    names = text.split(",") if text else default
    for name in names:
        if name not in there:
            raise SystemExit(f"there is no column {name} here; choose of: {', '.join(there)}")
    return [COLUMNS[name] for name in names]
