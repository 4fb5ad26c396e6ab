/* Parallel HDF5 for checkpoint_rivals.py: saves and loads an array that is divided among ranks, and
 * compares the loaded bytes.
 *
 *   checkpoint_rivals PATH TURNS SYNC Z Y X BLOCKS_Z BLOCKS_Y BLOCKS_X
 *
 * Each turn has a new file, whose name is PATH and the number of the turn. Rank 0 prints the
 * seconds of the slowest rank, saving and loading, of each turn. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 3 };

typedef struct {
  hsize_t shape[AXES], begin[AXES], count[AXES];
  size_t elements;
} Part;

static Part part_of(char** words, int rank) {
  Part p = {.elements = 1};
  for (int axis = AXES - 1; axis >= 0; axis--) {
    const int blocks = atoi(words[AXES + axis]);
    p.shape[axis] = strtoull(words[axis], NULL, 10);
    p.count[axis] = p.shape[axis] / (hsize_t)blocks;
    p.begin[axis] = p.count[axis] * (hsize_t)(rank % blocks);
    p.elements *= p.count[axis];
    rank /= blocks;
  }
  return p;
}

static hid_t open_file(const char* path, int writing) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  hid_t file = writing ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                       : H5Fopen(path, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  return file;
}

static hid_t make_dataset(hid_t file, const Part* p) {
  hid_t made = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(AXES, p->shape, NULL);
  H5Pset_fill_time(made, H5D_FILL_TIME_NEVER);
  hid_t dataset = H5Dcreate2(file, "T", H5T_IEEE_F64LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
  H5Sclose(space);
  H5Pclose(made);
  return dataset;
}

static void move(hid_t dataset, const Part* p, double* data, int writing) {
  hid_t collective = H5Pcreate(H5P_DATASET_XFER), in_file = H5Dget_space(dataset),
        in_memory = H5Screate_simple(AXES, p->count, NULL);
  H5Pset_dxpl_mpio(collective, H5FD_MPIO_COLLECTIVE);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, p->begin, NULL, p->count, NULL);
  const herr_t failed =
      writing ? H5Dwrite(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, collective, data)
              : H5Dread(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, collective, data);
  if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  H5Pclose(collective);
}

static void save(const char* path, const Part* p, double* data, int sync) {
  hid_t file = open_file(path, 1), dataset = make_dataset(file, p);
  move(dataset, p, data, 1);
  if (sync) H5Fflush(file, H5F_SCOPE_GLOBAL);
  H5Dclose(dataset);
  H5Fclose(file);
}

static void load(const char* path, const Part* p, double* data) {
  hid_t file = open_file(path, 0), dataset = H5Dopen2(file, "T", H5P_DEFAULT);
  move(dataset, p, data, 0);
  H5Dclose(dataset);
  H5Fclose(file);
}

/* Seconds since `begin` of the slowest rank. */
static double slowest(double begin) {
  double mine = MPI_Wtime() - begin, all;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4 + 2 * AXES) MPI_Abort(MPI_COMM_WORLD, 2);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Part p = part_of(argv + 4, rank);
  double *data = malloc(p.elements * sizeof *data), *back = calloc(p.elements, sizeof *back);
  for (size_t i = 0; i < p.elements; i++) data[i] = (double)rank + (double)i * 0.5;
  for (int turn = 0; turn < atoi(argv[2]); turn++) {
    char path[4096];
    snprintf(path, sizeof path, "%s-%d.h5", argv[1], turn);
    memset(back, 0, p.elements * sizeof *back);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    save(path, &p, data, atoi(argv[3]));
    const double saved = slowest(begin), middle = MPI_Wtime();
    load(path, &p, back);
    const double loaded = slowest(middle);
    if (memcmp(data, back, p.elements * sizeof *back)) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0) printf("%.6f %.6f\n", saved, loaded);
  }
  free(data);
  free(back);
  MPI_Finalize();
  return 0;
}
