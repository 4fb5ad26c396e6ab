/* Defines each variable after the data of the one before, which moves all of them. */
#include <netcdf.h>
#include <stdio.h>

#include "work.h"

enum { VARIABLES = 8 };
static char units[4096];

static int define(int file, int place, int number) {
  int variable;
  char name[8];
  snprintf(name, sizeof name, "v%d", number);
  nc_def_var(file, name, NC_DOUBLE, 1, &place, &variable);
  nc_put_att_text(file, variable, "history", sizeof units, units);
  return variable;
}

int main(int argc, char** argv) {
  const size_t values = (size_t)read_size(argc, argv);
  const int at_once = is_repaired(argc, argv);
  double* field = malloc(values * sizeof *field);
  for (size_t i = 0; i < values; i++) field[i] = (double)i;
  memset(units, 'u', sizeof units);
  int file, place, variables[VARIABLES], old;
  size_t buffer = 4 << 20;
  if (nc__create("fields.nc", NC_64BIT_OFFSET, 0, &buffer, &file) != NC_NOERR) return 1;
  nc_set_fill(file, NC_NOFILL, &old);
  nc_def_dim(file, "place", values, &place);
  for (int i = 0; at_once && i < VARIABLES; i++) variables[i] = define(file, place, i);
  nc_enddef(file);
  for (int i = 0; i < VARIABLES; i++) {
    if (!at_once) {
      nc_redef(file);
      variables[i] = define(file, place, i);
      nc_enddef(file);
    }
    nc_put_var_double(file, variables[i], field);
  }
  nc_close(file);
  compute(1500);
  printf("%zu values\n", values);
  return 0;
}
