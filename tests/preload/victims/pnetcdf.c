// Calls PnetCDF: collective, independent and nonblocking transfers of variables by all ranks.
// usage: pnetcdf FILE
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { EACH = 100, STEPS = 3 };
static double values[EACH];

static void write_steps(int file, int variable, int rank) {
  for (MPI_Offset step = 0; step < STEPS; ++step) {
    const MPI_Offset start[2] = {step, rank * EACH}, count[2] = {1, EACH};
    ncmpi_put_vara_double_all(file, variable, start, count, values);
  }
}

static void write_alone(int file, int variable, int rank) {
  ncmpi_begin_indep_data(file);
  for (MPI_Offset i = 0; i < EACH; ++i) {
    const MPI_Offset index = rank * EACH + i;
    ncmpi_put_var1(file, variable, &index, values + i, 1, MPI_DOUBLE);
  }
  ncmpi_end_indep_data(file);
}

static void write_later(int file, int variable, int rank) {
  int requests[2], statuses[2];
  MPI_Offset starts[2] = {rank * EACH, rank * EACH + 50}, counts[2] = {10, 20};
  MPI_Offset *start[2] = {starts, starts + 1}, *count[2] = {counts, counts + 1};
  const MPI_Offset third = rank * EACH + 30, five = 5;
  ncmpi_iput_varn_float(file, variable, 2, start, count, (float[30]){0}, &requests[0]);
  ncmpi_iput_vara_float(file, variable, &third, &five, (float[5]){0}, &requests[1]);
  ncmpi_wait_all(file, 2, requests, statuses);
}

int main(int argc, char** argv) {
  int rank, ranks, file, dimensions[2], variables[3];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file);
  ncmpi_def_dim(file, "step", NC_UNLIMITED, &dimensions[0]);
  ncmpi_def_dim(file, "place", ranks * EACH, &dimensions[1]);
  ncmpi_def_var(file, "steps", NC_DOUBLE, 2, dimensions, &variables[0]);
  ncmpi_def_var(file, "alone", NC_DOUBLE, 1, dimensions + 1, &variables[1]);
  ncmpi_def_var(file, "later", NC_FLOAT, 1, dimensions + 1, &variables[2]);
  ncmpi_enddef(file);
  write_steps(file, variables[0], rank);
  write_alone(file, variables[1], rank);
  write_later(file, variables[2], rank);
  ncmpi_close(file);
  ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file);
  const int result = ncmpi_get_var_double_all(file, variables[1], (double[2 * EACH]){0});
  ncmpi_close(file);
  printf("%d\n", result);
  MPI_Finalize();
  return 0;
}
