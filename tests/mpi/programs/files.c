/* MPI-IO calls of every kind on files in the directory of the first argument (the second: a prefix
 * of file names): independent, collective, views, split, non-blocking. Runs on 3 ranks. */
#include <mpi.h>
#include <stdio.h>

#define BLOCK 1000

static int rank, size;
static char data[2 * BLOCK];

static void explicit_offsets(MPI_File file) {
  MPI_Status status;
  MPI_File_write_at(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_CHAR, &status);
  MPI_File_read_at(file, (MPI_Offset)size * BLOCK - 100, data, BLOCK, MPI_CHAR,
                   &status); /* 100 bytes are left */
}

static void file_pointer(MPI_File file) {
  MPI_File_seek(file, 50, MPI_SEEK_SET);
  MPI_File_read(file, data, 10, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_read(file, data, 10, MPI_CHAR, MPI_STATUS_IGNORE);
}

static void requests(MPI_File file) {
  MPI_Request request;
  MPI_File_iwrite_at(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_CHAR, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_write_at_all_begin(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_CHAR);
  MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
}

/* Doubles after a header of 8 bytes; then every size-th double, with holes between. */
static void views(MPI_File file) {
  MPI_Datatype strided, type;
  MPI_File_set_view(file, 8, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
  MPI_File_write_at(file, 2 + rank, data, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_Type_vector(4, 1, size, MPI_DOUBLE, &strided);
  MPI_Type_create_resized(strided, 0, 4 * size * (MPI_Aint)sizeof(double), &type);
  MPI_Type_commit(&type);
  MPI_File_set_view(file, 8 * rank, MPI_DOUBLE, type, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, data, 16, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_Type_free(&type);
  MPI_Type_free(&strided);
}

int main(int argc, char** argv) {
  MPI_File file;
  MPI_Info info;
  char name[4096];
  const char* prefix = argc > 2 ? argv[2] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "1048576");
  MPI_Info_set(info, "not_a_hint", "\"quoted\"");
  snprintf(name, sizeof name, "%s%s/nowhere/x", prefix, argv[1]);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS)
    return 1;
  snprintf(name, sizeof name, "%s%s/out.bin", prefix, argv[1]);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) !=
      MPI_SUCCESS)
    return 1;
  MPI_Info_free(&info);
  explicit_offsets(file);
  file_pointer(file);
  requests(file);
  views(file);
  MPI_File_set_size(file, 5 * BLOCK);
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_File_delete(name, MPI_INFO_NULL);
  MPI_Finalize();
  return 0;
}
