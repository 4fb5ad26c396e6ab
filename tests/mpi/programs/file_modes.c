// Modes, hints and errors of files under pario's MPI-IO.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#define CHECK(c)                                           \
  do {                                                     \
    if (!(c)) {                                            \
      printf("rank %d line %d: %s\n", rank, __LINE__, #c); \
      errs++;                                              \
    }                                                      \
  } while (0)
static int rank, size, errs;
static int class_of(int e) {
  int c;
  MPI_Error_class(e, &c);
  return c;
}
int main(int c, char** v) {
  MPI_Init(&c, &v);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_File f;
  MPI_Offset o;
  int one = rank, all, back = -1;
  MPI_Info info;
  /* sequential: only shared pointers */
  CHECK(MPI_File_open(MPI_COMM_WORLD, v[1], MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
                      MPI_INFO_NULL, &f) == 0);
  CHECK(MPI_File_write_ordered(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE) == 0);
  CHECK(class_of(MPI_File_write(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE)) ==
        MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPI_File_write_at_all(f, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE)) ==
        MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPI_File_seek(f, 0, MPI_SEEK_SET)) == MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPI_File_get_position(f, &o)) == MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPI_File_seek_shared(f, 0, MPI_SEEK_SET)) == MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) ==
        MPI_ERR_ARG);
  CHECK(class_of(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
                                   MPI_INFO_NULL)) == 0);
  CHECK(MPI_File_write_ordered(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE) == 0);
  CHECK(MPI_File_get_size(f, &o) == 0 && o == 8 * size);
  CHECK(MPI_File_close(&f) == 0);
  /* append: both pointers at the end */
  CHECK(MPI_File_open(MPI_COMM_WORLD, v[1],
                      MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &f) == 0);
  CHECK(MPI_File_get_position(f, &o) == 0 && o == 8 * size);
  CHECK(MPI_File_get_position_shared(f, &o) == 0 && o == 8 * size);
  CHECK(class_of(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
                                   MPI_INFO_NULL)) == MPI_ERR_ARG);
  CHECK(MPI_File_write_ordered(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE) == 0);
  CHECK(MPI_File_read_at_all(f, 8 * size + 4 * rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE) == 0 &&
        back == rank);
  CHECK(MPI_File_read_at_all(f, 4 * size + 4 * rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE) == 0 &&
        back == rank);
  /* types */
  MPI_Datatype t;
  MPI_Type_contiguous(2, MPI_INT, &t);
  CHECK(class_of(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_read_at(f, 0, &back, 0, t, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  MPI_Type_commit(&t);
  CHECK(class_of(MPI_File_read_at(f, 0, &back, 0, t, MPI_STATUS_IGNORE)) == 0);
  MPI_Type_free(&t);
  /* hints in a view; impossible hints on one rank only */
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "8388608");
  MPI_Info_set(info, "pario_check", "yes");
  MPI_Info_set(info, "pario_strict", "yes");
  CHECK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", info) == 0);
  MPI_Info_free(&info);
  MPI_File_get_info(f, &info);
  char text[MPI_MAX_ERROR_STRING];
  int flag;
  MPI_Info_get(info, "cb_buffer_size", 99, text, &flag);
  CHECK(flag && !strcmp(text, "8388608"));
  MPI_Info_get(info, "striping_factor", 99, text, &flag);
  CHECK(!flag);
  MPI_Info_free(&info);
  if (size > 1)
    CHECK(class_of(MPI_File_set_view(f, 0, rank ? MPI_INT : MPI_DOUBLE, rank ? MPI_INT : MPI_DOUBLE,
                                     "native", MPI_INFO_NULL)) == MPI_ERR_NOT_SAME);
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_sise", "1");
  int e =
      MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", rank == size - 1 ? info : MPI_INFO_NULL);
  CHECK(class_of(e) == MPI_ERR_INFO_VALUE);
  e = MPI_File_set_info(f, info);
  CHECK(class_of(e) == MPI_ERR_INFO_VALUE);
  MPI_Error_string(e, text, &flag);
  if (!rank) puts(text);
  CHECK(MPI_File_close(&f) == 0);
  MPI_Info_set(info, "pario_strict", "yes");
  e = MPI_File_open(MPI_COMM_WORLD, v[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f);
  CHECK(class_of(e) == MPI_ERR_INFO_VALUE && f == MPI_FILE_NULL);
  MPI_Info_free(&info);
  /* deleting the file deletes its subfiles */
  MPI_Info_create(&info);
  MPI_Info_set(info, "pario_subfiles", "3");
  CHECK(MPI_File_open(MPI_COMM_WORLD, v[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f) == 0);
  CHECK(MPI_File_write_ordered(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE) == 0);
  MPI_Info_free(&info);
  CHECK(MPI_File_close(&f) == 0);
  if (!rank) {
    CHECK(MPI_File_delete(v[1], MPI_INFO_NULL) == 0);
    CHECK(class_of(MPI_File_delete(v[1], MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
  }
  MPI_Allreduce(&errs, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!rank) puts(all ? "FAILED" : "No Errors");
  MPI_Finalize();
  return 0;
}
