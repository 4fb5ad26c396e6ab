/* Checkpoints. A file is a header and then the arrays one after the other: doubles, x fastest,
 * components slowest. Its bytes depend neither on the number of ranks nor on the way of writing.
 * Mode `files` makes one such file per rank, of the rank's box. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3d.h"

enum { NAME = 4096 };

const char* const mode_names[MODES] = {"one",     "files",      "independent",
                                       "sieving", "collective", "hdf5"};
const int components_of[VARIABLES] = {1, 1, 3, 11}; /* pressure, temperature, velocity, species */
static const char kMagic[8] = {'S', '3', 'D', 'c', 'k', 'p', 't', '1'};

typedef struct {
  char magic[8];
  int64_t global[DIMS], start[DIMS],
      count[DIMS]; /* the whole grid, and the box of it that this file holds; z, y, x */
  int64_t pieces, step;
  double time;
} Header;

typedef struct {
  MPI_File handle;
  char path[NAME];
  Box box; /* the file's cells */
} File;

static void check(int code, const char* operation, const char* path) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fail(operation, path, text);
}

/* `part` of an array [components][outer], as an MPI type. */
static MPI_Datatype type_of_part(int components, const Box* outer, const Box* part) {
  int sizes[] = {components, outer->count[Z], outer->count[Y], outer->count[X]};
  int counts[] = {components, part->count[Z], part->count[Y], part->count[X]};
  int starts[] = {0, part->start[Z] - outer->start[Z], part->start[Y] - outer->start[Y],
                  part->start[X] - outer->start[X]};
  MPI_Datatype type;
  if (cells(outer) == cells(part))
    MPI_Type_contiguous(components * (int)cells(part), MPI_DOUBLE, &type);
  else
    MPI_Type_create_subarray(4, sizes, counts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void open_file(File* f, MPI_Comm comm, int amode, MPI_Info info) {
  check(MPI_File_open(comm, f->path, amode, info, &f->handle), "MPI_File_open", f->path);
  if (amode & MPI_MODE_CREATE) check(MPI_File_set_size(f->handle, 0), "MPI_File_set_size", f->path);
}

static void close_file(File* f) { check(MPI_File_close(&f->handle), "MPI_File_close", f->path); }

static void write_header(const Kernel* k, const File* f, int pieces) {
  Header h = {.pieces = pieces, .step = k->step, .time = 1e-6 * (double)k->step};
  memcpy(h.magic, kMagic, sizeof kMagic);
  for (int d = 0; d < DIMS; d++) {
    h.global[d] = k->grid.count[d];
    h.start[d] = f->box.start[d];
    h.count[d] = f->box.count[d];
  }
  check(MPI_File_write_at(f->handle, 0, &h, sizeof h, MPI_BYTE, MPI_STATUS_IGNORE),
        "write of the header of", f->path);
}

static void check_count(const MPI_Status* status, int64_t wanted, const File* f) {
  int doubles;
  MPI_Get_elements(status, MPI_DOUBLE, &doubles);
  if (doubles != wanted) fail("read of an array from", f->path, "the file ends too early");
}

/* Moves the intersection of the file's box and this rank's box, one array at a time. */
static void move_fields(const Kernel* k, const File* f, bool writing, bool together) {
  const Box part = intersection(&f->box, &k->box);
  MPI_Offset at = sizeof(Header);
  double* memory = k->field;
  for (int v = 0; v < VARIABLES; v++) {
    MPI_Datatype in_file = type_of_part(components_of[v], &f->box, &part);
    MPI_Datatype in_memory = type_of_part(components_of[v], &k->box, &part);
    MPI_Status status;
    check(MPI_File_set_view(f->handle, at, MPI_DOUBLE, in_file, "native", MPI_INFO_NULL),
          "MPI_File_set_view", f->path);
    if (writing && together)
      check(MPI_File_write_at_all(f->handle, 0, memory, 1, in_memory, &status),
            "MPI_File_write_at_all", f->path);
    else if (writing)
      check(MPI_File_write_at(f->handle, 0, memory, 1, in_memory, &status), "MPI_File_write_at",
            f->path);
    else
      check(MPI_File_read_at_all(f->handle, 0, memory, 1, in_memory, &status),
            "MPI_File_read_at_all", f->path);
    if (!writing) check_count(&status, components_of[v] * cells(&part), f);
    MPI_Type_free(&in_file);
    MPI_Type_free(&in_memory);
    memory += components_of[v] * cells(&k->box);
    at += (MPI_Offset)sizeof(double) * components_of[v] * cells(&f->box);
  }
}

static void write_shared(const Kernel* k, File* f, enum Mode mode) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", mode == SIEVING ? "enable" : "disable");
  MPI_Info_set(info, "romio_cb_write", mode == COLLECTIVE ? "enable" : "disable");
  MPI_Info_set(info, "ind_wr_buffer_size", "4194304");
  open_file(f, k->comm, MPI_MODE_CREATE | MPI_MODE_RDWR, info);
  MPI_Info_free(&info);
  if (k->rank == 0) write_header(k, f, 1);
  move_fields(k, f, true, mode == COLLECTIVE);
  close_file(f);
}

static void write_piece(const Kernel* k, File* f) {
  const size_t end = strlen(f->path);
  snprintf(f->path + end, NAME - end, ".%05d", k->rank);
  f->box = k->box;
  open_file(f, MPI_COMM_SELF, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL);
  write_header(k, f, k->ranks);
  move_fields(k, f, true, false);
  close_file(f);
}

static void receive_all(const Kernel* k, int components, double* whole) {
  for (int rank = 0; rank < k->ranks; rank++) {
    Box box = box_of_rank(k, rank);
    MPI_Datatype type = type_of_part(components, &k->grid, &box);
    MPI_Recv(whole, 1, type, rank, 0, k->comm, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
  }
}

/* Gathers every array on rank 0, which writes it; the other ranks wait. */
static void write_from_one(const Kernel* k, File* f) {
  double* whole =
      k->rank == 0
          ? allocate((int64_t)sizeof(double) * components_of[VARIABLES - 1] * cells(&k->grid))
          : NULL;
  if (k->rank == 0) open_file(f, MPI_COMM_SELF, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL);
  if (k->rank == 0) write_header(k, f, 1);
  const double* mine = k->field;
  MPI_Offset at = sizeof(Header);
  for (int v = 0; v < VARIABLES; v++) {
    const int count = components_of[v] * (int)cells(&k->box),
              all = components_of[v] * (int)cells(&k->grid);
    MPI_Request sent;
    MPI_Isend(mine, count, MPI_DOUBLE, 0, 0, k->comm, &sent);
    if (k->rank == 0) receive_all(k, components_of[v], whole);
    if (k->rank == 0)
      check(MPI_File_write_at(f->handle, at, whole, all, MPI_DOUBLE, MPI_STATUS_IGNORE),
            "MPI_File_write_at", f->path);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    mine += count;
    at += (MPI_Offset)sizeof(double) * all;
  }
  if (k->rank == 0) close_file(f);
  MPI_Barrier(k->comm);
  free(whole);
}

void write_checkpoint(const Kernel* k, enum Mode mode, const char* directory) {
  File f = {.box = k->grid};
  snprintf(f.path, NAME, mode == HDF5 ? "%s/step-%08lld.h5" : "%s/s3d-%04lld.ckpt", directory,
           (long long)k->step);
  const double begin = MPI_Wtime();
  if (mode == ONE)
    write_from_one(k, &f);
  else if (mode == FILES)
    write_piece(k, &f);
  else if (mode == HDF5)
    write_hdf5(k, f.path);
  else
    write_shared(k, &f, mode);
  double mine = MPI_Wtime() - begin, slowest;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, k->comm);
  const double mb = 8e-6 * COMPONENTS * (double)cells(&k->grid);
  if (k->rank == 0)
    printf("step %lld: %.2f MB to %s in %.3f s (%s)\n", (long long)k->step, mb, f.path, slowest,
           mode_names[mode]);
}

static Header read_header(const char* path, bool* found) {
  Header h = {.pieces = 0};
  FILE* file = fopen(path, "rb");
  *found = file != NULL;
  if (!file) return h;
  if (fread(&h, sizeof h, 1, file) != 1 || memcmp(h.magic, kMagic, sizeof kMagic) != 0)
    fail("--restart", path,
         "not a checkpoint of s3d (expected a header that begins with S3Dckpt1)");
  fclose(file);
  return h;
}

/* The header of `base`, or of its first piece when the checkpoint is a file per rank; the same on
 * all ranks. */
static Header find_checkpoint(const char* base) {
  Header h = {.pieces = 0};
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    char piece[NAME];
    bool found;
    snprintf(piece, NAME, "%s.00000", base);
    h = read_header(base, &found);
    if (!found) h = read_header(piece, &found);
    if (!found)
      fail("--restart", base, "neither this file nor a first piece of it (.00000) can be opened");
  }
  MPI_Bcast(&h, sizeof h, MPI_BYTE, 0, MPI_COMM_WORLD);
  return h;
}

static Box box_of_header(const Header* h) {
  Box box;
  for (int d = 0; d < DIMS; d++) box.start[d] = (int)h->start[d], box.count[d] = (int)h->count[d];
  return box;
}

static void read_piece(const Kernel* k, const char* base, int64_t number) {
  File f;
  bool found;
  snprintf(f.path, NAME, "%s.%05lld", base, (long long)number);
  const Header h = read_header(f.path, &found);
  if (!found) fail("--restart", f.path, "this piece of the checkpoint cannot be opened");
  f.box = box_of_header(&h);
  const Box part = intersection(&f.box, &k->box);
  if (cells(&part) == 0) return;
  open_file(&f, MPI_COMM_SELF, MPI_MODE_RDONLY, MPI_INFO_NULL);
  move_fields(k, &f, false, false);
  close_file(&f);
}

static void read_whole(const Kernel* k, const char* path) {
  File f = {.box = k->grid};
  snprintf(f.path, NAME, "%s", path);
  open_file(&f, k->comm, MPI_MODE_RDONLY, MPI_INFO_NULL);
  move_fields(k, &f, false, true);
  close_file(&f);
}

static bool ends_with(const char* text, const char* end) {
  return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void restart_from_own(Kernel* k, const char* path) {
  const Header h = find_checkpoint(path);
  Box grid = {.start = {0, 0, 0}};
  for (int d = 0; d < DIMS; d++) grid.count[d] = (int)h.global[d];
  init_kernel(k, grid);
  k->step = h.step;
  if (h.pieces == 1)
    read_whole(k, path);
  else
    for (int64_t piece = 0; piece < h.pieces; piece++) read_piece(k, path, piece);
}

void restart_from(Kernel* k, const char* path) {
  (ends_with(path, ".h5") ? restart_from_hdf5 : restart_from_own)(k, path);
}
