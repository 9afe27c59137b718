# An adapter of the class HDR, 200 Gb/s, such as a ConnectX-6. softhca run --profile hdr
# Behind each number is its source, or "assumed". tupleq-check --profile FILE measures those of an adapter.

# latency: "sub-600ns"; rate: "215 million messages per second", user manual of the ConnectX-6
# (docs.nvidia.com/networking/display/ConnectX6EN/Introduction).
# bandwidth: 194 Gb/s by ib_write_bw on hosts with HDR (github.com/Azure/azurehpc-health-checks/issues/46).
link = latency=600ns,bandwidth=24.25GB/s,rate=215M

context-cache = 2048 # assumed
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

vendor-id = 713 # Mellanox: github.com/open-mpi/ompi/pull/6137
part-id = 4123 # user manual of the ConnectX-6 (docs.nvidia.com/networking/display/ConnectX6VPIOCP3/Introduction)
max-qp = 262144 # ibv_devinfo -v of a ConnectX-6: github.com/openucx/ucx/issues/8229
max-qp-wr = 32768 # the same
max-sge = 30 # assumed: as of a ConnectX-5
max-rd-atomic = 16 # assumed: as of a ConnectX-5
max-cq = 16777216 # assumed: as of a ConnectX-5
max-cqe = 4194303 # assumed: as of a ConnectX-5
max-mr = 16777216 # assumed: as of a ConnectX-5
max-pd = 16777216 # assumed: as of a ConnectX-5
mtu = 4096 # assumed
max-srq = 8388608 # of an adapter with mlx5: github.com/openucx/ucx/issues/10317
max-srq-wr = 32767 # the same adapter with mlx5
max-srq-sge = 31 # the same adapter with mlx5
max-inline = 912 # assumed
max-msg-sz = 1G # of an adapter with mlx5: github.com/openucx/ucx/issues/10430
