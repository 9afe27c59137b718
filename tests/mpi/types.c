/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types.c - types [derived|pieces|truncation]: derived datatypes on either side, with holes that
 * must stay as they were; types of so few pieces that the adapter may gather and scatter them;
 * messages longer than their receives. Two ranks or more.
 */
#include "check.h"

enum { TAG = 6, SPACE = 1 << 20 };

static unsigned char *out, *in, *packed_out, *packed_in, *expected;
static unsigned int seq;

/* Packs count items in their order, by Open MPI's own pack, which sends nothing. */
static int pack(const void *buf, int count, MPI_Datatype type, unsigned char *to)
{
	int at = 0;

	MPI_Pack(buf, count, type, to, SPACE, &at, MPI_COMM_SELF);
	return at;
}

/*
 * Sends count items of a type and receives them as count items of another type with the same
 * signature. Bytes that don't belong to the type must not change.
 */
static void exchange(MPI_Datatype stype, int scount, MPI_Datatype rtype, int rcount, bool late)
{
	int bytes, size, count, at = 0;
	struct t_msg mine = {t_rank, TAG, seq}, theirs = {t_left, TAG, seq};
	MPI_Request req, sreq;
	MPI_Status st;

	MPI_Type_size(stype, &size);
	bytes = size * scount;
	t_true(bytes <= SPACE, "%d bytes", bytes);
	memset(out, 0x11, SPACE);
	t_fill(packed_out, (size_t)bytes, mine);
	MPI_Unpack(packed_out, bytes, &at, out, scount, stype, MPI_COMM_SELF);

	memset(in, 0xee, SPACE);
	memset(expected, 0xee, SPACE);
	t_fill(packed_in, (size_t)bytes, theirs);
	at = 0;
	MPI_Unpack(packed_in, bytes, &at, expected, rcount, rtype, MPI_COMM_SELF);

	if (late) {
		MPI_Isend(out, scount, stype, t_right, TAG, MPI_COMM_WORLD, &sreq);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Irecv(in, rcount, rtype, t_left, TAG, MPI_COMM_WORLD, &req);
	} else {
		MPI_Irecv(in, rcount, rtype, t_left, TAG, MPI_COMM_WORLD, &req);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Isend(out, scount, stype, t_right, TAG, MPI_COMM_WORLD, &sreq);
	}
	MPI_Wait(&req, &st);
	MPI_Wait(&sreq, MPI_STATUS_IGNORE);
	t_eq(st.MPI_SOURCE, t_left);
	t_eq(st.MPI_TAG, TAG);
	MPI_Get_count(&st, rtype, &count);
	t_eq(count, bytes ? rcount : 0);
	t_eq(pack(in, rcount, rtype, packed_in), bytes);
	t_verify(packed_in, (size_t)bytes, theirs);
	if (memcmp(in, expected, SPACE) != 0)
		t_fail("a hole of the type was written");
	seq++;
}

struct mixed {
	char c;
	double d;
	short s[3];
	int i;
};

static MPI_Datatype mixed_type(void)
{
	int length[] = {1, 1, 3, 1};
	MPI_Aint at[] = {offsetof(struct mixed, c), offsetof(struct mixed, d),
			 offsetof(struct mixed, s), offsetof(struct mixed, i)};
	MPI_Datatype of[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT}, tmp, type;

	MPI_Type_create_struct(4, length, at, of, &tmp);
	MPI_Type_create_resized(tmp, 0, sizeof(struct mixed), &type);
	MPI_Type_free(&tmp);
	return type;
}

static MPI_Datatype subarray_type(void)
{
	int whole[] = {40, 60}, part[] = {20, 16}, from[] = {5, 7};
	MPI_Datatype type;

	MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, MPI_INT, &type);
	return type;
}

/* Exchanges 320 ints as each pair of types: contiguous, strided, scattered, a part of a matrix. */
static void same_signature(void)
{
	static const char *const name[] = {"contiguous", "vector", "indexed", "subarray"};
	int length[20], at[20], i, k, count;
	MPI_Datatype type[4];

	for (i = 0; i < 20; i++) {
		length[i] = i % 2 ? 31 : 1;
		at[i] = 40 * ((i * 7) % 20); /* not in rising order */
	}
	MPI_Type_contiguous(320, MPI_INT, &type[0]);
	MPI_Type_vector(80, 4, 7, MPI_INT, &type[1]);
	MPI_Type_indexed(20, length, at, MPI_INT, &type[2]);
	type[3] = subarray_type();
	for (i = 0; i < 4; i++)
		MPI_Type_commit(&type[i]);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			t_begin("types: %s to %s", name[i], name[k]);
			for (count = 0; count <= 64; count = count ? 4 * count : 1) {
				exchange(type[i], count, type[k], count, false);
				exchange(type[i], count, type[k], count, true);
			}
			t_end();
		}
	t_begin("types: derived to predefined and back");
	for (count = 1; count <= 64; count *= 4) {
		exchange(type[1], count, MPI_INT, 320 * count, false);
		exchange(MPI_INT, 320 * count, type[2], count, true);
	}
	t_end();
	for (i = 0; i < 4; i++)
		MPI_Type_free(&type[i]);
}

static void one_type(const char *name, MPI_Datatype type, int max)
{
	int count;

	t_begin("types: %s", name);
	MPI_Type_commit(&type);
	for (count = 0; count <= max; count = count ? 5 * count : 1) {
		exchange(type, count, type, count, false);
		exchange(type, count, type, count, true);
	}
	MPI_Type_free(&type);
	t_end();
}

static void others(void)
{
	int blocks[] = {3, 0, 5, 1}, at[] = {9, 0, 2, 7};
	MPI_Datatype type, inner;

	one_type("struct with holes", mixed_type(), 3125);
	inner = mixed_type();
	MPI_Type_vector(5, 2, 3, inner, &type);
	MPI_Type_free(&inner);
	one_type("vector of structs", type, 625);
	MPI_Type_create_hvector(50, 1, 24, MPI_DOUBLE, &type);
	one_type("hvector with a stride of 24 bytes", type, 125);
	MPI_Type_indexed(4, blocks, at, MPI_CHAR, &type);
	one_type("indexed chars, some blocks empty", type, 3125);
	MPI_Type_create_resized(MPI_INT, 0, 12, &type);
	one_type("int, resized", type, 15625);
	MPI_Type_contiguous(0, MPI_INT, &type);
	one_type("empty", type, 5);
	MPI_Type_dup(MPI_DOUBLE_INT, &type);
	one_type("MPI_DOUBLE_INT", type, 3125);
	MPI_Type_dup(MPI_SHORT_INT, &type);
	one_type("MPI_SHORT_INT", type, 3125);
	MPI_Type_dup(MPI_LONG_INT, &type);
	one_type("MPI_LONG_INT", type, 3125);
	MPI_Type_dup(MPI_LONG_DOUBLE_INT, &type);
	one_type("MPI_LONG_DOUBLE_INT", type, 3125);
}

/* Returns a type of `bytes` bytes in n pieces. */
static MPI_Datatype pieces_type(int n, int bytes)
{
	MPI_Datatype type;

	MPI_Type_vector(n, bytes / n, 2 * bytes / n, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	return type;
}

/* Exchanges each type with each other, in time and late. Some elements touch each other and some
 * don't. */
static void few_pieces(int bytes)
{
	static const int n[] = {1, 2, 3, 6};
	MPI_Datatype type[4];
	int i, k;

	t_begin("types: few pieces, %d bytes in all", bytes);
	for (i = 0; i < 4; i++)
		type[i] = pieces_type(n[i], bytes);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			exchange(type[i], 1, type[k], 1, false);
			exchange(type[i], 1, type[k], 1, true);
		}
	for (i = 0; i < 4; i++) {
		exchange(type[2], 2, type[1], 2, i % 2);
		exchange(type[1], 3, type[0], 3, i % 2);
		exchange(type[0], 5, type[1], 5, i % 2);
	}
	for (i = 0; i < 4; i++)
		MPI_Type_free(&type[i]);
	t_end();
}

/* Sends more pieces than the adapter takes, between messages of fewer. */
static void too_many_pieces(void)
{
	MPI_Datatype few = pieces_type(2, 24000), many = pieces_type(40, 24000);
	int i;

	t_begin("types: few pieces and many by turns");
	for (i = 0; i < 40; i++)
		exchange(i % 5 ? few : many, 1, i % 7 ? few : many, 1, i % 3 == 2);
	MPI_Type_free(&few);
	MPI_Type_free(&many);
	t_end();
}

/* Sends pieces in different allocations, the later one first. */
static void absolute_addresses(void)
{
	enum { LONG = 30000, SHORT = 5000 };
	unsigned char *a = t_alloc(LONG), *b = t_alloc(SHORT), *c = t_alloc(LONG), *d;
	int length[] = {LONG, SHORT, LONG}, round;
	MPI_Datatype type, of[] = {MPI_BYTE, MPI_BYTE, MPI_BYTE};
	MPI_Aint at[3];
	MPI_Status st;

	t_begin("types: addresses in different buffers");
	d = t_alloc(2 * LONG + SHORT);
	MPI_Get_address(c, &at[0]);
	MPI_Get_address(b, &at[1]);
	MPI_Get_address(a, &at[2]);
	MPI_Type_create_struct(3, length, at, of, &type);
	MPI_Type_commit(&type);
	for (round = 0; round < 16; round++, seq++) {
		struct t_msg m = {t_rank, TAG, seq};

		if (round % 2) {
			t_fill(d, 2 * LONG + SHORT, m);
			MPI_Sendrecv(d, 2 * LONG + SHORT, MPI_BYTE, t_right, TAG, MPI_BOTTOM, 1,
				     type, t_left, TAG, MPI_COMM_WORLD, &st);
			memcpy(d, c, LONG);
			memcpy(d + LONG, b, SHORT);
			memcpy(d + LONG + SHORT, a, LONG);
		} else {
			t_fill(d, 2 * LONG + SHORT, m);
			memcpy(c, d, LONG);
			memcpy(b, d + LONG, SHORT);
			memcpy(a, d + LONG + SHORT, LONG);
			MPI_Sendrecv(MPI_BOTTOM, 1, type, t_right, TAG, d, 2 * LONG + SHORT,
				     MPI_BYTE, t_left, TAG, MPI_COMM_WORLD, &st);
		}
		t_status(&st, t_left, TAG, 2 * LONG + SHORT);
		m.src = t_left;
		t_verify(d, 2 * LONG + SHORT, m);
	}
	MPI_Type_free(&type);
	free(a);
	free(b);
	free(c);
	free(d);
	t_end();
}

static void pieces(void)
{
	long long gathered;

	t_count("pml_tupleq_sent_gathered");
	few_pieces(24000);
	few_pieces(90000);
	few_pieces(240);
	absolute_addresses();
	gathered = t_counted();
	t_begin("types: few pieces aren't copied");
	if (t_is_counting())
		t_true(gathered > 0, "the adapter has gathered none");
	t_end();
	too_many_pieces();
}

/* Receives a long message into a short buffer: an error, the first bytes, and later messages
 * work. */
static void truncated(int sent, int posted, bool early, bool wild)
{
	MPI_Request req, sreq;
	MPI_Status st;
	int rc, class, i;

	for (i = 0; i < 4; i++, seq++) {
		int n = i % 2 ? posted : sent; /* every second message fits */

		memset(in, 0xee, SPACE);
		t_fill(out, (size_t)n, (struct t_msg){t_rank, TAG, seq});
		if (!early) {
			MPI_Isend(out, n, MPI_BYTE, t_right, TAG, MPI_COMM_WORLD, &sreq);
			MPI_Barrier(MPI_COMM_WORLD);
		}
		rc = MPI_Irecv(in, posted, MPI_BYTE, wild ? MPI_ANY_SOURCE : t_left, TAG,
			       MPI_COMM_WORLD, &req);
		t_eq(rc, MPI_SUCCESS);
		if (early) {
			MPI_Barrier(MPI_COMM_WORLD);
			MPI_Isend(out, n, MPI_BYTE, t_right, TAG, MPI_COMM_WORLD, &sreq);
		}
		rc = MPI_Wait(&req, &st);
		MPI_Error_class(rc, &class);
		t_eq(class, n > posted ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
		t_eq(MPI_Wait(&sreq, MPI_STATUS_IGNORE), MPI_SUCCESS);
		t_eq(st.MPI_SOURCE, t_left);
		t_eq(st.MPI_TAG, TAG);
		if (n <= posted)
			t_verify(in, (size_t)n, (struct t_msg){t_left, TAG, seq});
		t_untouched(in + posted, 100000, 0xee);
	}
}

static void truncation(void)
{
	static const int size[][2] = {{1, 0},         {100, 99},     {8, 4},
				      {4096, 1},      {4097, 4096},  {20000, 0},
				      {20000, 19999}, {500000, 100}, {500000, 400000}};
	size_t i;
	int round;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		t_begin("truncation: %d bytes into %d", size[i][0], size[i][1]);
		for (round = 0; round < 8; round++)
			truncated(size[i][0], size[i][1], round & 1, round & 2);
		t_end();
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	const char *only;

	t_init(&argc, &argv, 2);
	only = argc > 1 ? argv[1] : "";
	out = t_alloc(SPACE);
	in = t_alloc(SPACE);
	packed_out = t_alloc(SPACE);
	packed_in = t_alloc(SPACE);
	expected = t_alloc(SPACE);
	if (!*only || !strcmp(only, "derived")) {
		same_signature();
		others();
	}
	if (!*only || !strcmp(only, "pieces"))
		pieces();
	if (!*only || !strcmp(only, "truncation"))
		truncation();
	free(out);
	free(in);
	free(packed_out);
	free(packed_in);
	free(expected);
	return t_finish();
}
