/* MPI-IO without MPI_Init: a file over a communicator that was created from a session. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define CHECK(c)                             \
  do {                                       \
    if (!(c)) {                              \
      printf("line %d: %s\n", __LINE__, #c); \
      errs++;                                \
    }                                        \
  } while (0)

int main(int argc, char** argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_File f;
  MPI_Status st;
  MPI_Request rq;
  MPI_Datatype column;
  char text[MPI_MAX_ERROR_STRING];
  int rank, size, e, n = 0, idx, errs = 0, buf[100], back[100];
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "pario", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 100; i++) buf[i] = rank * 1000 + i;
  MPI_Type_vector(100, 1, size, MPI_INT, &column);
  MPI_Type_commit(&column);
  CHECK(MPI_File_open(comm, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &f) == 0);
  CHECK(MPI_File_set_view(f, 4 * rank, MPI_INT, column, "native", MPI_INFO_NULL) == 0);
  CHECK(MPI_File_write_all(f, buf, 100, MPI_INT, &st) == 0);
  MPI_Get_count(&st, MPI_INT, &n);
  CHECK(n == 100);
  memset(back, 0, sizeof back);
  CHECK(MPI_File_iread_at_all(f, 0, back, 100, MPI_INT, &rq) == 0 && MPI_Wait(&rq, &st) == 0);
  CHECK(memcmp(buf, back, sizeof buf) == 0);
  CHECK(MPI_File_iread_at(f, 0, back, 100, MPI_INT, &rq) == 0 &&
        MPI_Waitany(1, &rq, &idx, &st) == 0 && idx == 0);
  e = MPI_File_seek(f, -5, MPI_SEEK_SET);
  CHECK(MPI_Error_string(e, text, &n) == 0 && strstr(text, "seek"));
  CHECK(MPI_File_close(&f) == 0);
  CHECK(MPI_File_open(comm, "/nowhere/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f) != 0);
  MPI_Type_free(&column);
  MPI_Comm_free(&comm);
  CHECK(MPI_Session_finalize(&session) == 0);
  if (rank == 0) puts(errs ? "FAILED" : "No Errors");
  return errs != 0;
}
