/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_attach.c - a process enters virtual time with its fabric, and leaves it.
 */
#define _GNU_SOURCE 1
#include <link.h>
#include <string.h>

#include "fabric/options_parse.h"
#include "fabric/proc.h"
#include "fabric/shared_writes.h"
#include "turn_self.h"

struct shca_clock *shca_clk;
struct shca_turn_here shca_turn_here = {.attach_count = 1};

void (*shca_clock_take_slot)(void);

/* Returns the process's place among those that are due at the same time: its job and rank, which
 * are the same in each run, or its node and slot. */
static uint32_t order_of(unsigned node, unsigned slot)
{
	int32_t rank = shca_proc_rank();

	return rank >= 0 ? SHCA_ORDER_RANK(shca_proc_job(), (uint32_t)rank)
			 : SHCA_ORDER_PLACE(node, slot);
}

static int is_client_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/'),
		   *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	(void)arg;
	return !strncmp(name, "libpmi", 6) || !strncmp(name, "libmpi", 6);
}

/* Returns true if code reads the TSC and puts both halves of it together, as compilers do: rdtsc,
 * and within some bytes shl $32,%rdx. */
static bool reads_tsc(const unsigned char *code, size_t len)
{
	static const unsigned char joins[] = {0x48, 0xc1, 0xe2, 0x20};

	for (size_t i = 0; i + 2 + sizeof(joins) <= len; i++) {
		size_t rest = len - i - 2;

		if (code[i] == 0x0f && code[i + 1] == 0x31 &&
		    memmem(code + i + 2, rest < 16 ? rest : 16, joins, sizeof(joins)))
			return true;
	}
	return false;
}

/* Looks at the first object that is loaded, the program. */
static int program_reads_tsc(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && (part->p_flags & PF_R) &&
		    reads_tsc((const unsigned char *)(info->dlpi_addr + part->p_vaddr),
			      part->p_filesz))
			*(bool *)found = true;
	}
	return 1;
}

/* With traps the charge for CPU time is less exact, so programs that need none have none, unless
 * computing takes no time. */
static bool shall_trap(const struct shca_fabric *fabric)
{
	bool found = false;

	if (shca_opt(fabric, SHCA_O_CLOCK_TSC) != SHCA_TSC_AUTO)
		return shca_opt(fabric, SHCA_O_CLOCK_TSC) == SHCA_TSC_TRAP;
	if (!shca_opt(fabric, SHCA_O_CLOCK_CPU))
		return true;
	dl_iterate_phdr(program_reads_tsc, &found);
	return found;
}

static void read_options(const struct shca_fabric *fabric)
{
	static const enum shca_opt prices[SHCA_CALLS] = {
		[SHCA_CALL_POST] = SHCA_O_PRICE_POST, [SHCA_CALL_RECV] = SHCA_O_PRICE_RECV,
		[SHCA_CALL_POLL] = SHCA_O_PRICE_POLL, [SHCA_CALL_CQE] = SHCA_O_PRICE_CQE,
		[SHCA_CALL_ARM] = SHCA_O_PRICE_ARM,   [SHCA_CALL_EVENT] = SHCA_O_PRICE_EVENT,
		[SHCA_CALL_REG] = SHCA_O_PRICE_REG,   [SHCA_CALL_PAGE] = SHCA_O_PRICE_PAGE,
		[SHCA_CALL_VERB] = SHCA_O_PRICE_CALL, [SHCA_CALL_TIME] = SHCA_O_PRICE_TIME,
		[SHCA_CALL_WAIT] = SHCA_O_PRICE_WAIT,
	};

	for (unsigned i = SHCA_CALL_POST; i < SHCA_CALLS; i++)
		shca_turn_here.price[i] = (uint64_t)shca_opt(fabric, prices[i]);
	shca_turn_here.factor = shca_opt(fabric, SHCA_O_CLOCK_CPU);
	shca_turn_here.trap = shall_trap(fabric);
	shca_turn_here.look = (uint64_t)shca_opt(fabric, SHCA_O_CLOCK_LOOK);
	shca_turn_here.seed = (uint64_t)shca_opt(fabric, SHCA_O_CLOCK_SEED);
}

void shca_clock_attach(struct shca_fabric *fabric, unsigned slot, unsigned node)
{
	if (!shca_fabric_clock(fabric))
		return;
	shca_turn_here.fabric = fabric;
	shca_turn_here.slot = slot;
	shca_turn_here.order = order_of(node, slot);
	shca_turn_here.has_device = false;
	atomic_store(&shca_turn_here.threads, 0);
	read_options(fabric);
	shca_log_open(&fabric->hdr->config);
	shca_actor_adapter(fabric, slot, SHCA_ORDER(shca_turn_here.order, 0));
	shca_fabric_follow_clock(&fabric->hdr->clock);
	shca_clk = &fabric->hdr->clock;
}

/* Only a process with an MPI or PMI library is a rank: a shell or debugger inherits the number. */
void shca_clock_attach_early(void)
{
	static bool asked;

	if (shca_clk || asked || !shca_clock_take_slot)
		return;
	asked = true;
	if (shca_proc_rank() < 0 || !dl_iterate_phdr(is_client_library, NULL))
		return;
	shca_clock_take_slot();
	if (!shca_clk)
		return;
	shca_clock_enter_free();
	shca_clock_leave();
}

void shca_clock_has_device(void)
{
	shca_turn_here.has_device = true;
}

void shca_clock_disturb(void)
{
	if (shca_clk)
		shca_actors_disturb(shca_clk, SHCA_NO_PROC);
}

void shca_clock_detach(void)
{
	struct shca_fabric *fabric = shca_turn_here.fabric;

	if (!shca_clk)
		return;
	shca_turn_here.attach_count++;
	shca_turn_self.actor = 0;
	shca_clk = NULL;
	shca_fabric_follow_clock(NULL);
	shca_actors_gone(fabric, shca_turn_here.slot);
}

void shca_clock_reset(void)
{
	shca_turn_here.attach_count++;
	shca_shared_writes_forget();
	shca_turn_self.actor = shca_turn_self.depth = 0;
	shca_clk = NULL;
	shca_fabric_follow_clock(NULL);
}
