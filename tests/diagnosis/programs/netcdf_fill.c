/* Writes all of its variables, which netCDF has filled before. */
#include <netcdf.h>
#include <stdio.h>

#include "work.h"

enum { VARIABLES = 4 };

int main(int argc, char** argv) {
  const size_t values = (size_t)read_size(argc, argv);
  double* field = malloc(values * sizeof *field);
  for (size_t i = 0; i < values; i++) field[i] = (double)i;
  int file, place, variables[VARIABLES], old;
  size_t buffer = 4 << 20;
  if (nc__create("fields.nc", NC_64BIT_OFFSET, 0, &buffer, &file) != NC_NOERR) return 1;
  if (is_repaired(argc, argv)) nc_set_fill(file, NC_NOFILL, &old);
  nc_def_dim(file, "place", values, &place);
  for (int i = 0; i < VARIABLES; i++) {
    char name[8];
    snprintf(name, sizeof name, "v%d", i);
    nc_def_var(file, name, NC_DOUBLE, 1, &place, &variables[i]);
  }
  nc_enddef(file);
  for (int i = 0; i < VARIABLES; i++) nc_put_var_double(file, variables[i], field);
  nc_close(file);
  compute(1500);
  printf("%zu values\n", values);
  return 0;
}
