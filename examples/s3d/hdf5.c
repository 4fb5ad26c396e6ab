/* Checkpoints as HDF5 files, which pario.checkpoint and all programs with HDF5 can read. */
#include "s3d.h"

#ifdef WITH_HDF5
#include "../checkpoint/container.h"

static const char* const kNames[VARIABLES] = {"pressure", "temperature", "velocity", "species"};
static const char* const kFirstAxes[VARIABLES] = {"", "", "direction",
                                                  "kind"}; /* of those with several components */

static Array array_of(const Kernel* k, int variable, double* memory) {
  const int components = components_of[variable],
            before = components > 1; /* axes in front of those of the grid */
  const char* const dims[] = {"z", "y", "x"};
  Array a = {.name = kNames[variable],
             .axes = before + DIMS,
             .dims = {kFirstAxes[variable]},
             .shape = {components}};
  a.count[0] = a.memory[0] = components;
  for (int d = 0; d < DIMS; d++) {
    const int axis = before + d;
    a.dims[axis] = dims[d];
    a.shape[axis] = k->grid.count[d];
    a.begin[axis] = k->box.start[d];
    a.count[axis] = a.memory[axis] = k->box.count[d];
  }
  a.stored = H5T_IEEE_F64LE;
  a.element = MPI_DOUBLE;
  a.data = memory;
  return a;
}

static void describe(const Kernel* k, Array* arrays) {
  double* memory = k->field;
  for (int v = 0; v < VARIABLES; v++) {
    arrays[v] = array_of(k, v, memory);
    memory += components_of[v] * cells(&k->box);
  }
}

void write_hdf5(const Kernel* k, const char* path) {
  Array arrays[VARIABLES];
  describe(k, arrays);
  save_checkpoint(k->comm, path, arrays, VARIABLES, (Moment){k->step, 1e-6 * (double)k->step});
}

void restart_from_hdf5(Kernel* k, const char* path) {
  Box grid = {.start = {0, 0, 0}};
  Array arrays[VARIABLES];
  shape_in_checkpoint(MPI_COMM_WORLD, path, "temperature", DIMS, grid.count);
  init_kernel(k, grid);
  describe(k, arrays);
  k->step = load_checkpoint(k->comm, path, arrays, VARIABLES).step;
}

#else

static const char kWithout[] = "this s3d was built without HDF5: make hdf5 builds s3d_hdf5";

void write_hdf5(const Kernel* k, const char* path) {
  (void)k;
  fail("--write hdf5", path, kWithout);
}

void restart_from_hdf5(Kernel* k, const char* path) {
  (void)k;
  fail("--restart", path, kWithout);
}

#endif
