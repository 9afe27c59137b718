/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_segment.c [copied] - regions in System V shared memory, into which small requests go without
 * a system call; or, as the argument says, with one. Child 1 has the memory, child 0 has a
 * connection to it. The rules are those of any other memory.
 */
#define _GNU_SOURCE 1
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "procs.h"
#include "stat.h"

#define LEN   65536
#define SMALL 192 /* --cqe-payload */

enum key { K_QP = 0, K_BUF = 4, K_ID = 6, K_STEP, K_DONE };

static bool copied;

/* ---- memory ---- */

static int make_segment(void)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);

	t_true(id >= 0, "shmget: %s", strerror(errno));
	return id;
}

static char *attach(int id)
{
	void *p = shmat(id, NULL, 0);

	t_true(p != (void *)-1, "shmat: %s", strerror(errno));
	return p;
}

static unsigned attached(int id)
{
	struct shmid_ds ds;

	t_true(!shmctl(id, IPC_STAT, &ds), "shmctl: %s", strerror(errno));
	return (unsigned)ds.shm_nattch;
}

static void await_attached(int id, unsigned n)
{
	uint64_t end = t_now() + T_DEADLINE_MS * 1000000ull;

	while (attached(id) != n) {
		t_true(t_now() < end, "%u have attached it, not %u", attached(id), n);
		sched_yield();
	}
}

/* ---- the two sides ---- */

struct side {
	struct t_dev *d;
	struct t_qp *q;
	struct t_buf own;
	int id; /* of the owner's segment */
	struct procs_buf there;
};

static struct t_params quick(const struct t_dev *d)
{
	struct t_params p = t_params(d);

	p.timeout = 8; /* 1 ms */
	p.retry_cnt = 3;
	return p;
}

static void connect_side(struct side *s, unsigned me)
{
	struct t_params p = quick(s->d);

	procs_connect(s->q, !me, K_QP, &p);
	procs_barrier();
}

/* A region of the owner: all of a segment that is removed already. */
static struct side owner_with(int id, char *addr, int access)
{
	struct side s = {.d = t_open(), .id = id};

	s.own = (struct t_buf){.addr = addr, .len = LEN};
	s.own.mr = ibv_reg_mr(s.d->pd, addr, LEN, (unsigned)access);
	t_true(s.own.mr, "ibv_reg_mr: %s", strerror(errno));
	s.q = t_qp(s.d, NULL);
	procs_put_buf(K_BUF, &s.own);
	procs_put(K_ID, (uint64_t)id);
	connect_side(&s, 1);
	return s;
}

static struct side owner_open(void)
{
	int id = make_segment();
	char *addr = attach(id);

	shmctl(id, IPC_RMID, NULL);
	return owner_with(id, addr, T_FULL_ACCESS);
}

static struct side requester_open(void)
{
	struct side s = {.d = t_open()};

	s.q = t_qp(s.d, NULL);
	s.own = t_buf(s.d, LEN);
	s.there = procs_get_buf(1, K_BUF);
	s.id = (int)procs_get(1, K_ID);
	connect_side(&s, 0);
	return s;
}

static void requester_close(struct side *s)
{
	t_qp_free(s->q);
	t_buf_free(&s->own);
	t_close(s->d);
}

static void owner_close(struct side *s)
{
	t_qp_free(s->q);
	if (s->own.mr)
		t_ok(ibv_dereg_mr(s->own.mr));
	t_close(s->d);
}

static enum ibv_wc_status request(struct side *s, enum ibv_wr_opcode op, size_t off, size_t len)
{
	struct ibv_sge sge = t_sge(&s->own, 0, len);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, s->there.addr + off, s->there.rkey);
	struct ibv_wc wc;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 77;
	}
	t_post(s->q, &wr);
	t_poll(s->q->scq, &wc, 1);
	return wc.status;
}

static enum ibv_wc_status write_word(struct side *s, size_t off, uint64_t value)
{
	memcpy(s->own.addr, &value, sizeof(value));
	return request(s, IBV_WR_RDMA_WRITE, off, sizeof(value));
}

static uint64_t word_at(const char *p)
{
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

static void run(procs_fn fn)
{
	unsigned nodes[] = {0, 1};

	procs_run(2, nodes, fn, NULL);
}

/* The counter grows by n; by nothing where all is copied, or where the kernel is too old. */
static void grew(uint64_t before, uint64_t n)
{
	uint64_t now = stat_counter("direct_accesses");

	t_eq(now - before, copied ? 0 : n);
}

/* ---- tests ---- */

static const size_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 16, 31, 64, 100, SMALL, SMALL + 1, 5000};
#define NSIZES     (sizeof(sizes) / sizeof(*sizes))
#define NSMALL     (NSIZES - 2)
#define NOFFSETS   9
#define PLACE(off) (4096 + (off))

/* Every size at every alignment, there and back, and nothing beside it. */
static void transfers(unsigned me, void *arg)
{
	struct side s = me ? owner_open() : requester_open();
	uint64_t before;

	(void)arg;
	if (me) {
		procs_barrier();
		owner_close(&s);
		return;
	}
	before = stat_counter("direct_accesses");
	for (size_t i = 0; i < NSIZES * NOFFSETS; i++) {
		size_t n = sizes[i % NSIZES], off = PLACE(i / NSIZES);
		unsigned seed = (unsigned)i;

		memset(s.own.addr, 0xee, n + 16);
		t_eq(request(&s, IBV_WR_RDMA_WRITE, off - 8, n + 16), IBV_WC_SUCCESS);
		t_fill(s.own.addr, n, seed);
		t_eq(request(&s, IBV_WR_RDMA_WRITE, off, n), IBV_WC_SUCCESS);
		memset(s.own.addr, 0, n + 16);
		t_eq(request(&s, IBV_WR_RDMA_READ, off, n), IBV_WC_SUCCESS);
		t_check(s.own.addr, n, seed);
		t_check_byte(s.own.addr + n, 16, 0);
		t_eq(request(&s, IBV_WR_RDMA_READ, off - 8, n + 16), IBV_WC_SUCCESS);
		t_check_byte(s.own.addr, 8, 0xee);
		t_check(s.own.addr + 8, n, seed);
		t_check_byte(s.own.addr + 8 + n, 8, 0xee);
	}
	/* With 16 bytes more the largest of the small ones isn't any more. */
	grew(before, NOFFSETS * (2 * NSMALL + 2 * (NSMALL - 1)));
	procs_barrier();
	requester_close(&s);
}

static void test_transfers(void **state)
{
	(void)state;
	run(transfers);
}

static void atomics(unsigned me, void *arg)
{
	struct side s = me ? owner_open() : requester_open();
	uint64_t before;

	(void)arg;
	if (me) {
		procs_barrier();
		t_eq(word_at(s.own.addr + 64), 100);
		t_eq(word_at(s.own.addr + 72), 1);
		t_eq(word_at(s.own.addr + 80), 77);
		owner_close(&s);
		return;
	}
	before = stat_counter("direct_accesses");
	for (uint64_t i = 0; i < 100; i++) {
		t_eq(request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 8), IBV_WC_SUCCESS);
		t_eq(word_at(s.own.addr), i);
	}
	t_eq(request(&s, IBV_WR_ATOMIC_CMP_AND_SWP, 80, 8), IBV_WC_SUCCESS);
	t_eq(word_at(s.own.addr), 0);
	t_eq(write_word(&s, 80, 1), IBV_WC_SUCCESS);
	t_eq(request(&s, IBV_WR_ATOMIC_CMP_AND_SWP, 80, 8), IBV_WC_SUCCESS);
	t_eq(word_at(s.own.addr), 1);
	t_eq(request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 72, 8), IBV_WC_SUCCESS);
	grew(before, 104);
	procs_barrier();
	requester_close(&s);
}

static void test_atomics(void **state)
{
	(void)state;
	run(atomics);
}

/* Words appear whole, and writes in their order: of two words the second is never ahead. */
static void order(unsigned me, void *arg)
{
	enum { ROUNDS = 20000, FACTOR = 0x01010101 };
	struct side s = me ? owner_open() : requester_open();

	(void)arg;
	for (uint64_t i = 1; me == 0 && i <= ROUNDS; i++) {
		t_eq(write_word(&s, 0, i << 32 | i), IBV_WC_SUCCESS);
		t_eq(write_word(&s, LEN - 8, i << 32 | i), IBV_WC_SUCCESS);
	}
	for (uint64_t seen = 0; me && seen < ROUNDS;) {
		uint64_t second = word_at(s.own.addr + LEN - 8), first = word_at(s.own.addr);

		t_true(first >> 32 == (first & 0xffffffff), "half a word: %llx",
		       (unsigned long long)first);
		t_true(first >= second, "the second word comes first");
		t_true(second >> 32 >= seen, "a word goes back");
		seen = second >> 32;
		sched_yield();
	}
	procs_barrier();
	if (me)
		owner_close(&s);
	else
		requester_close(&s);
}

static void test_order(void **state)
{
	(void)state;
	run(order);
}

/* Neither bounds nor rights are those of the segment. */
static void refused(unsigned me, void *arg)
{
	size_t off = *(const size_t *)arg;
	bool beyond = off != 0;
	int id = me ? make_segment() : -1;
	char *addr = me ? attach(id) : NULL;
	struct side s;

	if (me) {
		s = owner_with(id, addr,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				       (beyond ? IBV_ACCESS_REMOTE_WRITE : 0));
		shmctl(id, IPC_RMID, NULL);
		procs_barrier();
		t_check_byte(addr, LEN, 0);
		owner_close(&s);
		return;
	}
	s = requester_open();
	t_eq(request(&s, IBV_WR_RDMA_READ, 0, 8), IBV_WC_SUCCESS);
	t_eq(write_word(&s, off, 1), IBV_WC_REM_ACCESS_ERR);
	procs_barrier();
	requester_close(&s);
}

static void test_refused(void **state)
{
	size_t offs[] = {0, LEN - 7, LEN, (size_t)-8};
	unsigned nodes[] = {0, 1};

	(void)state;
	for (size_t i = 0; i < sizeof(offs) / sizeof(*offs); i++)
		procs_run(2, nodes, refused, &offs[i]);
}

/* Once the region is gone nothing is written, however fast a peer writes, and it lets go of the
 * segment. */
static void deregister(unsigned me, void *arg)
{
	struct side s = me ? owner_open() : requester_open();
	uint64_t i = 0;

	(void)arg;
	if (me == 0) {
		while (write_word(&s, 8, ++i) == IBV_WC_SUCCESS)
			procs_put(K_STEP, i);
		procs_put(K_DONE, 1);
		procs_barrier();
		requester_close(&s);
		return;
	}
	procs_wait_for(0, K_STEP, 100);
	t_ok(ibv_dereg_mr(s.own.mr));
	s.own.mr = NULL;
	i = word_at(s.own.addr + 8);
	procs_wait_for(0, K_DONE, 1);
	t_eq(word_at(s.own.addr + 8), i);
	await_attached(s.id, 1);
	procs_barrier();
	owner_close(&s);
}

static void test_deregister(void **state)
{
	(void)state;
	run(deregister);
}

/* A region that is registered anew is where it is then, in the segment or elsewhere. */
static void reregister(unsigned me, void *arg)
{
	struct side s = me ? owner_open() : requester_open();
	char *other;

	(void)arg;
	if (me == 0) {
		t_eq(write_word(&s, 0, 1), IBV_WC_SUCCESS);
		for (uint64_t i = 2; i < 4; i++) {
			procs_barrier();
			procs_barrier();
			s.there = procs_get_buf(1, K_BUF);
			t_eq(write_word(&s, 0, i), IBV_WC_SUCCESS);
		}
		procs_barrier();
		requester_close(&s);
		return;
	}
	other = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (uint64_t i = 2; i < 4; i++) {
		char *to = i == 2 ? s.own.addr + 4096 : other;

		procs_barrier();
		t_eq(ibv_rereg_mr(s.own.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, to, 4096, 0), 0);
		procs_put_buf(K_BUF, &(struct t_buf){to, 4096, s.own.mr});
		procs_barrier();
	}
	procs_barrier();
	t_eq(word_at(s.own.addr), 1);
	t_eq(word_at(s.own.addr + 4096), 2);
	t_eq(word_at(other), 3);
	await_attached(s.id, 1);
	munmap(other, LEN);
	owner_close(&s);
}

static void test_reregister(void **state)
{
	(void)state;
	run(reregister);
}

/*
 * What is registered is pinned: a write goes there though the owner has detached the segment, and
 * not to what it maps at that address then. Both with a peer that had reached it and one that
 * hadn't.
 */
static void remap(unsigned me, void *arg)
{
	bool reached_before = *(const bool *)arg;
	struct side s = me ? owner_open() : requester_open();
	char *segment, *at;

	if (me == 0) {
		if (reached_before)
			t_eq(write_word(&s, 0, 1), IBV_WC_SUCCESS);
		procs_barrier();
		procs_barrier();
		t_eq(write_word(&s, 8, 2), IBV_WC_SUCCESS);
		procs_barrier();
		requester_close(&s);
		return;
	}
	procs_barrier();
	segment = attach(s.id);
	t_true(!shmdt(s.own.addr), "shmdt: %s", strerror(errno));
	at = mmap(s.own.addr, LEN, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	t_true(at == s.own.addr, "mmap: %s", strerror(errno));
	procs_barrier();
	procs_barrier();
	t_check_byte(at, LEN, 0);
	t_eq(word_at(segment), reached_before);
	t_eq(word_at(segment + 8), 2);
	munmap(at, LEN);
	shmdt(segment);
	owner_close(&s);
}

static void test_remap(void **state)
{
	unsigned nodes[] = {0, 1};

	(void)state;
	for (int i = 0; i < 2 && !copied; i++) {
		bool reached_before = i;

		procs_run(2, nodes, remap, &reached_before);
	}
}

/* A peer that may not attach the segment goes another way. */
static void forbid_shmat(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	t_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	t_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void forbidden(unsigned me, void *arg)
{
	struct side s;
	uint64_t before;

	(void)arg;
	if (!me)
		forbid_shmat(); /* the engine's thread too */
	s = me ? owner_open() : requester_open();
	if (me) {
		procs_barrier();
		t_eq(word_at(s.own.addr), 5);
		owner_close(&s);
		return;
	}
	before = stat_counter("direct_accesses");
	t_eq(write_word(&s, 0, 4), IBV_WC_SUCCESS);
	t_eq(request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8), IBV_WC_SUCCESS);
	t_eq(word_at(s.own.addr), 4);
	grew(before, 0);
	procs_barrier();
	requester_close(&s);
}

static void test_forbidden(void **state)
{
	(void)state;
	run(forbidden);
}

/* Memory that isn't a segment's, or isn't pinned, is copied to. */
static void other_memory(unsigned me, void *arg)
{
	bool odp = *(const bool *)arg;
	struct side s;
	uint64_t before;

	if (me) {
		int fd = memfd_create("SYSV00000000", MFD_CLOEXEC);
		int id = make_segment();
		char *addr;

		t_true(fd >= 0 && !ftruncate(fd, LEN), "memfd: %s", strerror(errno));
		addr = odp ? attach(id)
			   : mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		shmctl(id, IPC_RMID, NULL);
		s = owner_with(id, addr, T_FULL_ACCESS | (odp ? IBV_ACCESS_ON_DEMAND : 0));
		procs_barrier();
		t_eq(word_at(addr), 9);
		owner_close(&s);
		return;
	}
	s = requester_open();
	before = stat_counter("direct_accesses");
	t_eq(write_word(&s, 0, 9), IBV_WC_SUCCESS);
	grew(before, 0);
	procs_barrier();
	requester_close(&s);
}

static void test_other_memory(void **state)
{
	unsigned nodes[] = {0, 1};

	(void)state;
	for (int i = 0; i < 2; i++) {
		bool odp = i;

		procs_run(2, nodes, other_memory, &odp);
	}
}

/* A segment outlives its process, but what that had registered is not written to any more, even
 * before anybody has cleaned up after it. */
static void death(unsigned me, void *arg)
{
	struct side s = me ? owner_open() : requester_open();
	enum ibv_wc_status status;
	uint64_t i = 0;

	(void)arg;
	if (me)
		for (;;)
			pause();
	while ((status = write_word(&s, 0, ++i)) == IBV_WC_SUCCESS)
		procs_put(K_STEP, i);
	t_eq(status, IBV_WC_RETRY_EXC_ERR);
	procs_put(K_DONE, 1);
	await_attached(s.id, 1); /* the parent has it */
	requester_close(&s);
}

static void test_death(void **state)
{
	unsigned nodes[] = {0, 1};
	char *segment;
	uint64_t last;

	(void)state;
	procs_start(2, nodes, death, NULL);
	procs_wait_for(0, K_STEP, 100);
	segment = attach((int)procs_get(1, K_ID));
	procs_kill(1);
	last = word_at(segment);
	procs_wait_for(0, K_DONE, 1);
	/* One may have been on its way. */
	t_true(word_at(segment) <= last + 1, "%llu writes after the end",
	       (unsigned long long)(word_at(segment) - last));
	procs_finish();
	shmdt(segment);
}

/* A forked child doesn't keep what its parent has attached. */
static void forked(unsigned me, void *arg)
{
	struct side s = me ? owner_open() : requester_open();
	int hold[2];
	pid_t child;
	char c;

	(void)arg;
	if (me) {
		procs_barrier();
		t_ok(ibv_dereg_mr(s.own.mr));
		s.own.mr = NULL;
		await_attached(s.id, 1);
		procs_barrier();
		owner_close(&s);
		return;
	}
	t_eq(write_word(&s, 0, 1), IBV_WC_SUCCESS);
	t_true(!pipe(hold), "pipe: %s", strerror(errno));
	child = fork();
	t_true(child >= 0, "fork: %s", strerror(errno));
	if (!child) {
		close(hold[1]);
		_exit(read(hold[0], &c, 1) != 0);
	}
	procs_barrier();
	procs_barrier();
	close(hold[1]);
	close(hold[0]);
	requester_close(&s);
}

static void test_forked(void **state)
{
	(void)state;
	run(forked);
}

/* PROCMAP_QUERY, by which the owner finds out what it registers. */
static bool kernel_says_what_is_mapped(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 11));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transfers),    cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_order),        cmocka_unit_test(test_refused),
		cmocka_unit_test(test_deregister),   cmocka_unit_test(test_reregister),
		cmocka_unit_test(test_remap),        cmocka_unit_test(test_forbidden),
		cmocka_unit_test(test_other_memory), cmocka_unit_test(test_death),
		cmocka_unit_test(test_forked),
	};

	copied = (argc > 1 && !strcmp(argv[1], "copied")) || !kernel_says_what_is_mapped();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
