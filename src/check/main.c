/* SPDX-License-Identifier: BSD-3-Clause */
/* tupleq-check: tells whether TupleQ works on the adapters of this host, why not, and what it
 * costs, by libibverbs alone. */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "partner.h"
#include "peer.h"
#include "port.h"
#include "prices.h"
#include "profile.h"
#include "report.h"
#include "trials.h"
#include "trips.h"

enum { EXIT_WORKS, EXIT_NONE, EXIT_USAGE };
enum { KEY_PARTNER = 1, KEY_PROFILE, KEY_PEER, KEY_SERVE };

struct arguments {
	char device[64]; /* empty: all */
	unsigned port;   /* 0: all */
	bool json, facts_only, no_prices;
	const char *partner;
	const char *peer;  /* HOST[:PORT] */
	const char *serve; /* TCP port */
	const char *profile_path;
	bool failed;   /* the profile could not be written */
	FILE *profile; /* NULL: none is to be written, or it was */
};

const char *argp_program_version = "tupleq-check " PACKAGE_VERSION;

/* Takes DEVICE or DEVICE:PORT apart. */
static void parse_device(const char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	size_t len = strcspn(arg, ":");
	unsigned long port = 0;
	char *end;

	if (!len || len >= sizeof(arguments->device))
		argp_error(state, "\"%s\" is no name of a device: write DEVICE or DEVICE:PORT",
			   arg);
	if (arg[len]) {
		port = strtoul(arg + len + 1, &end, 10);
		if (end == arg + len + 1 || *end || !port || port > 255)
			argp_error(state,
				   "\"%s\" names no port: write DEVICE:PORT, with a port "
				   "from 1 to 255",
				   arg);
	}
	memcpy(arguments->device, arg, len);
	arguments->device[len] = '\0';
	arguments->port = (unsigned)port;
}

static void parse_peer(const char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	char host[256], port[32];

	if (!peer_split(arg, host, port))
		argp_error(state, "\"%s\" is no peer: write HOST or HOST:PORT", arg);
	arguments->peer = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'd':
		parse_device(arg, state);
		return 0;
	case 'j':
		arguments->json = true;
		return 0;
	case 'f':
		arguments->facts_only = true;
		return 0;
	case 'n':
		arguments->no_prices = true;
		return 0;
	case KEY_PROFILE:
		arguments->profile_path = arg;
		return 0;
	case KEY_PEER:
		parse_peer(arg, state);
		return 0;
	case KEY_SERVE:
		arguments->serve = arg ? arg : PEER_PORT;
		return 0;
	case KEY_PARTNER:
		parse_device(arg, state);
		arguments->partner = arg;
		return 0;
	case ARGP_KEY_END:
		if (arguments->profile_path && (arguments->facts_only || arguments->no_prices))
			argp_error(state, "--profile needs the prices; leave out --facts and "
					  "--no-prices");
		if ((arguments->peer || arguments->serve) &&
		    (arguments->facts_only || arguments->no_prices || arguments->profile_path ||
		     (arguments->peer && arguments->serve)))
			argp_error(state, "--peer and --serve are only for each other's program: "
					  "leave out the rest but --device and --json");
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is no option; a device is named by --device", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Reports a device whose ports can't be looked at. */
static void report_closed(struct report *report, const char *device, const char *what, int error)
{
	char why[REPORT_TEXT];

	report_port(report, device, 0);
	snprintf(why, sizeof(why), "%s (%s)", what, strerror(error));
	report_fact(report, REPORT_BAD, "device file", strerror(error), why, port_advice(error));
	report_verdict(report);
}

/* Writes the profile of the first port that works. */
static void write_profile(struct arguments *arguments, const struct report *report,
			  const struct port *port)
{
	FILE *file = arguments->profile;

	if (!file)
		return;
	profile_write(file, report, port);
	arguments->profile = NULL;
	if (!profile_close(file, arguments->profile_path, true)) {
		fprintf(stderr, "tupleq-check: The profile %s can't be written: %s.\n",
			arguments->profile_path, strerror(errno));
		arguments->failed = true;
	} else if (!report->json) {
		printf("  %s has the profile of this port; try: softhca run --profile %s -- ...\n",
		       arguments->profile_path, arguments->profile_path);
	}
}

static void check_port(struct report *report, struct arguments *arguments,
		       struct ibv_context *verbs, unsigned number)
{
	const char *device = ibv_get_device_name(verbs->device);
	char why[REPORT_TEXT], found[REPORT_TEXT];
	struct port port;
	int error = port_query(&port, verbs, number);

	report_port(report, device, number);
	snprintf(found, sizeof(found), "/dev/infiniband/%s", verbs->device->dev_name);
	report_fact(report, REPORT_OK, "device file", found, NULL, NULL);
	if (error) {
		snprintf(why, sizeof(why), "its attributes can't be queried (%s)", strerror(error));
		report_fact(report, REPORT_BAD, "port state", strerror(error), why,
			    port_advice(error));
	} else {
		facts_report(report, &port);
	}
	if (!arguments->facts_only && !report->bad)
		trials_report(report, &port);
	if (report_verdict(report) && !arguments->facts_only && !arguments->no_prices) {
		prices_report(report, &port);
		trips_report(report, &port);
		write_profile(arguments, report, &port);
	}
}

/* Looks at the ports of a device. Returns the number of those that were to be looked at. */
static unsigned check_device(struct report *report, struct arguments *arguments,
			     struct ibv_device *device)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *verbs;
	struct ibv_device_attr attr;
	unsigned looked_at = 0, number;
	int error;

	if (*arguments->device && strcmp(arguments->device, name))
		return 0;
	verbs = ibv_open_device(device);
	if (!verbs) {
		report_closed(report, name, "it can't be opened", errno);
		return 1;
	}
	error = ibv_query_device(verbs, &attr);
	if (error) {
		report_closed(report, name, "its attributes can't be queried", error);
		looked_at = 1;
		attr.phys_port_cnt = 0;
	}
	for (number = 1; number <= attr.phys_port_cnt; number++) {
		if (arguments->port && arguments->port != number)
			continue;
		check_port(report, arguments, verbs, number);
		looked_at++;
	}
	ibv_close_device(verbs);
	return looked_at;
}

/* Returns true if the kernel has RDMA devices, which libibverbs may not know. */
static bool kernel_has_device(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	bool has = false;

	while (dir && (entry = readdir(dir)))
		has = has || entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return has;
}

static void report_no_device(struct report *report, const struct arguments *arguments, int ndevices)
{
	char why[REPORT_TEXT];

	if (ndevices && arguments->port)
		snprintf(why, sizeof(why), "there is no port %s:%u", arguments->device,
			 arguments->port);
	else
		snprintf(why, sizeof(why), "there is no RDMA device called %s", arguments->device);
	if (ndevices)
		report_nothing(report, why, "ibv_devinfo lists the devices and their ports");
	else if (kernel_has_device())
		report_nothing(report,
			       "libibverbs doesn't know the RDMA devices that the kernel has",
			       "install the libibverbs provider of the adapter (ibverbs-providers, "
			       "rdma-core), and load the kernel module ib_uverbs");
	else
		report_nothing(report, "no RDMA device was found",
			       "check with lspci that there is an adapter, and load its kernel "
			       "module (mlx5_ib, mlx4_ib or hns_roce_hw_v2)");
}

/* Makes the file of the profile. Returns false, with a sentence, if that isn't possible. */
static bool begin_profile(struct arguments *arguments)
{
	if (!arguments->profile_path)
		return true;
	arguments->profile = profile_create(arguments->profile_path);
	if (arguments->profile)
		return true;
	if (errno == EEXIST)
		fprintf(stderr,
			"tupleq-check: The file %s exists already, and is not overwritten: name "
			"another one.\n",
			arguments->profile_path);
	else
		fprintf(stderr, "tupleq-check: The profile %s can't be written: %s.\n",
			arguments->profile_path, strerror(errno));
	return false;
}

static int check(struct arguments *arguments)
{
	struct ibv_device **list;
	struct report report;
	unsigned looked_at = 0;
	int ndevices = 0, i;

	if (!begin_profile(arguments))
		return EXIT_USAGE;
	report_begin(&report, arguments->json);
	list = ibv_get_device_list(&ndevices);
	for (i = 0; list && i < ndevices; i++)
		looked_at += check_device(&report, arguments, list[i]);
	if (!looked_at)
		report_no_device(&report, arguments, list ? ndevices : 0);
	if (list)
		ibv_free_device_list(list);
	if (arguments->profile) {
		profile_close(arguments->profile, arguments->profile_path, false);
		fprintf(stderr, "tupleq-check: No port works, so there is no profile.\n");
	}
	if (report_end(&report)) {
		fprintf(stderr, "tupleq-check: The report can't be written: %s.\n",
			strerror(errno));
		return EXIT_NONE;
	}
	return report.working && !arguments->failed ? EXIT_WORKS : EXIT_NONE;
}

/* Finds the first port that is up, among those that were named. Returns false if there is none. */
static bool find_port(const struct arguments *arguments, struct ibv_device **list,
		      struct port *port)
{
	struct ibv_device_attr attr;

	for (; list && *list; list++) {
		struct ibv_context *verbs;

		if (*arguments->device &&
		    strcmp(arguments->device, ibv_get_device_name(*list)) != 0)
			continue;
		verbs = ibv_open_device(*list);
		if (!verbs)
			continue;
		for (unsigned i = 1; !ibv_query_device(verbs, &attr) && i <= attr.phys_port_cnt;
		     i++)
			if ((!arguments->port || arguments->port == i) &&
			    !port_query(port, verbs, i) && port->port.state == IBV_PORT_ACTIVE)
				return true;
		ibv_close_device(verbs);
	}
	return false;
}

/* Checks the way to a peer, or is one. Returns an exit status. */
static int with_peer(const struct arguments *arguments)
{
	int ndevices = 0, status = PEER_NO_PORT;
	struct ibv_device **list = ibv_get_device_list(&ndevices);
	struct report report;
	struct port port;
	bool found = find_port(arguments, list, &port);

	if (arguments->serve)
		return peer_serve(found ? &port : NULL, arguments->serve);
	report_begin(&report, arguments->json);
	if (found)
		status = peer_check(&report, &port, arguments->peer);
	else if (ndevices && !*arguments->device)
		report_nothing(&report, "no port is up",
			       "see what tupleq-check says without --peer");
	else
		report_no_device(&report, arguments, ndevices);
	if (found)
		ibv_close_device(port.verbs);
	if (list)
		ibv_free_device_list(list);
	if (report_end(&report)) {
		fprintf(stderr, "tupleq-check: The report can't be written: %s.\n",
			strerror(errno));
		return EXIT_NONE;
	}
	return status;
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"device", 'd', "DEVICE[:PORT]", 0, "look at this device or port only", 0},
		{"facts", 'f', NULL, 0, "look only: no tests, no prices", 0},
		{"no-prices", 'n', NULL, 0, "look and test, but measure no prices", 0},
		{"profile", KEY_PROFILE, "FILE", 0,
		 "write the first working port's profile for softhca run --profile", 0},
		{"json", 'j', NULL, 0, "print one JSON document", 0},
		{"peer", KEY_PEER, "HOST[:PORT]", 0,
		 "test and measure between this host and that one, where --serve runs", 0},
		{"serve", KEY_SERVE, "PORT", OPTION_ARG_OPTIONAL,
		 "answer those who call with --peer, on this TCP port (" PEER_PORT ")", 0},
		{"partner", KEY_PARTNER, "DEVICE:PORT", OPTION_HIDDEN, "", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Tells for each port of this host's RDMA adapters whether TupleQ works "
		       "there, why not and what to do, and what the verbs cost that it uses."
		       "\v"
		       "The exit status is 0 if a port works, 1 if none does, and 2 if the "
		       "command line is wrong; with --peer also 3 (nobody answers there), 4 "
		       "(another version), 5 (the adapters don't reach each other) and 6 (the "
		       "peer went away). tupleq-check(1) tells more.",
	};
	struct arguments arguments = {0};

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (arguments.partner)
		return partner_main(arguments.device, arguments.port);
	if (arguments.peer || arguments.serve)
		return with_peer(&arguments);
	return check(&arguments);
}
