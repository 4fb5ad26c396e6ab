#include "case.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char* volatile doing = "nothing";

void report(Case* at, const char* format, ...) {
  va_list arguments;
  if (at->failures++ >= 3) return;
  char text[800];
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "case %llu step %u rank %d of %d: %s\n", (unsigned long long)at->seed, at->step,
          at->rank, at->ranks, text);
}

int is_known(const Case* at, long byte, int rank, int collective) {
  const Writer* writer = &at->model.writers[byte];
  if (at->model.unknown[byte]) return 0;
  if (!writer->step) return at->features.holes;
  return !at->model.merges || collective || writer->epoch != at->model.epoch ||
         writer->rank == rank;
}

int good(Case* at, int code, const char* what) {
  if (code == MPI_SUCCESS) return 1;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(code, text, &length);
  report(at, "%s: %s", what, text);
  return 0;
}

static void choose_communicator(Case* at) {
  int rank, size, kind = (int)between(&at->random, 0, 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  at->colour = kind == 3 && size > 1 ? rank * 2 / size : 0;
  MPI_Comm_split(MPI_COMM_WORLD, at->colour, kind == 2 ? size - rank : rank, &at->comm);
  MPI_Comm_rank(at->comm, &at->rank);
  MPI_Comm_size(at->comm, &at->ranks);
}

static void hint(MPI_Info info, const char* key, long number) {
  char text[32];
  snprintf(text, sizeof text, "%ld", number);
  MPI_Info_set(info, key, text);
}

static MPI_Info choose_hints(Case* at) {
  static const char* const kSwitch[] = {"enable", "disable", "automatic"};
  Random* random = &at->random;
  MPI_Info info;
  if (!at->features.hints || chance(random, 30)) return MPI_INFO_NULL;
  MPI_Info_create(&info);
  if (chance(random, 60)) hint(info, "cb_buffer_size", 4096L << between(random, 0, 6));
  if (chance(random, 50)) hint(info, "cb_nodes", between(random, 1, 4));
  if (chance(random, 40)) MPI_Info_set(info, "romio_cb_write", kSwitch[between(random, 0, 2)]);
  if (chance(random, 40)) MPI_Info_set(info, "romio_cb_read", kSwitch[between(random, 0, 2)]);
  if (chance(random, 40)) MPI_Info_set(info, "romio_ds_write", kSwitch[between(random, 0, 2)]);
  if (chance(random, 40)) MPI_Info_set(info, "romio_ds_read", kSwitch[between(random, 0, 2)]);
  if (chance(random, 30)) hint(info, "ind_rd_buffer_size", 512L << between(random, 0, 6));
  if (chance(random, 30)) hint(info, "ind_wr_buffer_size", 512L << between(random, 0, 6));
  if (chance(random, 40)) hint(info, "pario_write_behind", 256L << between(random, 0, 12));
  if (chance(random, 40)) {
    hint(info, "pario_merge_collectives", 256L << between(random, 0, 12));
    at->model.merges = 1;
  }
  return info;
}

static void choose_numbers(Case* at) {
  static const long kSizes[] = {1, 4, 8};
  at->leaf = kSizes[between(&at->random, 0, 2)];
  at->number = at->leaf == 1 ? MPI_BYTE : at->leaf == 4 ? MPI_INT : MPI_DOUBLE;
  at->leaf_type = type_of(at->number, at->leaf);
  at->base = at->features.huge && chance(&at->random, 5)
                 ? ((MPI_Offset)1 << between(&at->random, 31, 42)) + between(&at->random, 0, 9999)
                 : 0;
}

/* Draws the access mode, and whether the file exists before with some bytes. */
static void choose_mode(Case* at) {
  Random* random = &at->random;
  int kind = at->features.modes ? (int)between(random, 0, 9) : 9, fresh = chance(random, 70);
  at->amode = kind == 0   ? MPI_MODE_RDONLY
              : kind <= 2 ? MPI_MODE_CREATE | MPI_MODE_WRONLY
                          : MPI_MODE_CREATE | MPI_MODE_RDWR;
  at->end = 0;
  if (!at->features.modes) return;
  if (kind <= 2 && at->features.sequential && at->features.shared && chance(random, 60))
    at->amode |= MPI_MODE_SEQUENTIAL;
  if (has_mode(at, MPI_MODE_SEQUENTIAL) || kind == 0) at->base = 0;
  if (chance(random, 15)) at->amode |= MPI_MODE_DELETE_ON_CLOSE;
  if (chance(random, 10)) at->amode |= MPI_MODE_UNIQUE_OPEN;
  if (at->base != 0 || (kind != 0 && fresh)) {
    if (kind != 0 && chance(random, 20)) at->amode |= MPI_MODE_EXCL;
    return;
  }
  set_model_size(&at->model, between(random, 1, 30000));
  if (!chance(random, 40)) return;
  at->amode |= MPI_MODE_APPEND;
  at->end = at->model.size;
}

/* Fills the model with the bytes that the file has before it is opened; rank 0 writes them. */
static void write_first_bytes(Case* at) {
  Model* model = &at->model;
  for (long i = 0; i < model->size; i++) {
    model->bytes[i] = value(at->seed, i);
    model->writers[i] = (Writer){.step = ~0u, .rank = kMany};
  }
  model_sync(model);
  if (at->rank != 0 || model->size == 0) return;
  int file = open(at->path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, model->bytes, (size_t)model->size) != model->size)
    report(at, "the first bytes cannot be written");
  if (file >= 0) close(file);
}

/* Makes written bytes visible to all ranks (MPI's consistency rules); checks the file's size. */
static void sync_file(Case* at) {
  int syncs = !at->atomic && !has_mode(at, MPI_MODE_RDONLY); /* ROMIO rejects it then */
  doing = "MPI_File_sync";
  if (syncs) good(at, MPI_File_sync(at->file), "MPI_File_sync");
  MPI_Barrier(at->comm);
  if (syncs) good(at, MPI_File_sync(at->file), "MPI_File_sync");
  MPI_Offset size = -1, expected = at->model.size ? at->base + at->model.size : 0;
  good(at, MPI_File_get_size(at->file, &size), "MPI_File_get_size");
  if (size != expected)
    report(at, "the file has %lld bytes, not %lld", (long long)size, (long long)expected);
  MPI_Barrier(at->comm);
  model_sync(&at->model);
}

static void resize(Case* at) {
  long size = between(&at->random, 1, at->model.size + 5000), grows = chance(&at->random, 30);
  if (at->base || has_mode(at, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL)) return;
  if (at->verbose && at->rank == 0)
    fprintf(stderr, "  step %u: %s to %ld\n", at->step, grows ? "preallocate" : "set_size", size);
  doing = "MPI_File_set_size";
  if (grows) {
    good(at, MPI_File_preallocate(at->file, size), "MPI_File_preallocate");
    if (size > at->model.size) set_model_size(&at->model, size);
  } else {
    good(at, MPI_File_set_size(at->file, size), "MPI_File_set_size");
    set_model_size(&at->model, size);
  }
}

static void seek(Case* at) {
  View* view = &at->views[at->rank];
  for (int r = 0; r < at->ranks; r++) {
    long to = between(&at->random, 0, 80);
    at->views[r].position = at->views[r].filetype.size ? to : 0; /* an empty view has no offsets */
  }
  if (chance(&at->random, 50)) {
    good(at, MPI_File_seek(at->file, view->position, MPI_SEEK_SET), "MPI_File_seek");
  } else {
    MPI_Offset now = 0;
    good(at, MPI_File_get_position(at->file, &now), "MPI_File_get_position");
    good(at, MPI_File_seek(at->file, view->position - now, MPI_SEEK_CUR), "MPI_File_seek");
  }
  if (!at->same_view || !at->features.shared) return;
  at->shared = between(&at->random, 0, view->filetype.size ? 80 : 0);
  good(at, MPI_File_seek_shared(at->file, at->shared, MPI_SEEK_SET), "MPI_File_seek_shared");
}

/* Many small calls of one direction, most of them collective: ranks may run ahead of each other. */
static void run_series(Case* at) {
  int calls = (int)between(&at->random, 10, 80);
  at->in_series = 1;
  at->writes = chance(&at->random, 60);
  at->in_order = chance(&at->random, 50); /* one access behind the other: reads may be ahead */
  for (int r = 0; r < at->ranks; r++) at->silent[r] = chance(&at->random, 15);
  for (int call = 0; call < calls; call++) transfer(at);
  at->in_series = 0;
}

static void run_steps(Case* at) {
  int steps = (int)between(&at->random, 2, 8), same = chance(&at->random, 30);
  if (at->features.modes && at->leaf == 1 && at->base == 0 && chance(&at->random, 50))
    open_default_views(at);
  else
    open_views(at, same);
  for (at->step = 1; (int)at->step <= steps; at->step++) {
    if (at->step > 1 && chance(&at->random, 45)) {
      close_views(at);
      open_views(at, chance(&at->random, 30));
    }
    if (chance(&at->random, 25) && !has_mode(at, MPI_MODE_SEQUENTIAL)) seek(at);
    if (at->features.resize && chance(&at->random, 10)) {
      resize(at);
      sync_file(at);
    }
    if (at->features.series && chance(&at->random, 30))
      run_series(at);
    else
      transfer(at);
    sync_file(at);
  }
  close_views(at);
}

static void compare_file(Case* at) {
  int file = open(at->path, O_RDONLY);
  long size = file < 0 ? -1 : lseek(file, 0, SEEK_END),
       expected = at->model.size ? (long)at->base + at->model.size : 0, wrong = 0, first = -1;
  if (size != expected) report(at, "the closed file has %ld bytes, not %ld", size, expected);
  unsigned char* bytes = malloc((size_t)at->model.size + 1);
  long got = file < 0 ? 0 : pread(file, bytes, (size_t)at->model.size, at->base);
  for (long i = 0; i < got; i++)
    if (is_known(at, i, at->rank, 0) && bytes[i] != at->model.bytes[i] && wrong++ == 0) first = i;
  if (wrong)
    report(at, "%ld of %ld bytes of the file are wrong, the first at %ld: %02x for %02x", wrong,
           got, first, bytes[first], at->model.bytes[first]);
  free(bytes);
  if (file >= 0) close(file);
}

/* Closes the file and compares it: before, if closing deletes it. */
static void close_and_compare(Case* at) {
  int deletes = has_mode(at, MPI_MODE_DELETE_ON_CLOSE);
  MPI_Barrier(at->comm);
  if (deletes && at->rank == 0) compare_file(at);
  MPI_Barrier(at->comm);
  doing = "MPI_File_close";
  good(at, MPI_File_close(&at->file), "MPI_File_close");
  MPI_Barrier(at->comm);
  if (at->rank != 0) return;
  if (!deletes) compare_file(at);
  if (unlink(at->path) == 0 && deletes) report(at, "the file was not deleted");
}

int run_case(Case* at) {
  at->random.state = at->seed * 1000003u;
  at->failures = 0;
  at->step = at->calls = 0;
  choose_communicator(at);
  choose_numbers(at);
  clear_model(&at->model);
  snprintf(at->path, sizeof at->path, "%s/case-%llu-%d", at->directory,
           (unsigned long long)at->seed, at->colour);
  MPI_Info info = choose_hints(at);
  choose_mode(at);
  if (at->rank == 0) unlink(at->path);
  write_first_bytes(at);
  MPI_Barrier(at->comm);
  at->atomic = at->features.atomic && chance(&at->random, 15);
  doing = "MPI_File_open";
  if (good(at, MPI_File_open(at->comm, at->path, at->amode, info, &at->file), "MPI_File_open")) {
    if (at->atomic) good(at, MPI_File_set_atomicity(at->file, 1), "MPI_File_set_atomicity");
    run_steps(at);
    close_and_compare(at);
  }
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  free(at->leaf_type.pieces);
  MPI_Comm_free(&at->comm);
  return at->failures;
}
