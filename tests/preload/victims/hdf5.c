// Calls HDF5: a dataset of chunks, read row by row, one made by the high-level library, an
// attribute, calls that fail, and a child that reads the parent's dataset.
// usage: hdf5 FILE
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 40, COLUMNS = 30 };
static double values[ROWS * COLUMNS], row[COLUMNS];

static hid_t create_table(hid_t group, hid_t space) {
  const hsize_t chunk[2] = {20, 1};
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  H5Pset_shuffle(list);
  H5Pset_deflate(list, 1);
  const hid_t table =
      H5Dcreate2(group, "table", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Pclose(list);
  return table;
}

static double read_rows(hid_t table, hid_t space, int first, int count) {
  const hsize_t extent[2] = {1, COLUMNS};
  const hid_t memory = H5Screate_simple(2, extent, NULL);
  double sum = 0;
  for (int i = first; i < first + count; ++i) {
    const hsize_t start[2] = {(hsize_t)i, 0};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL);
    H5Dread(table, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row);
    sum += row[0];
  }
  H5Sclose(memory);
  return sum;
}

static void write_table(const char* name) {
  const hsize_t shape[2] = {ROWS, COLUMNS};
  const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, shape, NULL);
  const hid_t table = create_table(group, space);
  H5Dwrite(table, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  const hsize_t three = 3;
  const int numbers[3] = {1, 2, 3};
  H5LTmake_dataset_int(file, "numbers", 1, &three, numbers);
  H5Dclose(table);
  H5Sclose(space);
  H5Gclose(group);
  H5Fclose(file);
}

static void read_table(const char* name) {
  const hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t table = H5Dopen2(file, "/group/table", H5P_DEFAULT);
  const hid_t space = H5Dget_space(table);
  printf("%g\n", read_rows(table, space, 0, 10));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    printf("%g\n", read_rows(table, space, 10, 5));
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  H5Sclose(space);
  H5Dclose(table);
  H5Fclose(file);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = i;
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  write_table(argv[1]);
  read_table(argv[1]);
  const hid_t missing = H5Fopen("missing.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  printf("%d %d\n", missing < 0, H5Dread(missing, 0, 0, 0, 0, NULL) < 0);
  printf("%d errors\n", (int)H5Eget_num(H5E_DEFAULT));
  return 0;
}
