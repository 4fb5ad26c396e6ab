// Calls netCDF: variables of netCDF-4 with chunks, in a group and without dimensions, records, a
// call that fails, and a file that does not exist.
// usage: netcdf FILE
#include <netcdf.h>
#include <stdio.h>

enum { ROWS = 40, COLUMNS = 30 };
static double values[ROWS * COLUMNS];
static float line[COLUMNS];

static void define(int file, int* table, int* scalar, int* group, int* inner) {
  int dimensions[2];
  const size_t chunk[2] = {10, 5};
  nc_def_dim(file, "row", NC_UNLIMITED, &dimensions[0]);
  nc_def_dim(file, "column", COLUMNS, &dimensions[1]);
  nc_def_var(file, "table", NC_DOUBLE, 2, dimensions, table);
  nc_def_var_chunking(file, *table, NC_CHUNKED, chunk);
  nc_def_var_deflate(file, *table, 1, 1, 1);
  nc_put_att_text(file, *table, "units", 1, "K");
  nc_def_var(file, "scalar", NC_INT, 0, NULL, scalar);
  nc_def_grp(file, "group", group);
  nc_def_var(*group, "inner", NC_FLOAT, 1, &dimensions[1], inner);
  nc_enddef(file);
}

static void write_file(const char* name) {
  int file, table, scalar, group, inner;
  const int one = 1;
  const size_t third = 3;
  nc_create(name, NC_NETCDF4, &file);
  define(file, &table, &scalar, &group, &inner);
  for (size_t row = 0; row < ROWS; ++row) {
    const size_t start[2] = {row, 0}, count[2] = {1, COLUMNS};
    values[row] = (double)row;
    nc_put_vara_double(file, table, start, count, values + row);
  }
  nc_put_var_int(file, scalar, &one);
  nc_put_var_float(group, inner, line);
  nc_put_var1_float(group, inner, &third, line);
  nc_close(file);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  write_file(argv[1]);
  int file, table;
  const size_t start[2] = {0, 0}, count[2] = {20, 1}, beyond[2] = {ROWS, 0};
  const ptrdiff_t stride[2] = {2, 1};
  nc_open(argv[1], NC_NOWRITE, &file);
  nc_inq_varid(file, "table", &table);
  nc_get_var_double(file, table, values);
  printf("%g\n", values[COLUMNS]);
  nc_get_vars_double(file, table, start, count, stride, values);
  printf("%g\n", values[1]);
  printf("%d\n", nc_get_var1_double(file, table, beyond, values) != 0);
  nc_close(file);
  printf("%d\n", nc_open("missing.nc", NC_NOWRITE, &file) != 0);
  return 0;
}
