/* SPDX-License-Identifier: BSD-3-Clause */
/* opens - whether libtupleq opens an endpoint on this host, with default parameters: exit status 0,
 * or 1 after its sentence. The verdict of tupleq-check should be the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tupleq/tupleq.h>

static void log_text(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	if (level == TQ_LOG_ERROR)
		puts(text);
}

static void complete(void *user, const struct tq_status *status)
{
	(void)user;
	(void)status;
}

int main(int argc, char **argv)
{
	struct tq_params *params = tq_params_new();
	struct tq_job job = {.key = 1, .name = "opens", .log = log_text, .complete = complete};
	struct tq_ep *ep;
	int rc;

	if (argc != 2 || !params) {
		fputs("opens: Name the directory of a job.\n", stderr);
		return 2;
	}
	job.dir = argv[1];
	rc = tq_open(params, &job, NULL, &ep);
	if (rc)
		printf("tq_open(): %s\n", strerror(-rc));
	else
		tq_close(ep);
	tq_params_free(params);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
