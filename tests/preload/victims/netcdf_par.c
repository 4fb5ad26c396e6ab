// Writes two variables of netCDF-4 by all ranks: independently by rows, and with one collective
// call.  usage: netcdf_par FILE
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

enum { ROWS = 40, COLUMNS = 30 };
static double values[ROWS * COLUMNS];

int main(int argc, char** argv) {
  int rank, ranks, file, dimensions[2], rows, whole;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int status = nc_create_par(argv[1], NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
  status |= nc_def_dim(file, "y", ROWS, &dimensions[0]);
  status |= nc_def_dim(file, "x", COLUMNS * ranks, &dimensions[1]);
  status |= nc_def_var(file, "rows", NC_DOUBLE, 2, dimensions, &rows);
  status |= nc_def_var(file, "whole", NC_DOUBLE, 2, dimensions, &whole);
  status |= nc_enddef(file);
  status |= nc_var_par_access(file, whole, NC_COLLECTIVE);
  for (size_t row = 0; row < ROWS; ++row) {
    const size_t start[2] = {row, (size_t)rank * COLUMNS}, count[2] = {1, COLUMNS};
    status |= nc_put_vara_double(file, rows, start, count, values);
  }
  const size_t start[2] = {0, (size_t)rank * COLUMNS}, count[2] = {ROWS, COLUMNS};
  status |= nc_put_vara_double(file, whole, start, count, values);
  status |= nc_close(file);
  printf("%d\n", status);
  MPI_Finalize();
  return 0;
}
