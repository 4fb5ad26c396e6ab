/* Two handles of one file at the same time: a read-modify-write by one must not overwrite
 * concurrent writes by the other.
 *
 *   handles DIRECTORY alone|together ROUNDS
 *
 * Pieces are distributed round-robin. The even ranks share a handle and write through views with
 * holes, independently or collectively; each odd rank has its own handle and writes one piece at a
 * time. Byte number i of the file is always i * 7 + i / 256 + 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPiece = 24, kPieces = 64 };

static int rank, ranks;

static void need(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length;
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s\n", rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_at(MPI_Offset i) { return (unsigned char)(i * 7 + i / 256 + 1); }

/* Returns the offset of piece `number` of this rank. */
static MPI_Offset place(int number) { return ((MPI_Offset)number * ranks + rank) * kPiece; }

static void make(unsigned char* bytes, int first, int count) {
  for (int piece = 0; piece < count; piece++)
    for (int i = 0; i < kPiece; i++) bytes[piece * kPiece + i] = byte_at(place(first + piece) + i);
}

static void write_with_holes(MPI_File file, int round, int together) {
  unsigned char bytes[kPieces * kPiece];
  MPI_Offset at = (MPI_Offset)round * sizeof bytes;
  make(bytes, round * kPieces, kPieces);
  need(together ? MPI_File_write_at_all(file, at, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                : MPI_File_write_at(file, at, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE),
       "write");
}

static void write_pieces(MPI_File file, int round) {
  unsigned char bytes[kPiece];
  for (int piece = round * kPieces; piece < (round + 1) * kPieces; piece++) {
    make(bytes, piece, 1);
    need(MPI_File_write_at(file, place(piece), bytes, kPiece, MPI_BYTE, MPI_STATUS_IGNORE),
         "write_at");
  }
}

static void check(const char* name, MPI_Offset size) {
  unsigned char* bytes = calloc(1, (size_t)size);
  MPI_Offset wrong = 0;
  FILE* file = fopen(name, "rb");
  if (!file || fread(bytes, 1, (size_t)size, file) != (size_t)size) printf("too few bytes\n");
  for (MPI_Offset i = 0; i < size; i++) wrong += bytes[i] != byte_at(i);
  printf("%lld of %lld bytes are wrong\n", (long long)wrong, (long long)size);
  if (file) fclose(file);
  free(bytes);
}

int main(int argc, char** argv) {
  char name[4096];
  MPI_Comm half;
  MPI_File file;
  MPI_Info info;
  MPI_Datatype piece, dealt;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4) return 2;
  const int even = rank % 2 == 0, rounds = atoi(argv[3]);
  snprintf(name, sizeof name, "%s/handles", argv[1]);
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", "enable");
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Comm_split(MPI_COMM_WORLD, even, rank, &half);
  need(MPI_File_open(even ? half : MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info,
                     &file),
       "open");
  MPI_Type_contiguous(kPiece, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)kPiece * ranks, &dealt);
  MPI_Type_commit(&dealt);
  if (even)
    need(MPI_File_set_view(file, place(0), MPI_BYTE, dealt, "native", MPI_INFO_NULL), "set_view");
  for (int round = 0; round < rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (even) write_with_holes(file, round, !strcmp(argv[2], "together"));
    if (!even) write_pieces(file, round);
  }
  need(MPI_File_close(&file), "close");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check(name, (MPI_Offset)rounds * kPieces * kPiece * ranks);
  MPI_Type_free(&piece);
  MPI_Type_free(&dealt);
  MPI_Info_free(&info);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
