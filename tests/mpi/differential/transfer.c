/* One step: the same routine on all ranks, each with its own offset, count and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

enum { kMostOutstanding = 3, kGuard = 64 };

/* One rank's part of one access. */
typedef struct {
  Type memory;
  long count, bytes; /* instances of the memory type; total bytes */
  long first;        /* byte offset in the view */
  uint64_t seed;
} Part;

/* This rank's buffer of a part. */
typedef struct {
  unsigned char *image, *before;
  long size, first;
  MPI_Request request;
  MPI_Status status;
} Buffer;

/* Most calls of a series are blocking collective ones of its direction. */
static void limit_to_series(Case* at, Routine* routine) {
  if ((routine->place == kShared || at->in_order) && !has_mode(at, MPI_MODE_SEQUENTIAL))
    routine->place = kIndividual;
  routine->ending = kBlocking;
  routine->write = at->writes ^ chance(&at->random, 4);
  routine->collective = !chance(&at->random, 4);
}

static Routine draw_routine(Case* at) {
  Random* random = &at->random;
  const Features* features = &at->features;
  Routine routine = {0};
  routine.write = chance(random, 55);
  routine.place =
      (int)between(random, kExplicit, at->same_view && features->shared ? kShared : kIndividual);
  if (has_mode(at, MPI_MODE_SEQUENTIAL)) routine.place = kShared;
  routine.collective = chance(random, 65);
  routine.ending = (int)between(random, kBlocking, kSplit);
  if (routine.ending == kSplit && (!routine.collective || !features->split))
    routine.ending = kBlocking;
  if (routine.ending == kNonblocking &&
      (!features->nonblocking || (routine.place == kShared && routine.collective)))
    routine.ending = kBlocking;
  if (at->in_series) limit_to_series(at, &routine);
  if (has_mode(at, MPI_MODE_RDONLY | MPI_MODE_WRONLY))
    routine.write = has_mode(at, MPI_MODE_WRONLY);
  routine.large = MPI_VERSION >= 4 && features->large && chance(random, 20);
  return routine;
}

static void draw_memory(Case* at, Part* part, const View* view, int rank) {
  Random* random = &at->random;
  part->memory = chance(random, at->in_series ? 95 : 50)
                     ? twin(&at->leaf_type)
                     : random_type(random, &at->leaf_type, kInMemory, (int)between(random, 1, 3));
  long most = at->in_series        ? 800
              : chance(random, 5)  ? 400000
              : chance(random, 30) ? 20000
                                   : 800,
       whole = view->etype.size / at->leaf;
  long unit = part->memory.size * whole; /* to transfer whole etypes */
  part->count = part->memory.size && view->filetype.size
                    ? between(random, 0, most / unit > 0 ? most / unit : 1) * whole
                    : 0;
  if (at->in_series ? chance(random, at->silent[rank] ? 95 : 2) : chance(random, 10))
    part->count = 0;
}

/* Returns 1 if all ranks know the end of the file. */
static int knows_end(const Case* at, const Routine* routine) {
  return at->model.synced_size == at->model.size || routine->collective || !at->model.merges;
}

/* Returns how many of the bytes of a part are certain to be there. */
static long certain(const Case* at, const Routine* routine, const Part* part, const View* view) {
  Model model = at->model;
  if (!knows_end(at, routine)) model.size = model.synced_size;
  return readable(&model, view, at->leaf, part->first, part->bytes);
}

/* Chooses the offset of a rank's access and advances the file pointer beyond it. */
static void draw_place(Case* at, const Routine* routine, Part* part, View* view) {
  long etype = view->etype.size, drawn = between(&at->random, 0, 60);
  long* pointer = routine->place == kShared ? &at->shared : &view->position;
  part->first = (routine->place == kExplicit ? drawn : *pointer) * etype;
  part->bytes = part->count * part->memory.size;
  if (!routine->write) {
    int may_end = at->features.eof && routine->place != kShared && knows_end(at, routine);
    if (!may_end && (!view->filetype.size || certain(at, routine, part, view) < part->bytes))
      part->count = part->bytes = 0;
  }
  if (routine->place != kExplicit) *pointer += part->bytes / etype;
}

static void draw_parts(Case* at, const Routine* routine, Part* parts, int access) {
  for (int r = 0; r < at->ranks; r++) {
    draw_memory(at, &parts[r], &at->views[r], r);
    draw_place(at, routine, &parts[r], &at->views[r]);
    parts[r].seed = mix_bits(
        at->seed ^ mix_bits(((uint64_t)at->calls << 20) + ((uint64_t)access << 10) + (uint64_t)r));
  }
}

static void make_buffer(const Routine* routine, const Part* part, Buffer* buffer) {
  long first, end;
  span(&part->memory, part->count, &first, &end);
  buffer->first = first - kGuard;
  buffer->size = end - first + 2 * kGuard;
  buffer->image = malloc((size_t)buffer->size);
  buffer->before = malloc((size_t)buffer->size);
  for (long i = 0; i < buffer->size; i++) buffer->image[i] = value(part->seed ^ 0x5555, i);
  if (routine->write)
    for (long i = 0; i < part->bytes; i++)
      buffer->image[byte_at(&part->memory, i) - buffer->first] = value(part->seed, i);
  memcpy(buffer->before, buffer->image, (size_t)buffer->size);
  memset(&buffer->status, 0, sizeof buffer->status);
}

/* Puts the expected bytes of a read into the earlier image of the buffer; unknown bytes are copied
 * from the result. Returns the expected number of bytes. */
static long expect(const Case* at, const Routine* routine, const Part* part, Buffer* buffer) {
  const View* view = &at->views[at->rank];
  long got =
      view->filetype.size ? readable(&at->model, view, at->leaf, part->first, part->bytes) : 0;
  for (long i = 0; i < part->bytes; i++) {
    long in_memory = byte_at(&part->memory, i) - buffer->first,
         in_file = file_byte(view, part->first + i, at->leaf);
    buffer->before[in_memory] = i < got && is_known(at, in_file, at->rank, routine->collective)
                                    ? at->model.bytes[in_file]
                                    : buffer->image[in_memory];
  }
  return got;
}

static void check(Case* at, const Routine* routine, const Part* part, Buffer* buffer) {
  long moved = routine->write ? part->bytes : expect(at, routine, part, buffer), wrong = 0,
       first = -1;
  for (long i = 0; i < buffer->size; i++)
    if (buffer->image[i] != buffer->before[i] && wrong++ == 0) first = i;
  if (wrong)
    report(at,
           "%s of %ld bytes from byte %ld of the view: %ld bytes of the buffer are wrong, first "
           "%ld of %ld: %02x for %02x",
           name_of(routine), part->bytes, part->first, wrong, first + buffer->first,
           buffer->size - 2 * kGuard, buffer->image[first], buffer->before[first]);
  int count = -1;
  MPI_Get_count(&buffer->status, MPI_BYTE, &count);
  if (at->features.status && count != moved)
    report(at, "%s of %ld bytes from byte %ld of the view: the status has %d bytes, not %ld",
           name_of(routine), part->bytes, part->first, count, moved);
  free(buffer->image);
  free(buffer->before);
}

static void start(Case* at, const Routine* routine, const Part* part, Buffer* buffer) {
  const View* view = &at->views[at->rank];
  Call call = {at->file, part->first / view->etype.size, buffer->image - buffer->first, part->count,
               part->memory.handle};
  doing = name_of(routine);
  good(at, start_access(routine, &call, &buffer->request, &buffer->status), doing);
  if (routine->ending == kSplit)
    good(at, end_access(routine, &call, &buffer->status), "the end of a split collective");
}

static void finish(Case* at, const Routine* routine, Buffer* buffers, int accesses) {
  if (routine->ending != kNonblocking) return;
  doing = "MPI_Wait";
  for (int k = accesses - 1; k >= 0; k--) {
    if (chance(&(Random){at->seed + (uint64_t)k}, 50)) {
      int done = 0;
      while (!done) good(at, MPI_Test(&buffers[k].request, &done, &buffers[k].status), "MPI_Test");
    } else {
      good(at, MPI_Wait(&buffers[k].request, &buffers[k].status), "MPI_Wait");
    }
  }
}

/* Runs unordered accesses by the shared pointer in rank order: each rank waits for the previous
 * one. */
static void do_in_turn(Case* at, const Routine* routine, const Part* part, Buffer* buffer) {
  for (int r = 0; r < at->ranks; r++) {
    if (r == at->rank) {
      start(at, routine, part, buffer);
      finish(at, routine, buffer, 1);
    }
    MPI_Barrier(at->comm);
  }
}

static void check_pointers(Case* at, const Routine* routine) {
  View* view = &at->views[at->rank];
  MPI_Offset position = -1, offset = -1;
  if (has_mode(at, MPI_MODE_SEQUENTIAL)) return; /* there are no functions for them */
  if (routine->place == kShared) {
    MPI_Barrier(at->comm); /* other ranks may not have moved it yet */
    good(at, MPI_File_get_position_shared(at->file, &position), "MPI_File_get_position_shared");
    if (position != at->shared)
      report(at, "after %s the shared pointer is %lld, not %ld", name_of(routine),
             (long long)position, at->shared);
    return;
  }
  good(at, MPI_File_get_position(at->file, &position), "MPI_File_get_position");
  if (position != view->position) {
    if (routine->write || !at->features.eof)
      report(at, "after %s the file pointer is %lld, not %ld", name_of(routine),
             (long long)position, view->position);
    good(at, MPI_File_seek(at->file, view->position, MPI_SEEK_SET), "MPI_File_seek");
  }
  if (!view->filetype.size) return;
  good(at, MPI_File_get_byte_offset(at->file, view->position, &offset), "MPI_File_get_byte_offset");
  long expected = view->displacement + byte_at(&view->filetype, view->position * view->etype.size);
  if (offset != at->base + expected)
    report(at, "etype %ld of the view is at byte %lld, not %ld", view->position,
           (long long)(offset - at->base), expected);
}

static void print_step(const Case* at, const Routine* routine, const Part* parts, int accesses) {
  if (!at->verbose || at->rank != 0) return;
  fprintf(stderr, "  step %u: %d x %s, bytes", at->step, accesses, name_of(routine));
  for (int r = 0; r < at->ranks; r++) fprintf(stderr, " %ld@%ld", parts[r].bytes, parts[r].first);
  fprintf(stderr, "\n");
}

void transfer(Case* at) {
  static Part parts[kMostOutstanding][kMostRanks];
  Buffer buffers[kMostOutstanding];
  Routine routine = draw_routine(at);
  at->calls++;
  int in_turn = routine.place == kShared && !routine.collective,
      apart = at->in_series && (!routine.collective || !at->features.order);
  int accesses = routine.ending == kNonblocking && !in_turn
                     ? (int)between(&at->random, 1, kMostOutstanding)
                     : 1;
  if (apart) MPI_Barrier(at->comm);
  for (int k = 0; k < accesses; k++) {
    draw_parts(at, &routine, parts[k], k);
    if (!agrees(&parts[k][at->rank].memory)) report(at, "a memory type is not as the model has it");
    print_step(at, &routine, parts[k], k + 1);
    make_buffer(&routine, &parts[k][at->rank], &buffers[k]);
    if (in_turn) {
      do_in_turn(at, &routine, &parts[k][at->rank], &buffers[k]);
    } else {
      start(at, &routine, &parts[k][at->rank], &buffers[k]);
    }
  }
  if (!in_turn) finish(at, &routine, buffers, accesses);
  for (int k = 0; k < accesses; k++) {
    if (routine.write)
      for (int r = 0; r < at->ranks; r++)
        model_write(&at->model, &at->views[r], at->leaf, parts[k][r].first, parts[k][r].bytes,
                    parts[k][r].seed, (Writer){.step = at->calls, .rank = r});
    check(at, &routine, &parts[k][at->rank], &buffers[k]);
    for (int r = 0; r < at->ranks; r++) free_type(&parts[k][r].memory);
  }
  check_pointers(at, &routine);
  if (apart) MPI_Barrier(at->comm);
}
