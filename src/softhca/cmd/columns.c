/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * columns.c - the columns of softhca stat and how each object is shown in them.
 */
#include "columns.h"

#include <stdio.h>
#include <string.h>

#include "fabric/counters.h"
#include "fabric/fabric.h"

#define NODE_AND_HCA                                                                 \
	{"NODE", "hca_node", SHCA_COLUMN_NUMBER, "the virtual node of the adapter"}, \
	{                                                                            \
		"HCA", "hca_name", SHCA_COLUMN_TEXT, "the adapter"                   \
	}
#define OWNER                                                                             \
	{"PID", "pid", SHCA_COLUMN_NUMBER, "the process that made it"},                   \
	{                                                                                 \
		"PROCESS", "comm", SHCA_COLUMN_TEXT, "the name of that process's program" \
	}

static const struct shca_column proc_columns[] = {
	{"SLOT", "slot", SHCA_COLUMN_NUMBER, "its place in the fabric's table of processes"},
	{"PID", "pid", SHCA_COLUMN_NUMBER, "the process"},
	{"PROCESS", "comm", SHCA_COLUMN_TEXT, "the name of its program"},
	{"NODE", "node", SHCA_COLUMN_NUMBER, "the virtual node that it is on"},
	{"PINNED", "pinned", SHCA_COLUMN_NUMBER,
	 "bytes of registered memory, which count against the memlock limit"},
	{"ARENA", "arena", SHCA_COLUMN_NUMBER, "bytes of shared memory that its queues take"},
};
static const struct shca_column connection_columns[] = {
	OWNER,
	{"NODE", "node", SHCA_COLUMN_NUMBER, "the virtual node of that process"},
	{"ID", "id", SHCA_COLUMN_NUMBER, "its number"},
	{"SPACE", "space", SHCA_COLUMN_TEXT, "its port space: TCP, UDP, IPOIB or IB"},
	{"STATE", "state", SHCA_COLUMN_TEXT,
	 "idle, bound, resolving, resolved (the address is known), routed (the path is known too), "
	 "listening; request sent or received, answer sent or received, established, "
	 "disconnecting, "
	 "disconnected (the peer has begun it), timewait or ended"},
	{"SOURCE", "source", SHCA_COLUMN_TEXT, "its own address and port"},
	{"DESTINATION", "destination", SHCA_COLUMN_TEXT, "those of its peer"},
};
static const struct shca_column actor_columns[] = {
	{"PID", "pid", SHCA_COLUMN_NUMBER, "the process"},
	{"PROCESS", "comm", SHCA_COLUMN_TEXT, "the name of its program"},
	{"THREAD", "tid", SHCA_COLUMN_NUMBER,
	 "the thread; none: the adapters, as this process uses them"},
	{"STATE", "state", SHCA_COLUMN_TEXT,
	 "runs, ready (wants the turn), spins (polls in vain, and is parked), waits (sleeps, or "
	 "waits for an event), out (waits in the real world) or computes (had its turn for too "
	 "long, and "
	 "goes on beside the others)"},
	{"TURN", "turn", SHCA_COLUMN_TEXT, "yes: it has the turn"},
	{"IN", "in", SHCA_COLUMN_TEXT, "the kind of call that it is in, or was in last"},
	{"CLOCK", "clock", SHCA_COLUMN_NUMBER, "its clock (ns), at its last sync point"},
	{"DUE", "due", SHCA_COLUMN_NUMBER, "when it wants the turn (ns)"},
	{"CPU", "cpu", SHCA_COLUMN_NUMBER, "the CPU time (ns) that its program used"},
	{"TURNS", "turns", SHCA_COLUMN_NUMBER, "how often it got the turn"},
	{"PARKED", "parked", SHCA_COLUMN_NUMBER, "how often it was parked"},
	{"OUTS", "outs", SHCA_COLUMN_NUMBER, "how often it waited in the real world"},
};
static const struct shca_column clock_columns[] = {
	{"TIME", "time", SHCA_COLUMN_NUMBER, "the time (ns) since the clock began"},
	{"SYNCS", "syncs", SHCA_COLUMN_NUMBER, "sync points so far"},
	{"TURNS", "turns", SHCA_COLUMN_NUMBER,
	 "turns given so far, each some microseconds of real time"},
	{"OWN", "own", SHCA_COLUMN_NUMBER,
	 "those of adapters that a thread of their process took, without a switch"},
	{"WORLD", "world", SHCA_COLUMN_NUMBER, "how often time stood still for the real world"},
	{"ALL", "all", SHCA_COLUMN_NUMBER,
	 "how often that was for all processes of the job, not only for the one of the thread that "
	 "waited and those without a clock; it takes as long as there are processes"},
	{"UNQUIET", "unquiet", SHCA_COLUMN_NUMBER,
	 "how often it went on though the real world was busy"},
	{"PACED", "paced", SHCA_COLUMN_NUMBER,
	 "how often it went no faster than real time, because threads only looked"},
	{"TAKEN", "taken", SHCA_COLUMN_NUMBER, "turns that were taken away"},
	{"TSC", "tsc", SHCA_COLUMN_NUMBER,
	 "the rate (per second) of the counter that rdtsc reads where it is trapped: that of this "
	 "machine, or a fixed one if computing costs nothing"},
	{"HASH", "hash", SHCA_COLUMN_TEXT, "a number made of all events so far"},
};
static const struct shca_column qp_columns[] = {
	NODE_AND_HCA,
	{"QPN", "number", SHCA_COLUMN_HEX, "its number"},
	{"TYPE", "type", SHCA_COLUMN_TEXT,
	 "RC, UC, UD, XRC_SEND (an initiator) or XRC_RECV (a target)"},
	OWNER,
	{"STATE", "state", SHCA_COLUMN_TEXT, "RESET, INIT, RTR, RTS, SQD, SQE or ERR"},
	{"PEER", "peer", SHCA_COLUMN_HEX, "the number of the queue pair that it is connected to"},
	{"LID", "peer_lid", SHCA_COLUMN_NUMBER, "the LID of that one's port (InfiniBand)"},
	{"SEND CQ", "send_cq", SHCA_COLUMN_HEX, "the completion queue of its sends"},
	{"RECV CQ", "recv_cq", SHCA_COLUMN_HEX, "the completion queue of its receives"},
	{"SRQ", "srq", SHCA_COLUMN_HEX, "the shared receive queue that it takes receives from"},
	{"POSTED", "posted", SHCA_COLUMN_NUMBER,
	 "without a shared one: receives that are posted and that no message has claimed"},
	{"CLAIMED", "claimed", SHCA_COLUMN_NUMBER,
	 "without a shared one: receives that messages have claimed so far"},
	{"XRCD", "xrcd", SHCA_COLUMN_HEX, "the XRC domain of a target"},
	{"OPENERS", "openers", SHCA_COLUMN_NUMBER,
	 "how many processes hold a target open (JSON has their numbers)"},
};
static const struct shca_column srq_columns[] = {
	NODE_AND_HCA,
	{"SRQN", "number", SHCA_COLUMN_HEX, "its number"},
	{"TYPE", "type", SHCA_COLUMN_TEXT, "XRC or basic"},
	OWNER,
	{"STATE", "state", SHCA_COLUMN_TEXT, "ok or error"},
	{"POSTED", "posted", SHCA_COLUMN_NUMBER,
	 "receives that are posted and that no message has claimed"},
	{"CLAIMED", "claimed", SHCA_COLUMN_NUMBER, "receives that messages have claimed so far"},
	{"MAX", "max_wr", SHCA_COLUMN_NUMBER, "receives that it takes at most"},
	{"LIMIT", "limit", SHCA_COLUMN_NUMBER,
	 "the number of receives below which an event is raised; 0: none is"},
	{"XRCD", "xrcd", SHCA_COLUMN_HEX, "its XRC domain"},
	{"CQ", "cq", SHCA_COLUMN_HEX, "the completion queue of what an XRC one receives"},
};
static const struct shca_column cq_columns[] = {
	NODE_AND_HCA,
	{"CQN", "number", SHCA_COLUMN_HEX, "its number"},
	OWNER,
	{"STATE", "state", SHCA_COLUMN_TEXT, "ok or overrun"},
	{"UNPOLLED", "unpolled", SHCA_COLUMN_NUMBER, "completions that wait to be polled"},
	{"POLLED", "polled", SHCA_COLUMN_NUMBER, "completions that were polled so far"},
	{"MAX", "limit", SHCA_COLUMN_NUMBER, "completions that it takes at most"},
	{"ARMED", "armed", SHCA_COLUMN_TEXT,
	 "what raises the next event: no (nothing), solicited or any completions; or firing: it is "
	 "being raised; or held: moderation holds it back"},
	{"EVENTS", "events", SHCA_COLUMN_NUMBER, "completion events raised so far"},
};
static const struct shca_column mr_columns[] = {
	NODE_AND_HCA,
	{"KEY", "number", SHCA_COLUMN_HEX, "its local and remote key"},
	{"TYPE", "type", SHCA_COLUMN_TEXT,
	 "memory, device (memory of the adapter), implicit (the whole address space, paged on "
	 "demand) or null"},
	OWNER,
	{"PD", "pd", SHCA_COLUMN_NUMBER, "its protection domain"},
	{"IOVA", "iova", SHCA_COLUMN_HEX, "its address, as work requests name it"},
	{"LENGTH", "length", SHCA_COLUMN_NUMBER, "its bytes; a null or implicit one has no length"},
	{"ACCESS", "access", SHCA_COLUMN_TEXT, "what is allowed, besides local reads"},
};
static const struct shca_column mw_columns[] = {
	NODE_AND_HCA,
	{"KEY", "key", SHCA_COLUMN_HEX, "its key, if it is bound"},
	{"TYPE", "type", SHCA_COLUMN_NUMBER, "1 or 2"},
	OWNER,
	{"PD", "pd", SHCA_COLUMN_NUMBER, "its protection domain"},
	{"MR", "mr", SHCA_COLUMN_HEX, "the key of the memory region that it is bound to"},
	{"QPN", "qpn", SHCA_COLUMN_HEX, "type 2: the queue pair that bound it"},
	{"IOVA", "iova", SHCA_COLUMN_HEX, "its address, as work requests name it"},
	{"LENGTH", "length", SHCA_COLUMN_NUMBER, "its bytes"},
	{"ACCESS", "access", SHCA_COLUMN_TEXT, "what peers may do"},
};
static const struct shca_column xrcd_columns[] = {
	NODE_AND_HCA,
	{"XRCD", "number", SHCA_COLUMN_HEX, "its number"},
	{"INODE", "inode", SHCA_COLUMN_TEXT,
	 "the file by which processes share it, as device and inode; or private"},
	{"OPENERS", "openers", SHCA_COLUMN_NUMBER,
	 "how many processes hold it open (JSON has their numbers)"},
};
static const struct shca_column counter_columns[] = {
	NODE_AND_HCA,
	{"COUNTER", "counter", SHCA_COLUMN_TEXT, "its name, see below"},
	{"VALUE", "value", SHCA_COLUMN_NUMBER, "its value since the last softhca reset"},
	{"PER SECOND", "rate", SHCA_COLUMN_NUMBER, "with --watch: what it grew by"},
};

#define COLUMNS(a) (a), sizeof(a) / sizeof((a)[0])

const struct shca_section shca_sections[] = {
	{"Processes", "procs", false, COLUMNS(proc_columns)},
	{"Connections of librdmacm", "connections", false, COLUMNS(connection_columns)},
	{"Virtual time", "clock", false, COLUMNS(clock_columns)},
	{"Threads and adapters in virtual time", "actors", false, COLUMNS(actor_columns)},
	{"Queue pairs", "qps", true, COLUMNS(qp_columns)},
	{"Shared receive queues", "srqs", true, COLUMNS(srq_columns)},
	{"Completion queues", "cqs", true, COLUMNS(cq_columns)},
	{"Memory regions", "mrs", true, COLUMNS(mr_columns)},
	{"Memory windows", "mws", true, COLUMNS(mw_columns)},
	{"XRC domains", "xrcds", true, COLUMNS(xrcd_columns)},
	{0},
};

const struct shca_section shca_counters_section = {"Counters", "counters", true,
						   COLUMNS(counter_columns)};

/* No text here begins with a dot or has a backslash, so it is mdoc as it is. */
static void section_man(const struct shca_section *section)
{
	const struct shca_column *column;

	printf(".Ss %s\n.Bl -tag -width Ds\n", section->title);
	for (column = section->columns; column < section->columns + section->n; column++) {
		printf(".It %s", column->title);
		/* The HCA columns are explained once, not with each object. */
		if (section != &shca_counters_section && strncmp(column->key, "hca_", 4) != 0)
			printf(" Pq in JSON: Cm %s", column->key);
		printf("\n%s.\n", column->help);
	}
	puts(".El");
}

void shca_columns_man(void)
{
	const struct shca_section *section;
	unsigned i;

	for (section = shca_sections; section->title; section++)
		section_man(section);
	section_man(&shca_counters_section);
	puts(".Pp\nThe counters are:\n.Bl -tag -width Ds");
	for (i = 0; i < SHCA_C_COUNT; i++)
		printf(".It Cm %s\n%s.\n", shca_counter_names[i], shca_counter_help[i]);
	puts(".El");
}
