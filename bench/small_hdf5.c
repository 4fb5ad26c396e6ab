/* Many small datasets in one HDF5 file, each with two attributes and a few bytes of every rank,
 * written independently: most of the file system's bytes are metadata.
 *
 *   small_hdf5 FILE [DATASETS] */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kNumbers = 8 };

static void add_attribute(hid_t dataset, const char* name, int value) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(dataset, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, H5T_NATIVE_INT, &value);
  H5Aclose(attribute);
  H5Sclose(space);
}

static void add_dataset(hid_t file, int number, int rank, int ranks) {
  char name[32];
  hsize_t size = (hsize_t)ranks * kNumbers, begin = (hsize_t)rank * kNumbers, count = kNumbers;
  double numbers[kNumbers];
  for (int i = 0; i < kNumbers; i++) numbers[i] = number + rank * 0.5 + i;
  snprintf(name, sizeof name, "set-%05d", number);
  hid_t space = H5Screate_simple(1, &size, NULL), memory = H5Screate_simple(1, &count, NULL);
  hid_t dataset =
      H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  add_attribute(dataset, "number", number);
  add_attribute(dataset, "ranks", ranks);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, NULL, &count, NULL);
  H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, numbers);
  H5Dclose(dataset);
  H5Sclose(memory);
  H5Sclose(space);
}

/* Counts the datasets with wrong bytes; this rank checks the bytes of all ranks. */
static int wrong_datasets(hid_t file, int datasets, int ranks) {
  int wrong = 0;
  double* numbers = malloc((size_t)ranks * kNumbers * sizeof *numbers);
  for (int number = 0; number < datasets; number++) {
    char name[32];
    snprintf(name, sizeof name, "set-%05d", number);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    int differs = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) < 0;
    for (int i = 0; i < ranks * kNumbers; i++)
      differs |= numbers[i] != number + i / kNumbers * 0.5 + i % kNumbers;
    wrong += differs;
    H5Dclose(dataset);
  }
  free(numbers);
  return wrong;
}

int main(int argc, char** argv) {
  int rank, ranks, datasets = argc > 2 ? atoi(argv[2]) : 1000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) return 2;
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  for (int number = 0; number < datasets; number++) add_dataset(file, number, rank, ranks);
  H5Fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
  file = H5Fopen(argv[1], H5F_ACC_RDONLY, access);
  int wrong = wrong_datasets(file, datasets, ranks), all = 0;
  H5Fclose(file);
  H5Pclose(access);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d datasets, %d wrong\n", datasets, all);
  MPI_Finalize();
  return all != 0;
}
