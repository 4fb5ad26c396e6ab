/* The hints of a file when it is open, and after MPI_File_set_info: rank 0 prints lines "open KEY
 * VALUE" and "set KEY VALUE".
 *
 *   info FILE MODE [KEY=VALUE...]   MODE: rw, or w for a file that cannot be read */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void show(MPI_File file, const char* when) {
  MPI_Info info;
  int rank, keys = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File_get_info(file, &info);
  MPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys && rank == 0; i++) {
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int found = 0;
    MPI_Info_get_nthkey(info, i, key);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    printf("%s %s %s\n", when, key, value);
  }
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  MPI_File file;
  MPI_Info info;
  if (argc < 3 || MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  const int mode = MPI_MODE_CREATE | (strcmp(argv[2], "w") == 0 ? MPI_MODE_WRONLY : MPI_MODE_RDWR);
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 1;
  show(file, "open");
  MPI_Info_create(&info);
  for (int i = 3; i < argc; i++) {
    char* const equals = strchr(argv[i], '=');
    *equals = 0;
    MPI_Info_set(info, argv[i], equals + 1);
  }
  if (MPI_File_set_info(file, info) != MPI_SUCCESS) return 1;
  MPI_Info_free(&info);
  show(file, "set");
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
