/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.c - what is known of a process: whether it still runs, as the kernel tells, and its rank;
 * and waking its engine.
 */
#define _GNU_SOURCE 1
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "text.h"

/* Returns the text of field `n` (3 is the first after the name) in what follows the name. */
static const char *field(const char *rest, int n)
{
	while (n-- > 3 && rest) {
		rest = strchr(rest, ' ');
		if (rest)
			rest++;
	}
	return rest ? rest : "";
}

/*
 * Returns where the program and its stack are, in one number, which only exec changes. The kernel
 * shows these fields only to processes that may trace this one, and hides those of a process that
 * is ending or whose first thread has ended. (Without address randomisation a program that replaces
 * itself by itself looks unchanged; it gives up its former slot when it opens a device.)
 */
static uint64_t image_of(const char *rest)
{
	static const int fields[] = {26, 27, 28, 45, 46}; /* code, stack, data */
	uint64_t image = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint64_t n = strtoull(field(rest, fields[i]), NULL, 10);

		if (n <= 1) /* the value that is shown instead */
			return 0;
		image = (image ^ n) * 0x9e3779b97f4a7c15ULL;
	}
	return image;
}

int shca_proc_read_stat(pid_t pid, struct shca_proc_stat *st)
{
	char path[32], text[768], *open_paren, *close_paren, *end;
	ssize_t n;
	int fd, rc;

	end = shca_put_number(shca_put_text(path, "/proc/"), (uint64_t)pid);
	shca_put_text(end, "/stat");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, sizeof(text) - 1);
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc)
		return rc;
	text[n] = '\0';
	/* The name may hold anything, parentheses and spaces too. */
	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren[1] != ' ')
		return -EIO;
	*close_paren = '\0';
	strncpy(st->comm, open_paren + 1, sizeof(st->comm) - 1);
	st->comm[sizeof(st->comm) - 1] = '\0';
	st->state = close_paren[2];
	st->threads = strtol(field(close_paren + 2, 20), NULL, 10);
	st->start_time = strtoull(field(close_paren + 2, 22), NULL, 10);
	st->image = image_of(close_paren + 2);
	return 0;
}

bool shca_proc_running(const struct shca_fabric *fabric, unsigned proc)
{
	const struct shca_proc *record = &fabric->hdr->procs[proc];
	pid_t pid = atomic_load(&record->pid);
	struct shca_proc_stat st;
	int rc;

	if (pid <= 0)
		return false;
	rc = shca_proc_read_stat(pid, &st);
	if (rc == -ESRCH)
		return false;
	if (rc) /* for example, out of descriptors: better to reap too late than too early */
		return !kill(pid, 0) || errno != ESRCH;
	if (st.start_time != record->start_time ||
	    (st.image && record->image && st.image != record->image))
		return false;
	/* A first thread that ended by itself looks like a zombie while other threads of its
	 * process go on. */
	return st.state != 'X' && (st.state != 'Z' || st.threads > 1);
}

int32_t shca_proc_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					    "SLURM_PROCID"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *s = getenv(names[i]);

		if (s && *s >= '0' && *s <= '9')
			return (int32_t)(strtoul(s, NULL, 10) & INT32_MAX);
	}
	return -1;
}

unsigned shca_proc_job(void)
{
	const char *name = getenv("PMIX_NAMESPACE"), *at = name ? strrchr(name, '@') : NULL;
	unsigned long number;
	char *end;

	if (!name)
		return 0;
	/* PRRTE's names end in "@1", "@2" and so on. Open MPI 4's names are numbers, of which the
	 * lower half counts. */
	number = strtoul(at ? at + 1 : name, &end, 10);
	return *end || !number ? 0 : (unsigned)(number & UINT16_MAX) - 1;
}

bool shca_proc_is_inside(const struct shca_proc *proc)
{
	for (unsigned i = 0; i < SHCA_MAX_EXEC; i++)
		if (atomic_load(&proc->exec[i].seq) & 1)
			return true;
	return false;
}

void shca_proc_wake(struct shca_proc *proc)
{
	/* seq_cst on both: either the engine sees the new value, or this thread sees it
	 * sleeping. */
	atomic_fetch_add(&proc->wake_word, 1);
	if (atomic_load(&proc->sleeping))
		syscall(SYS_futex, &proc->wake_word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
