# The adapters of the papers: DDR, of 2009. softhca run --profile paper
# Behind each number is its source, or "assumed". What is missing here is a default of softhca.

link = latency=1.3us,bandwidth=1.5GB/s # the papers' adapters, as bench/PAPERS.md takes them

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
