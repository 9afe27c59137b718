# An adapter of the class EDR, 100 Gb/s, such as a ConnectX-5. softhca run --profile edr
# Behind each number is its source, or "assumed". tupleq-check --profile FILE measures those of an adapter.

# latency: "sub-600ns", product brief of the ConnectX-5 EN (manualmachine.com/mellanox/connectx5).
# bandwidth: 11728 MiB/s by ib_write_bw at 100 Gb/s (github.com/linux-rdma/perftest/issues/225).
# rate: no source was found, so there is no limit.
link = latency=600ns,bandwidth=12.3GB/s

context-cache = 1024 # assumed
context-miss = 500ns # assumed: two reads by PCI Express

price-post = 100ns # assumed
price-recv = 40ns # assumed
price-poll = 15ns # assumed
price-cqe = 35ns # assumed
price-arm = 100ns # assumed
price-event = 2us # assumed
price-reg = 30us # assumed
price-page = 100ns # assumed
price-call = 20us # assumed
price-time = 25ns # assumed
price-wait = 500ns # assumed

# What such an adapter says: ibv_devinfo -v of a ConnectX-5 (github.com/open-mpi/ompi/pull/6137). softhca offers less of some.
vendor-id = 713 # the same
part-id = 4119 # the same
max-qp = 262144 # the same
max-qp-wr = 32768 # the same
max-sge = 30 # the same
max-rd-atomic = 16 # the same
max-cq = 16777216 # the same
max-cqe = 4194303 # the same
max-mr = 16777216 # the same
max-pd = 16777216 # the same
mtu = 4096 # assumed
max-srq = 8388608 # of an adapter with mlx5: github.com/openucx/ucx/issues/10317
max-srq-wr = 32767 # the same adapter with mlx5
max-srq-sge = 31 # the same adapter with mlx5
max-inline = 912 # assumed
max-msg-sz = 1G # of an adapter with mlx5: github.com/openucx/ucx/issues/10430
