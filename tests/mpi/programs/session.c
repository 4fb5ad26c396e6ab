/* MPI without MPI_Init: the sessions of MPI 4. There is no MPI_COMM_WORLD. */
#include <mpi.h>

int main(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "pario", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Barrier(comm);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return 0;
}
