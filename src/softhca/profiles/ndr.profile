# An adapter of the class NDR, 400 Gb/s, such as a ConnectX-7. softhca run --profile ndr
# Behind each number is its source, or "assumed". tupleq-check --profile FILE measures those of an adapter.

# latency: assumed, as of HDR.
# bandwidth: 380 Gb/s, the least that a health check of hosts with NDR accepts (github.com/Azure/azurehpc-health-checks/pull/38).
# rate: assumed, as of HDR.
link = latency=600ns,bandwidth=47.5GB/s,rate=215M

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

# Limits: "the same feature set and limitations as ConnectX-6", firmware release notes of the ConnectX-7
# (docs.nvidia.com/networking/display/connectx7firmwarev28352000lts), so those of hdr, with their sources.
vendor-id = 713 # as hdr
part-id = 4129 # MT4129: github.com/geerlingguy/sbc-reviews/issues/92
max-qp = 262144 # as hdr
max-qp-wr = 32768 # as hdr
max-sge = 30 # assumed: as hdr
max-rd-atomic = 16 # assumed: as hdr
max-cq = 16777216 # assumed: as hdr
max-cqe = 4194303 # assumed: as hdr
max-mr = 16777216 # assumed: as hdr
max-pd = 16777216 # assumed: as hdr
mtu = 4096 # assumed
max-srq = 8388608 # as hdr
max-srq-wr = 32767 # as hdr
max-srq-sge = 31 # as hdr
max-inline = 912 # assumed
max-msg-sz = 1G # as hdr
