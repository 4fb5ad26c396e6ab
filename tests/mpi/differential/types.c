#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 12 };

static void append(Type* type, long at, long length) {
  if (length == 0) return;
  Piece* last = type->count ? &type->pieces[type->count - 1] : NULL;
  if (last && last->at + last->length == at) {
    last->length += length;
  } else {
    if ((type->count & (type->count - 1)) == 0)
      type->pieces =
          realloc(type->pieces, (size_t)(type->count ? 2 * type->count : 1) * sizeof(Piece));
    type->pieces[type->count++] = (Piece){at, length, type->size};
  }
  type->size += length;
}

/* Bounds of a type under construction. */
typedef struct {
  long lb, ub;
  int any;
} Bounds;

static void place(Type* type, Bounds* bounds, const Type* child, long at, long repetitions) {
  for (long i = 0; i < repetitions; i++)
    for (long k = 0; k < child->count; k++)
      append(type, at + i * child->extent + child->pieces[k].at, child->pieces[k].length);
  if (repetitions == 0) return;
  long low = at + child->lb, high = at + child->lb + repetitions * child->extent;
  if (!bounds->any || low < bounds->lb) bounds->lb = low;
  if (!bounds->any || high > bounds->ub) bounds->ub = high;
  bounds->any = 1;
}

static Type finish_type(Type type, const Bounds* bounds, MPI_Datatype handle) {
  type.lb = bounds->lb;
  type.extent = bounds->ub - bounds->lb;
  type.handle = handle;
  MPI_Type_commit(&type.handle);
  return type;
}

Type type_of(MPI_Datatype predefined, long size) {
  Type type = {0};
  append(&type, 0, size);
  type.handle = predefined;
  type.extent = size;
  type.predefined = 1;
  return type;
}

Type twin(const Type* type) {
  Type made = *type;
  made.pieces = malloc((size_t)(type->count ? 2 * type->count : 1) * sizeof(Piece));
  memcpy(made.pieces, type->pieces, (size_t)type->count * sizeof(Piece));
  MPI_Type_dup(type->handle, &made.handle);
  made.predefined = 0;
  return made;
}

void free_type(Type* type) {
  if (!type->predefined) MPI_Type_free(&type->handle);
  free(type->pieces);
  memset(type, 0, sizeof *type);
}

Type nothing_of(const Type* leaf) {
  Type type = {0};
  Bounds bounds = {0};
  MPI_Type_contiguous(0, leaf->handle, &type.handle);
  return finish_type(type, &bounds, type.handle);
}

static Type make_contiguous(Random* random, const Type* child) {
  Type type = {0};
  Bounds bounds = {0};
  int n = (int)between(random, 1, 5);
  place(&type, &bounds, child, 0, n);
  MPI_Type_contiguous(n, child->handle, &type.handle);
  return finish_type(type, &bounds, type.handle);
}

/* vector or hvector; in memory the stride may be negative. */
static Type make_vector(Random* random, const Type* child, const Type* leaf, int where) {
  Type type = {0};
  Bounds bounds = {0};
  int n = (int)between(random, 1, 6), length = (int)between(random, 1, 4),
      in_bytes = chance(random, 50) || child->extent == 0;
  long stride = in_bytes ? length * child->extent + leaf->extent * between(random, 0, 5)
                         : (length + between(random, 0, 3)) * child->extent;
  if (where == kInMemory && chance(random, 20) && stride > 1)
    stride = -stride; /* -1 byte has a special meaning in Open MPI */
  for (int i = 0; i < n; i++) place(&type, &bounds, child, i * stride, length);
  if (in_bytes) {
    MPI_Type_create_hvector(n, length, stride, child->handle, &type.handle);
  } else {
    MPI_Type_vector(n, length, (int)(stride / child->extent), child->handle, &type.handle);
  }
  return finish_type(type, &bounds, type.handle);
}

static void shuffle(Random* random, int n, int* lengths, MPI_Aint* places) {
  for (int i = n - 1; i > 0; i--) {
    int j = (int)between(random, 0, i), length = lengths[i];
    MPI_Aint at = places[i];
    lengths[i] = lengths[j], places[i] = places[j];
    lengths[j] = length, places[j] = at;
  }
}

/* indexed, hindexed, indexed_block, hindexed_block; blocks may be empty, and in any order in
 * memory. */
static Type make_indexed(Random* random, const Type* child, const Type* leaf, int where) {
  Type type = {0};
  Bounds bounds = {0};
  int n = (int)between(random, 1, kBlocks), kind = (int)between(random, 0, 3),
      equal = (int)between(random, 1, 3), whole = kind == 0 || kind == 2;
  int lengths[kBlocks], displacements[kBlocks];
  MPI_Aint places[kBlocks], next = 0;
  for (int i = 0; i < n; i++) {
    lengths[i] = kind >= 2 ? equal : chance(random, 15) && n > 1 ? 0 : (int)between(random, 1, 4);
    next += (whole ? child->extent : leaf->extent) * between(random, 0, 4);
    places[i] = next;
    next += lengths[i] * child->extent;
  }
  if (where == kInMemory && chance(random, 50)) shuffle(random, n, lengths, places);
  for (int i = 0; i < n; i++) {
    place(&type, &bounds, child, places[i], lengths[i]);
    displacements[i] = child->extent ? (int)(places[i] / child->extent) : 0;
  }
  if (kind == 0) MPI_Type_indexed(n, lengths, displacements, child->handle, &type.handle);
  if (kind == 1) MPI_Type_create_hindexed(n, lengths, places, child->handle, &type.handle);
  if (kind == 2)
    MPI_Type_create_indexed_block(n, equal, displacements, child->handle, &type.handle);
  if (kind == 3) MPI_Type_create_hindexed_block(n, equal, places, child->handle, &type.handle);
  return finish_type(type, &bounds, type.handle);
}

/* Structures of two kinds of members, with an explicit extent (an MPI may round a computed one). */
static Type make_structure(Random* random, const Type* child, const Type* leaf, int where) {
  Type type = {0};
  Bounds bounds = {0};
  int n = (int)between(random, 1, 5), lengths[kBlocks];
  MPI_Aint places[kBlocks], next = 0;
  MPI_Datatype handles[kBlocks], made;
  const Type* members[kBlocks];
  for (int i = 0; i < n; i++) {
    members[i] = chance(random, 50) ? child : leaf;
    lengths[i] = (int)between(random, 1, 3);
    next += leaf->extent * between(random, 0, 4);
    places[i] = next - members[i]->lb;
    next += lengths[i] * members[i]->extent;
    handles[i] = members[i]->handle;
  }
  if (where == kInMemory && n > 1 && chance(random, 50)) {
    const Type* member = members[0];
    int length = lengths[0];
    MPI_Aint at = places[0];
    members[0] = members[n - 1], lengths[0] = lengths[n - 1], places[0] = places[n - 1],
    handles[0] = handles[n - 1];
    members[n - 1] = member, lengths[n - 1] = length, places[n - 1] = at,
                handles[n - 1] = member->handle;
  }
  for (int i = 0; i < n; i++) place(&type, &bounds, members[i], places[i], lengths[i]);
  MPI_Type_create_struct(n, lengths, places, handles, &made);
  MPI_Type_create_resized(made, bounds.lb, bounds.ub - bounds.lb, &type.handle);
  MPI_Type_free(&made);
  return finish_type(type, &bounds, type.handle);
}

static Type make_resized(Random* random, const Type* child, const Type* leaf, int where) {
  Type type = {0};
  Bounds bounds = {0};
  place(&type, &bounds, child, 0, 1);
  bounds.ub += leaf->extent * between(random, 0, 6);
  if (where == kInMemory && chance(random, 50)) bounds.lb -= leaf->extent * between(random, 0, 6);
  MPI_Type_create_resized(child->handle, bounds.lb, bounds.ub - bounds.lb, &type.handle);
  return finish_type(type, &bounds, type.handle);
}

/* Appends the elements of an array that have all indices in the given lists; row-major. */
static void place_array(Type* type, const Type* leaf, int dimensions, const int* sizes,
                        int* const* indices, const int* counts) {
  long total = 1, base[4] = {0};
  for (int d = 0; d < dimensions; d++) total *= counts[d];
  for (long k = 0; k < total; k++) {
    long rest = k, element = 0, factor = 1;
    for (int d = dimensions - 1; d >= 0; d--) {
      base[d] = indices[d][rest % counts[d]];
      rest /= counts[d];
      element += base[d] * factor;
      factor *= sizes[d];
    }
    for (long p = 0; p < leaf->count; p++)
      append(type, element * leaf->extent + leaf->pieces[p].at, leaf->pieces[p].length);
  }
}

/* Copies dimensions in reverse order, for Fortran's order. */
static void reverse_order(int n, const int* from, int* to) {
  for (int d = 0; d < n; d++) to[d] = from[n - 1 - d];
}

static Type make_subarray(Random* random, const Type* leaf) {
  Type type = {0};
  int n = (int)between(random, 1, 4), sizes[4], counts[4], starts[4], turned[3][4],
      fortran = chance(random, 40), *indices[4];
  long all = leaf->extent;
  for (int d = 0; d < n; d++) {
    sizes[d] = (int)between(random, 1, n > 2 ? 6 : 20);
    counts[d] = (int)between(random, 1, sizes[d]);
    starts[d] = (int)between(random, 0, sizes[d] - counts[d]);
    indices[d] = malloc((size_t)counts[d] * sizeof(int));
    for (int i = 0; i < counts[d]; i++) indices[d][i] = starts[d] + i;
    all *= sizes[d];
  }
  place_array(&type, leaf, n, sizes, indices, counts);
  for (int d = 0; d < n; d++) free(indices[d]);
  reverse_order(n, sizes, turned[0]), reverse_order(n, counts, turned[1]),
      reverse_order(n, starts, turned[2]);
  if (fortran) {
    MPI_Type_create_subarray(n, turned[0], turned[1], turned[2], MPI_ORDER_FORTRAN, leaf->handle,
                             &type.handle);
  } else {
    MPI_Type_create_subarray(n, sizes, counts, starts, MPI_ORDER_C, leaf->handle, &type.handle);
  }
  return finish_type(type, &(Bounds){0, all, 1}, type.handle);
}

Type random_type(Random* random, const Type* leaf, int where, int depth) {
  if (depth <= 0) return twin(leaf);
  Type child = random_type(random, leaf, where, depth - (int)between(random, 1, 2)), type;
  switch (between(random, 0, 6)) {
    case 0:
      type = make_contiguous(random, &child);
      break;
    case 1:
      type = make_vector(random, &child, leaf, where);
      break;
    case 2:
      type = make_indexed(random, &child, leaf, where);
      break;
    case 3:
      type = make_structure(random, &child, leaf, where);
      break;
    case 4:
      type = make_resized(random, &child, leaf, where);
      break;
    case 5:
      type = child.lb == 0 && child.count < 40 ? make_subarray(random, leaf)
                                               : make_contiguous(random, &child);
      break;
    default:
      type = twin(&child);
      break;
  }
  free_type(&child);
  return type;
}

Type random_part(Random* random, const Type* leaf, int ranks, int rank) {
  Type type = {0};
  Bounds bounds = {0, 0, 1};
  int blocks = (int)between(random, 1, 40), largest = (int)between(random, 1, 60),
      holes = chance(random, 40) ? (int)between(random, 5, 60) : 0, n = 0;
  int lengths[40], displacements[40], next = 0;
  for (int i = 0; i < blocks; i++) {
    int length = (int)between(random, 1, largest), owner = (int)between(random, 0, ranks - 1);
    if (!chance(random, holes) && owner == rank) {
      lengths[n] = length;
      displacements[n++] = next;
      place(&type, &bounds, leaf, next * leaf->extent, length);
    }
    next += length;
  }
  MPI_Datatype made;
  MPI_Type_indexed(n, lengths, displacements, leaf->handle, &made);
  bounds.ub = next * leaf->extent;
  MPI_Type_create_resized(made, 0, bounds.ub, &type.handle);
  MPI_Type_free(&made);
  return finish_type(type, &bounds, type.handle);
}

/* Lists the indices of a process in one dimension of a darray; returns their number. */
static int list_owned(int size, int distribution, int block, int processes, int coordinate,
                      int* indices) {
  int n = 0;
  for (int i = 0; i < size; i++)
    if (distribution == MPI_DISTRIBUTE_NONE || (i / block) % processes == coordinate)
      indices[n++] = i;
  return n;
}

Type random_block(Random* random, const Type* leaf, int ranks, int rank, int cyclic_blocks) {
  Type type = {0};
  int n = (int)between(random, 1, 3), sizes[4], kinds[4], arguments[4], processes[4] = {0},
      counts[4], coordinate[4], *indices[4], rest = rank;
  long all = leaf->extent;
  for (int d = 0; d < n; d++)
    kinds[d] = (int)between(random, 0, 2), sizes[d] = (int)between(random, 1, n == 3 ? 12 : 40);
  kinds[between(random, 0, n - 1)] = 1;
  for (int d = 0; d < n; d++) processes[d] = kinds[d] == 0 ? 1 : 0;
  MPI_Dims_create(ranks, n, processes);
  for (int d = n - 1; d >= 0; d--) coordinate[d] = rest % processes[d], rest /= processes[d];
  for (int d = 0; d < n; d++) {
    int even = (sizes[d] + processes[d] - 1) / processes[d], cyclic = (int)between(random, 1, 4),
        plain = chance(random, 50) || !cyclic_blocks;
    int block = kinds[d] == 1 ? even : plain ? 1 : cyclic;
    arguments[d] = kinds[d] == 2 && !plain ? cyclic : MPI_DISTRIBUTE_DFLT_DARG;
    kinds[d] = kinds[d] == 0   ? MPI_DISTRIBUTE_NONE
               : kinds[d] == 1 ? MPI_DISTRIBUTE_BLOCK
                               : MPI_DISTRIBUTE_CYCLIC;
    indices[d] = malloc((size_t)sizes[d] * sizeof(int));
    counts[d] = list_owned(sizes[d], kinds[d], block, processes[d], coordinate[d], indices[d]);
    all *= sizes[d];
  }
  place_array(&type, leaf, n, sizes, indices, counts);
  for (int d = 0; d < n; d++) free(indices[d]);
  MPI_Type_create_darray(ranks, rank, n, sizes, kinds, arguments, processes, MPI_ORDER_C,
                         leaf->handle, &type.handle);
  return finish_type(type, &(Bounds){0, all, 1}, type.handle);
}

long byte_at(const Type* type, long k) {
  long at = k / type->size * type->extent;
  k %= type->size;
  long low = 0, high = type->count - 1; /* find the last piece that begins at or before k */
  while (low < high) {
    long middle = (low + high + 1) / 2;
    if (type->pieces[middle].before <= k) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return at + type->pieces[low].at + k - type->pieces[low].before;
}

void span(const Type* type, long count, long* first, long* end) {
  *first = *end = 0;
  if (count == 0 || type->count == 0) return;
  long low = type->pieces[0].at, high = low;
  for (long i = 0; i < type->count; i++) {
    if (type->pieces[i].at < low) low = type->pieces[i].at;
    if (type->pieces[i].at + type->pieces[i].length > high)
      high = type->pieces[i].at + type->pieces[i].length;
  }
  *first = low;
  *end = high + (count - 1) * type->extent;
}

/* Packs bytes that hold their own offsets (the lowest byte, the next, ...) and compares the result
 * with the model. */
static int packs_alike(const Type* type) {
  enum { kTimes = 2 };
  long first, end, wrong = 0;
  span(type, kTimes, &first, &end);
  unsigned char *image = malloc((size_t)(end - first) + 1),
                *packed = malloc((size_t)(kTimes * type->size) + 1);
  for (int shift = 0; shift < 24; shift += 8) {
    int position = 0;
    for (long i = first; i < end; i++) image[i - first] = (unsigned char)((i - first) >> shift);
    MPI_Pack(image - first, kTimes, type->handle, packed, (int)(kTimes * type->size), &position,
             MPI_COMM_SELF);
    for (long k = 0; k < kTimes * type->size; k++)
      wrong += packed[k] != (unsigned char)((byte_at(type, k) - first) >> shift);
  }
  free(image);
  free(packed);
  if (wrong) fprintf(stderr, "MPI_Pack takes %ld bytes from elsewhere than the model\n", wrong);
  return wrong == 0;
}

int agrees(const Type* type) {
  MPI_Aint lb, extent;
  MPI_Count size;
  MPI_Type_get_extent(type->handle, &lb, &extent);
  MPI_Type_size_x(type->handle, &size);
  if (size == type->size && (size == 0 || (lb == type->lb && extent == type->extent)))
    return type->size > 1 << 20 || packs_alike(type);
  fprintf(stderr, "MPI says size %lld, lb %ld, extent %ld, the model %ld, %ld, %ld\n",
          (long long)size, (long)lb, (long)extent, type->size, type->lb, type->extent);
  return 0;
}
