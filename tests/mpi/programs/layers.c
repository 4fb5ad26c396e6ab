/* Calls whose cost lies between the layers, one kind per run: layers DIRECTORY KIND [COUNT]. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[4096], data[1 << 20];
static int rank, ranks, count;

static MPI_File open_file(const char* key, const char* value) {
  MPI_File f;
  MPI_Info info;
  MPI_Info_create(&info);
  if (key) MPI_Info_set(info, (char*)key, (char*)value);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f);
  MPI_Info_free(&info);
  return f;
}

/* Pieces of `piece` bytes, one every `pitch`, that begin at `start`. */
static void view(MPI_File f, long start, int pieces, int piece, int pitch) {
  MPI_Datatype sparse;
  MPI_Type_vector(pieces, piece, pitch, MPI_BYTE, &sparse);
  MPI_Type_commit(&sparse);
  MPI_File_set_view(f, start, MPI_BYTE, sparse, "native", MPI_INFO_NULL);
  MPI_Type_free(&sparse);
}

static void do_opens(void) {
  for (int i = 0; i < count; i++) {
    MPI_File f = open_file(NULL, NULL);
    MPI_File_write_at(f, rank * 100, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
  }
}

static void do_syncs(MPI_File f) {
  for (int i = 0; i < count; i++) {
    MPI_File_write_at(f, (i * ranks + rank) * 100L, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(f);
  }
}

static void do_collectives(MPI_File f) {
  for (int i = 0; i < count; i++)
    MPI_File_write_at_all(f, (i * ranks + rank) * 8L, data, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void do_ordered(MPI_File f) {
  for (int i = 0; i < count; i++) MPI_File_write_ordered(f, data, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void do_bytes(MPI_File f) {
  for (int i = 0; i < count; i++) MPI_File_read_at(f, i, data, 1, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* Holes of a new file: reads that fill windows return nothing. */
static void do_holes(MPI_File f) {
  for (int i = 0; i < count; i++) {
    view(f, (i * ranks + rank) * (4L << 20), 64, 64, 1 << 16);
    MPI_File_write_at(f, 0, data, 64 * 64, MPI_BYTE, MPI_STATUS_IGNORE);
  }
}

/* A few bytes of every 64 KiB of an existing file, for which the library reads whole windows. */
static void do_sparse_reads(MPI_File f) {
  view(f, 0, 64, 64, 1 << 16);
  for (int i = 0; i < count; i++)
    MPI_File_read_at(f, 0, data, 64 * 64, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* Interleaved pieces of 1 KiB, collectively. */
static void do_pieces(MPI_File f) {
  view(f, rank * 1024L, 1024, 1024, 1024 * ranks);
  for (int i = 0; i < count; i++)
    MPI_File_write_all(f, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void wait_for_all(MPI_File f, int synced) {
  if (synced) MPI_File_sync(f);
  MPI_Barrier(MPI_COMM_WORLD);
  if (synced) MPI_File_sync(f);
}

/* All ranks write the same bytes: at once, or one rank after the other. */
static void do_overlaps(MPI_File f, int in_turn) {
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < ranks; turn++) {
    if (!in_turn || turn == rank)
      MPI_File_write_at(f, 500, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    if (!in_turn) break;
    wait_for_all(f, turn % 2);
  }
}

/* The same, one after the other by a token that travels through messages. */
static void do_token(MPI_File f) {
  int token = 0;
  MPI_Request request;
  if (rank > 0) {
    MPI_Irecv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_write_at(f, 500, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
  if (rank + 1 < ranks) MPI_Send(&token, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);
}

static void do_late(void) {
  for (int i = 0; i < count; i++) {
    const double start = MPI_Wtime();
    while (rank == 0 && MPI_Wtime() - start < 0.05) continue;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void fill(long bytes) {
  FILE* f = fopen(path, "w");
  for (long done = 0; rank == 0 && done < bytes; done += sizeof data)
    fwrite(data, 1, sizeof data, f);
  fclose(f);
}

static void run(const char* kind) {
  const char* cb = strcmp(kind, "tiny_buffer") ? NULL : "cb_buffer_size";
  const int sparse = !strcmp(kind, "sparse_reads");
  if (rank == 0 && (sparse || !strcmp(kind, "bytes"))) fill(sparse ? 4 << 20 : count);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File f = cb ? open_file(cb, "4096") : open_file("romio_ds_write", "enable");
  if (!strcmp(kind, "syncs")) do_syncs(f);
  if (!strcmp(kind, "collectives")) do_collectives(f);
  if (!strcmp(kind, "ordered")) do_ordered(f);
  if (!strcmp(kind, "bytes") && rank == 0) do_bytes(f);
  if (!strcmp(kind, "holes")) do_holes(f);
  if (sparse) do_sparse_reads(f);
  if (cb || !strcmp(kind, "pieces")) do_pieces(f);
  if (!strcmp(kind, "overlaps")) do_overlaps(f, 0);
  if (!strcmp(kind, "in_turn")) do_overlaps(f, 1);
  if (!strcmp(kind, "token")) do_token(f);
  MPI_File_close(&f);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s/out.dat", argv[1]);
  count = argc > 3 ? atoi(argv[3]) : 1;
  memset(data, 'a' + rank, sizeof data);
  if (!strcmp(argv[2], "opens"))
    do_opens();
  else if (!strcmp(argv[2], "late"))
    do_late();
  else
    run(argv[2]);
  return MPI_Finalize();
}
