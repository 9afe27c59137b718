/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process says in its inbox's segment what its process id is, and where in its memory its
 * endpoint's nonce lies: the proof. The id may name nobody here, or another process: if the other
 * one is in a PID namespace of its own, or has died. So each copy reads the proof as well, in the
 * same system call, which reads the memory of one process only.
 */
#include "net/channel/peer_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "net/channel/inbox.h"
#include "net/lanes/outbox.h"
#include "net/peers/contact.h"

static const char not_its_id[] = "its process id is not valid here";

/* Says why messages of the link's process are not copied from there. As that is likely to hold for
 * all processes of the node, only the first one is worth a warning. */
static void say_why_not(struct tq_net *net, const struct tq_link *link, const char *why)
{
	enum tq_log_level level = net->params->intranode == TQ_INTRANODE_SHM && !net->memory_said
					  ? tq_host_level(net->job, "copying")
					  : TQ_LOG_DEBUG;

	net->memory_said = true;
	tq_log(net->job, level,
	       "Long messages between this process and %s are not copied from one to the other, "
	       "although both are on this node: %s. Processes of a user need the right to read "
	       "each "
	       "other's memory (process_vm_readv): look at kernel.yama.ptrace_scope, and at the "
	       "containers' seccomp profiles and PID namespaces.",
	       tq_link_name(link), why);
}

static void refuse(struct tq_net *net, struct tq_link *link, const char *why)
{
	link->contact->memory = TQ_MEMORY_REFUSED;
	TQ_COUNT(net->stats, copies_refused);
	say_why_not(net, link, why);
}

/* Reads memory of the link's process. Returns 0 or -errno, -ESTALE if another process has its id.
 */
static int read_proven(const struct tq_link *link, void *to, uint64_t addr, uint64_t len)
{
	const struct tq_contact *contact = link->contact;
	uint64_t proof = 0;
	struct iovec here[] = {{to, len}, {&proof, sizeof(proof)}};
	struct iovec there[] = {
		{(void *)(uintptr_t)addr, len},
		{(void *)(uintptr_t)contact->proof, sizeof(proof)},
	};
	ssize_t n = process_vm_readv(contact->pid, here, 2, there, 2, 0);

	if (n < 0)
		return -errno;
	/* Less is read if a part of the memory isn't there. */
	if ((uint64_t)n != len + sizeof(proof))
		return -EFAULT;
	return proof == link->nonce ? 0 : -ESTALE;
}

bool tq_peer_memory_try(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	int error;

	tq_assert_held(net->lock);
	if (contact->memory != TQ_MEMORY_UNKNOWN || tq_link_has_failed(link) ||
	    !tq_outbox_attach(net, link))
		return contact->memory == TQ_MEMORY_READABLE;
	tq_outbox_owner(link, &contact->pid, &contact->proof);
	/* No process has an id of 0 or less. */
	error = contact->pid > 0 ? read_proven(link, NULL, 0, 0) : -ESRCH;
	if (error)
		refuse(net, link,
		       error == -ESTALE || error == -EFAULT || error == -ESRCH ? not_its_id
									       : strerror(-error));
	else
		contact->memory = TQ_MEMORY_READABLE;
	return !error;
}

int tq_peer_memory_copy(struct tq_net *net, struct tq_link *link, void *to, uint64_t addr,
			uint64_t len)
{
	int error;

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link) || tq_inbox_is_cut(link) || !tq_peer_memory_try(net, link))
		return -EIO;
	error = read_proven(link, to, addr, len);
	if (error == -EPERM || error == -ENOSYS)
		refuse(net, link, strerror(-error));
	else if (error == -ESTALE)
		refuse(net, link, not_its_id);
	/* Where the link has failed at the sender's end its user may have written to that memory
	 * since. */
	return error || tq_inbox_is_cut(link) ? -EIO : 0;
}
